"""A relay in a process of its own, to be killed: ledger URL, Redis URL, stream."""

import asyncio
import sys

from frontrow.boxoffice.bus.redis import RedisBus
from frontrow.boxoffice.ledger.opening import open_ledger
from frontrow.boxoffice.services.relay import Relay
from frontrow.core.clock import WallClock


async def main(ledger_url: str, redis_url: str, stream: str) -> None:
    ledger = await open_ledger(ledger_url, auto_migrate=False)
    relay = Relay(ledger, RedisBus(redis_url, stream=stream), WallClock(), batch=100, lease_s=0.05, every_s=0.01)
    await relay.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
