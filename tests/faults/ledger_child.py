"""A box office process to be killed: holds and sells on an embedded ledger, printing what was acknowledged."""

import asyncio
import sys
from pathlib import Path

from frontrow.boxoffice.adapters.ledger.engine.sqlite import SqliteStore
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.holds.model.holds import NewHold

NOW_US = 1_700_000_000_000_000
CALLERS = 50


async def main(path: str, life: str) -> None:
    ledger = SqlLedger(SqliteStore(Path(path)))
    numbers = iter(range(1_000_000))

    async def caller() -> None:
        for number in numbers:
            booking_id = f"bkg_{life}_{number:08d}"
            wish = NewHold(booking_id, f"evt_{life}", f"fan_{number}", (number,), NOW_US, NOW_US + 600_000_000)
            hold = await ledger.place_hold(wish)
            print("held", booking_id, hold.fence, flush=True)
            await ledger.begin_payment(booking_id, hold.fence, NOW_US)
            await ledger.confirm(booking_id, hold.fence, NOW_US)
            print("confirmed", booking_id, hold.fence, flush=True)

    await asyncio.gather(*[caller() for _ in range(CALLERS)])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
