"""A large ledger on PostgreSQL, plain and then partitioned by event: what a sale, a booking's page and an organiser's
list cost beside two million old bookings of 2,000 events, and how long partitioning takes.

    python -m bench.partitions [--bookings 2000000] [--events 2000] [--partitions 16] [--seconds 4]

Every old booking has a seat, a payment and a ticket. Twenty events are on sale. CPU per operation is the server's and
the process' own; trust it more than the rates of a busy machine.
"""

import argparse
import asyncio
import json
import random
import time
from typing import Any, Final

import asyncpg
import psutil
import uvloop

from bench.ledger import NOW_US, OUT, Meter
from bench.seats_processes import POSTGRES, WAL_FILES, wal_ready
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.partitions import TABLES, partition_ledger, read_table_sizes
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.boxoffice.tickets.model.tickets import NewTicket
from tests.support.servers import Postgres

ON_SALE: Final = 20
NEW_SEATS: Final = 1_000_000  # above all old ones
READERS: Final = 16
# n is the number of the booking; $1 bookings, $2 events
_NAMES: Final = (
    "'bkg_' || lpad(n::text, 26, '0') AS id, 'evt_' || lpad((n % $2)::text, 26, '0') AS event_id, n / $2 AS seat"
)
_OLD: Final = f"(SELECT n, {_NAMES} FROM generate_series(1, $1::bigint) AS n) AS o"
FILL: Final = {
    "bookings": "(id, event_id, fan, state, seat_count, seats, amount_minor, currency, session, created_at_us,"
    " changed_at_us, hold_expires_at_us, confirmed_at_us) SELECT id, event_id, 'fan_' || n, 'confirmed', 1,"
    " '[' || seat || ']', 4500, 'EUR', '', n, n, n, n",
    "booking_seats": "(booking_id, seat_index, event_id, price_minor, active) SELECT id, seat, event_id, 4500, 1",
    "payments": "(id, booking_id, attempt, provider, provider_ref, payment_state, amount_minor, currency,"
    " idempotency_key, created_at_us, changed_at_us, event_id) SELECT 'pay_' || n, id, 1, 'simulated', 'pi_' || n,"
    " 'captured', 4500, 'EUR', id || ':create:1', n, n, event_id",
    "tickets": "(id, booking_id, event_id, seat_index, ticket_state, issued_at_us, changed_at_us, code)"
    " SELECT 'tkt_' || n, id, event_id, seat, 'valid', n, n, 'a code of about forty letters and digits'",
}


async def fill(url: str, bookings: int, events: int) -> None:
    connection = await asyncpg.connect(url)
    try:
        for table, rows in FILL.items():
            began_s = time.monotonic()
            await connection.execute("SET synchronous_commit = off")
            statement = f"INSERT INTO {table} {rows} FROM {_OLD}"
            await connection.execute(statement.replace("$1", str(bookings)).replace("$2", str(events)))
            print(f"{table}: filled in {time.monotonic() - began_s:.0f} s", flush=True)
        await connection.execute(f"VACUUM ANALYZE {', '.join(TABLES)}")
    finally:
        await connection.close()


def event(number: int) -> str:
    return f"evt_{number:026d}"


class Sale:
    """The operations that are measured, over one ledger. New bookings begin at `first`."""

    def __init__(self, ledger: SqlLedger, first: int, options: argparse.Namespace) -> None:
        self._ledger, self._first, self._options = ledger, first, options
        self.fences: dict[int, int] = {}
        self._dice = random.Random(7)

    def _id(self, number: int) -> str:
        return f"bkg_{self._first + number:026d}"

    def _old(self) -> str:
        return f"bkg_{self._dice.randrange(1, self._options.bookings):026d}"

    async def hold(self, number: int) -> None:
        seat = NEW_SEATS + self._first + number
        on_sale, fan = event(number % ON_SALE), f"fan_{number}"
        wish = NewHold(self._id(number), on_sale, fan, (seat,), NOW_US, NOW_US + 600_000_000, 4_500, cap=8)
        self.fences[number] = (await self._ledger.place_hold(wish)).fence

    async def pay(self, number: int) -> None:
        await self._ledger.begin_payment(self._id(number), self.fences[number], NOW_US)

    async def confirm(self, number: int) -> None:
        ticket = NewTicket(f"tkt_{self._id(number)}", NEW_SEATS + self._first + number, "code")
        await self._ledger.confirm(self._id(number), self.fences[number], NOW_US, [ticket])

    async def page(self, number: int) -> None:
        booking_id = self._old()
        await self._ledger.booking(booking_id)
        await self._ledger.payments.payments_of(booking_id)
        await self._ledger.tickets.tickets_of(booking_id)

    async def list(self, number: int) -> None:
        asked = event(self._dice.randrange(self._options.events))
        await self._ledger.store.read(Query("bookings_page", params=(asked, "", 2**62, 50)))

    async def figures(self, number: int) -> None:
        asked = event(self._dice.randrange(self._options.events))
        await self._ledger.store.read(Query("payments_by_state", params=(asked,)))


async def measure(url: str, meter: Meter, first: int, options: argparse.Namespace) -> dict[str, Any]:
    ledger = await open_ledger(url, warm=True)
    try:
        sale = Sale(ledger, first, options)
        result = {"hold": await meter.phase(sale.hold, range(10_000_000), options.callers, options.seconds)}
        held = range(len(sale.fences))
        result["pay"] = await meter.phase(sale.pay, held, options.callers, options.seconds)
        paid = range(result["pay"]["count"])
        result["confirm with a ticket"] = await meter.phase(sale.confirm, paid, options.callers, options.seconds)
        readers = (
            ("booking's page", sale.page),
            ("organiser's list", sale.list),
            ("figures of payments", sale.figures),
        )
        for name, call in readers:
            result[name] = await meter.phase(call, range(10_000_000), READERS, options.seconds)
        return result
    finally:
        await ledger.aclose()


async def run(options: argparse.Namespace) -> dict[str, Any]:
    with Postgres("-c", "synchronous_commit=on", "-c", "max_wal_size=4GB", *POSTGRES) as server:
        await asyncio.to_thread(migrate, server.url)
        await fill(server.url, options.bookings, options.events)
        await asyncio.to_thread(wal_ready, server, WAL_FILES)
        meter = Meter(psutil.Process(server.pid))
        results: dict[str, Any] = {"plain": await measure(server.url, meter, 10_000_000, options)}
        size = sum(one.size_bytes for one in await read_table_sizes(server.url))
        began_s = time.monotonic()
        await partition_ledger(server.url, options.partitions, print)
        results["partitioning_s"], results["megabytes"] = round(time.monotonic() - began_s), round(size / 1e6)
        connection = await asyncpg.connect(server.url)
        await connection.execute(f"VACUUM ANALYZE {', '.join(TABLES)}")
        await connection.close()
        await asyncio.to_thread(wal_ready, server, WAL_FILES)
        results["partitioned"] = await measure(server.url, meter, 20_000_000, options)
    return results


def table(results: dict[str, Any]) -> str:
    own = f"{'client us':>11}{'p50 ms':>9}"
    lines = [f"{'':24}{'plain: server us':>18}{own}{'partitioned: server us':>24}{own}"]
    for phase, plain in results["plain"].items():
        parts = results["partitioned"][phase]
        lines.append(
            f"{phase:24}{plain['server_cpu_us']:>18}{plain['client_cpu_us']:>11}{plain['p50_ms']:>9}"
            f"{parts['server_cpu_us']:>24}{parts['client_cpu_us']:>11}{parts['p50_ms']:>9}"
        )
    return "\n".join([*lines, f"partitioned {results['megabytes']:,} MB in {results['partitioning_s']} s"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bookings", type=int, default=2_000_000, help="old bookings")
    parser.add_argument("--events", type=int, default=2_000, help="events that they belong to")
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=4.0, help="longest time of a phase")
    parser.add_argument("--callers", type=int, default=500, help="callers waiting at once to hold, pay and confirm")
    options = parser.parse_args()
    results = uvloop.run(run(options))
    print(table(results))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "partitions.json").write_text(json.dumps({"options": vars(options), "results": results}, indent=2))


if __name__ == "__main__":
    main()
