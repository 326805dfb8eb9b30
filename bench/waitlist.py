"""The waitlist by itself: joins, a look at a long line, and offers of freed seats, over SQLite and PostgreSQL.

`python -m bench.waitlist` prints operations per second and CPU per operation of this process; the PostgreSQL server is
a private one on this machine and not counted.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

from bench.measure import options
from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, Section
from frontrow.boxoffice.waitlist.model.waitlist import NewEntry
from frontrow.boxoffice.waitlist.offers import OfferWorker
from frontrow.shared.money import Money
from frontrow.testing.clock import ManualClock
from tests.support.servers import Postgres

LINE, SEATS, PARTY = 20_000, 2_000, 2
EVENT = "evt_bench"


async def timed(what: str, count: int, work: Awaitable[object]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    await work
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"  {what:46} {count / wall:>9,.0f}/s  {1e6 * cpu / count:>8,.1f} us CPU each")


def plan() -> Plan:
    rows = tuple(Row(f"{r}", tuple(Seat(f"{s}") for s in range(1, 41)), rank=r) for r in range(1, SEATS // 40 + 1))
    return Plan("bench", (Section("A", rows),))


async def run(ledger: SqlLedger) -> None:
    clock = ManualClock()
    event = Event(
        EVENT,
        "Bench",
        "ven_1",
        "0" * 64,
        "EUR",
        clock() * 2,
        0,
        clock() * 2,
        (PriceTier("standard", Money(5_000, "EUR")),),
        EventStatus.SOLD_OUT,
    )
    await ledger.catalogue.put_event(event, clock())
    sales, claims = Sales(), MemoryClaims()
    sales.open(event, plan())
    claims.learn(EVENT, plan())
    await Recovery(sales, claims, ledger, clock).check(EVENT)
    holds = HoldService(sales, claims, ledger, clock)
    worker = OfferWorker(sales, ledger, claims, holds, clock)
    joins = [ledger.waitlist.join_waitlist(NewEntry(f"wle_{n}", EVENT, f"f{n}", PARTY), clock()) for n in range(LINE)]
    await timed(f"join ({LINE:,} at once)", LINE, asyncio.gather(*joins))
    entry = await ledger.waitlist.entry_of_fan(EVENT, f"f{LINE - 1}")
    assert entry is not None
    await timed(
        f"position of the last of {LINE:,}",
        200,
        asyncio.gather(*(ledger.waitlist.entries_ahead(entry) for _ in range(200))),
    )
    await timed(f"offer (parties of {PARTY}, {SEATS:,} freed seats)", SEATS // PARTY, worker.serve_event(EVENT))
    assert worker.stats.offered == SEATS // PARTY
    clock.advance(300)
    await timed("offer lapses", SEATS // PARTY, worker.end_due_offers())
    await timed("the same seats offered to the next ones", SEATS // PARTY, worker.serve_event(EVENT))
    assert worker.stats.offered == 2 * (SEATS // PARTY)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, url in (("SQLite", f"sqlite:///{Path(folder) / 'bench.db'}"), ("PostgreSQL", "")):
            print(name)
            if url:
                await one(url)
            else:
                with Postgres() as server:
                    await one(server.url)


async def one(url: str) -> None:
    ledger = await open_ledger(url, auto_migrate=True)
    try:
        await run(ledger)
    finally:
        await ledger.aclose()


if __name__ == "__main__":
    options(__doc__).parse_args()
    asyncio.run(main())
