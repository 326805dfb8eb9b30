"""A room process for fault tests, run as `python -m tests.waitingroom.faults.worker`; reads a JSON order from argv.

{"url", "skew_us", "keys"}: lead for ever, print each slide that was made.
"""

import asyncio
import json
import sys
import time

from frontrow.core.clock import SystemClock
from frontrow.waitingroom.audit.sqlite import open_sqlite_audit
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.config import RoomConfig
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.stores.redis import RedisRoomStore

EVENT = "concert"
LEADERSHIP_TTL_US = 600_000
INTERVAL_US = 100_000
CONFIG = RoomConfig(capacity=10**9, window_size=10, interval_us=INTERVAL_US, rate_per_s=10**6, burst=10**6)


class SkewedClock(SystemClock):
    """This process' wall clock is wrong by a constant."""

    def __init__(self, skew_us: int) -> None:
        super().__init__()
        self.skew_us = skew_us

    def __call__(self) -> int:
        return super().__call__() + self.skew_us


def service(order: dict[str, object]) -> WaitingRoom:
    keys = RoomKeys.load(str(order["keys"]))
    clock = SkewedClock(int(str(order.get("skew_us", 0))))
    store = RedisRoomStore(str(order["url"]), timeout_s=20.0)
    return WaitingRoom(
        store, open_sqlite_audit(":memory:"), keys, clock=clock, leadership_ttl_us=LEADERSHIP_TTL_US, refresh_us=10_000
    )


async def lead(order: dict[str, object]) -> None:
    room = service(order)
    await room.control.create(EVENT, CONFIG)
    admitted = 0
    print(json.dumps({"ready": True, "owner": room.leader.owner}), flush=True)
    while True:
        await room.loops.tick(EVENT)
        if room.counts["admitted"] != admitted:
            print(json.dumps({"slid": room.counts["admitted"] - admitted, "at": time.monotonic()}), flush=True)
            admitted = room.counts["admitted"]
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(lead(json.loads(sys.argv[1])))
