"""A relay in a process of its own, to be killed: ledger file, Redis URL, stream. Imports little, to start quickly."""

import asyncio
import sys
from pathlib import Path

from frontrow.boxoffice.adapters.bus.redis import RedisBus
from frontrow.boxoffice.adapters.ledger.engine.sqlite import SqliteStore
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.facts.outbox_relay import OutboxRelay
from frontrow.core.clock import WallClock


async def main(path: str, redis_url: str, stream: str) -> None:
    ledger = SqlLedger(SqliteStore(Path(path)))
    relay = OutboxRelay(ledger, RedisBus(redis_url, stream=stream), WallClock(), batch=100, claim_s=0.05, every_s=0.01)
    await relay.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
