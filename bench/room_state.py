"""State of a room: 14,000,000 anonymous places issued through the store, coalesced, and what they cost.

Run `python -m bench.room_state [--places N] [--claims N]`: bytes in Redis, core-seconds of client and server, joins for
each Redis call, bytes for each identified person in the claimed and active structures. CPU, not wall-clock rates.
"""

import argparse
import asyncio
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import redis

from frontrow.waitingroom.audit.sqlite import open_sqlite_audit
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.ports import JoinCommand, PlaceKey, Recovered, VisitCommand, VisitOp
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.stores.redis import RedisRoomStore, room_key
from tests.support.servers import Valkey

EVENT = "bench"
CONFIG = RoomConfig(capacity=10**9, window_size=10**6)


def fresh(**changes: Any) -> Recovered:
    return Recovered(replace(RoomState(1, Phase.OPEN, CONFIG, (LaneState(),)), **changes))


def bytes_of(client: "redis.Redis") -> int:
    """Everything Redis keeps for the room's keys."""
    return sum(int(client.memory_usage(key, samples=0) or 0) for key in client.scan_iter(f"{room_key(EVENT)}*"))


def cpu_of(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


async def issue(url: str, places: int, batch: int) -> dict[str, float]:
    """Positions by the store alone, in coalesced batches, as a burst gives them."""
    store = RedisRoomStore(url, timeout_s=10)
    await store.create(EVENT, fresh())
    asks, left, calls = [JoinCommand(0)] * batch, places, store.calls
    start = time.process_time()
    while left > 0:
        answers = await store.join(EVENT, asks[: min(batch, left)])
        left -= len(answers)
    spent = time.process_time() - start
    state = await store.snapshot(EVENT)
    assert state is not None
    assert state.lanes[0].issued == places
    await store.aclose()
    return {"client_core_s": spent, "redis_calls": store.calls - calls}


async def claim(url: str, claims: int, no_show: float) -> None:
    """Admit and claim, with holes where nobody came."""
    store = RedisRoomStore(url, timeout_s=10)
    positions = int(claims / (1 - no_show))
    await store.lift(EVENT, [LaneState(positions, positions)])
    coming = [p for p in range(1, positions + 1) if p % 5 not in (0, 3)][:claims]
    for start in range(0, len(coming), 500):
        asks = [VisitCommand(VisitOp.CLAIM, PlaceKey(0, 1, p), 900, tag=7) for p in coming[start : start + 500]]
        await store.visit(EVENT, asks)
    await store.aclose()


async def service_joins(url: str, people: int, at_once: int) -> dict[str, float]:
    """Durable joins through the service: place minted, audit row written, Redis call shared."""
    store = RedisRoomStore(url, timeout_s=10)
    room = WaitingRoom(store, open_sqlite_audit(":memory:"), RoomKeys.generate())
    await room.control.create("service", CONFIG)
    await room.joins.join("service")
    calls, start = store.calls, time.process_time()
    for _ in range(people // at_once):
        await asyncio.gather(*(room.joins.join("service") for _ in range(at_once)))
    spent = time.process_time() - start
    place = (await room.joins.join("service")).place_jwt
    told = {"cpu_us_per_join": spent / people * 1e6, "joins_per_call": people / (store.calls - calls - 1)}
    for name, work in (
        ("cpu_us_per_status", lambda: room.statuses.of(place)),
        ("cpu_us_per_now_serving", lambda: room.cache.find("service").now_serving()),
    ):
        start = time.process_time()
        for _ in range(20_000):
            work()
        told[name] = (time.process_time() - start) / 20_000 * 1e6
    await room.aclose()
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", type=int, default=14_000_000)
    parser.add_argument("--claims", type=int, default=50_000)
    parser.add_argument("--people", type=int, default=50_000)
    options = parser.parse_args()
    with Valkey() as server, redis.Redis.from_url(server.url) as client:
        before = cpu_of(server.pid)
        told: dict[str, Any] = {"places": options.places, "cores": os.cpu_count()}
        told |= asyncio.run(issue(server.unix_url, options.places, 2_000))
        told["server_core_s"] = cpu_of(server.pid) - before
        told["state_bytes"] = empty = bytes_of(client)
        asyncio.run(claim(server.unix_url, options.claims, 0.4))
        told["bytes_per_claimed_person"] = (bytes_of(client) - empty) / options.claims
        told |= asyncio.run(service_joins(server.unix_url, options.people, 500))
    for name, value in told.items():
        print(f"{name:28} {value:,.2f}" if isinstance(value, float) else f"{name:28} {value:,}")
    out = Path(__file__).parent / "out"
    out.mkdir(exist_ok=True)
    (out / "room_state.json").write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
