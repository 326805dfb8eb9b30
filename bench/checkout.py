"""Checkouts per second and CPU per checkout, refunds of a cancelled event, reconciliation: one run, one table.

    python -m bench.checkout [--checkouts 4000] [--in-flight 5000] [--refunds 20000] [--docs]

A checkout is two durable commits (intent, confirm with a ticket), the worker's one after it (captured), and a call of
the simulated provider before each of the last two: instant (the best of three rounds), or taking 2-5 s with 5,000 in
flight. The worker runs beside the fans; the time ends when it has taken all the money. A checkout that is paid at once
(iDEAL) is three commits by the fan and two by the notice that the money is there, with its signature checked. Ledger:
SQLite (synchronous=FULL) in one file, PostgreSQL (synchronous_commit=on). CPU is this process' own; the database
server's stands apart. `--docs` takes the table over into docs/payments.md. Facts, tickets, QR and PDF: see the other
tables.
"""

import argparse
import asyncio
import contextlib
import json
import random
import resource
import tempfile
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import Any

import uvloop

from bench.seats_docs import DOCS, put
from bench.seats_load import Meter, tidy
from bench.seats_processes import POSTGRES, WAL_FILES, wal_ready
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.call_cap import CallCap
from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutState
from frontrow.boxoffice.checkout.reconciliation import Reconciler
from frontrow.boxoffice.events.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.holds.model.holds import NewHold, PlacedHold
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.core.clock import SystemClock
from frontrow.shared.money import Money
from tests.support.servers import Postgres

OUT = Path("bench/out")
CALLERS = 1_000
ROUNDS = 3
TARGETS = {"PostgreSQL, instant provider": 5_000}  # checkouts per second in one process
EVENT = "evt_bench"


@contextlib.asynccontextmanager
async def ledgers() -> AsyncIterator[tuple[dict[str, SqlLedger], list[int]]]:
    """A fresh ledger of each kind, and the process of the database server."""
    with tempfile.TemporaryDirectory() as folder, Postgres(*POSTGRES) as server:
        await asyncio.to_thread(migrate, server.url)
        await asyncio.to_thread(wal_ready, server, WAL_FILES)
        file = await open_ledger(f"sqlite:///{folder}/bench.db")
        opened = {"SQLite": file, "PostgreSQL": await open_ledger(server.url, warm=True)}
        try:
            yield opened, [server.pid]
        finally:
            for ledger in opened.values():
                await ledger.aclose()


async def hold_all(ledger: SqlLedger, first: int, count: int, event_id: str) -> list[PlacedHold]:
    now_us = SystemClock()()
    wishes = [
        NewHold(
            f"bkg_{first + n:026d}",
            event_id,
            f"fan_{first + n}",
            (first + n,),
            now_us,
            now_us + 3_600_000_000,
            5000,
            "EUR",
            (5000,),
        )
        for n in range(count)
    ]
    return list(await asyncio.gather(*(ledger.place_hold(wish) for wish in wishes)))


async def measured(work: Awaitable[Any], count: int, database: Sequence[int] = ()) -> dict[str, float]:
    tidy()
    with Meter({"database": list(database)}) as meter:
        await work
    return {
        "per_second": round(count / meter.wall_s, 1),
        "cpu_us": round(meter.used["service"] / count * 1e6, 1),
        "database_us": round(meter.used["database"] / count * 1e6, 1),
        "seconds": round(meter.wall_s, 2),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


async def sell(
    ledger: SqlLedger,
    provider: GuardedProvider,
    first: int,
    count: int,
    callers: int,
    event_id: str = EVENT,
    database: Sequence[int] = (),
) -> dict[str, float]:
    holds = iter(await hold_all(ledger, first, count, event_id))
    checkout = Checkout(
        ledger, provider, SystemClock(), issuer=Issuer(TicketKeys(b"b" * 32)), at_once=provider.cap.at_once
    )
    simulated = provider.inner
    assert isinstance(simulated, SimulatedProvider)

    async def caller() -> None:
        for hold in holds:
            outcome = await checkout.pay(hold.booking_id, hold.fence, "pm_card_visa")
            assert outcome.state is CheckoutState.CONFIRMED, outcome

    async def worker() -> None:
        turns = []
        while simulated.calls["capture"] < count:
            turns.append(asyncio.create_task(checkout.work()))
            await asyncio.sleep(0.05)
        await asyncio.gather(*turns)

    return await measured(asyncio.gather(worker(), *(caller() for _ in range(callers))), count, database)


async def sell_at_once(
    ledger: SqlLedger, simulated: SimulatedProvider, first: int, count: int, database: Sequence[int] = ()
) -> dict[str, float]:
    """Fans who pay on their bank's page: the payment begins, the bank has the money, its notice sells the seats."""
    holds = iter(await hold_all(ledger, first, count, EVENT))
    provider = GuardedProvider(simulated, SystemClock())
    checkout = Checkout(ledger, provider, SystemClock(), issuer=Issuer(TicketKeys(b"b" * 32)))

    async def caller() -> None:
        for hold in holds:
            asked = await checkout.pay(hold.booking_id, hold.fence, "ideal")
            assert asked.payment is not None
            simulated.finish_action(asked.payment.ref)
            notice = simulated.notices[-1]
            assert await checkout.handle_webhook(*notice)

    found = await measured(asyncio.gather(*(caller() for _ in range(CALLERS))), count, database)
    sold = await ledger.payments.payments_of(f"bkg_{first + count - 1:026d}")
    assert [payment.state for payment in sold] == [PaymentState.CAPTURED]
    return found


async def cancel(ledger: SqlLedger, provider: GuardedProvider, event_id: str) -> None:
    refunds = Refunds(ledger, provider, SystemClock())
    async for _ in refunds.cancel_event(event_id):
        pass
    while await refunds.work():
        pass


async def run(checkouts: int, in_flight: int, refunds: int) -> dict[str, dict[str, float]]:
    results: dict[str, dict[str, float]] = {}
    clock, rng = SystemClock(), random.Random(1)
    price = PriceTier("standard", Money(5000, "EUR"))
    event = Event(EVENT, "Bench", "ven_1", "0" * 64, "EUR", 1 << 60, 0, 1 << 60, (price,), EventStatus.ON_SALE)
    async with ledgers() as (opened, postgres):
        for name, ledger in opened.items():
            await ledger.catalogue.put_event(event, clock())
            database = postgres if name == "PostgreSQL" else []
            rounds = []
            for number in range(ROUNDS):
                instant = GuardedProvider(SimulatedProvider(clock, webhooks=False), clock)
                first = number * checkouts
                rounds.append(await sell(ledger, instant, first, checkouts, CALLERS, database=database))
            results[f"{name}, instant provider"] = max(rounds, key=lambda one: one["per_second"])
            at_once = [
                await sell_at_once(ledger, SimulatedProvider(clock), 10**7 + number * checkouts, checkouts, database)
                for number in range(ROUNDS)
            ]
            results[f"{name}, paid at once"] = max(at_once, key=lambda one: one["per_second"])
            inner = SimulatedProvider(clock, latency=lambda *_: rng.uniform(2.0, 5.0), webhooks=False)
            slow = GuardedProvider(inner, clock, cap=CallCap(in_flight))
            what = f"{name}, provider of 2-5 s, {in_flight} in flight"
            results[what] = await sell(ledger, slow, 10**6, in_flight, in_flight, database=database)
            assert slow.cap.most_in_flight <= in_flight
        ledger = opened["PostgreSQL"]
        more = GuardedProvider(SimulatedProvider(clock, webhooks=False), clock)
        event = Event("evt_off", "Off", "ven_1", "0" * 64, "EUR", 1 << 60, 0, 1 << 60, (price,), EventStatus.ON_SALE)
        await ledger.catalogue.put_event(event, clock())
        await sell(ledger, more, 2 * 10**6, refunds, CALLERS, "evt_off")
        work = cancel(ledger, more, "evt_off")
        results[f"PostgreSQL, {refunds} refunds of a cancelled event"] = await measured(work, refunds, postgres)
        driver = Checkout(ledger, more, clock).driver
        reconciler = Reconciler(ledger, more, clock, driver)
        results["reconciled objects"] = await measured(reconciler.run(), refunds, postgres)
    return results


def target_of(name: str, figures: dict[str, float]) -> str:
    wanted = TARGETS.get(name)
    return f"{wanted:,}/s: {'met' if figures['per_second'] >= wanted else 'not met'}" if wanted else ""


def table(results: dict[str, dict[str, float]]) -> str:
    """The figures of docs/payments.md."""
    lines = ["| what | rate | our CPU | PostgreSQL's CPU | target |", "|---|---|---|---|---|"]
    for name, one in results.items():
        database = f"{one['database_us']:,.0f} µs" if one["database_us"] else ""
        rate = f"{one['per_second']:,.0f}/s, {one['seconds']:.1f} s, {one['peak_memory_mb']} MB at most"
        lines.append(f"| {name} | {rate} | {one['cpu_us']:,.0f} µs | {database} | {target_of(name, one)} |")
    return "\n".join(line.replace("|  |", "| |") for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkouts", type=int, default=4_000, help="of each round")
    parser.add_argument("--in-flight", type=int, default=5_000)
    parser.add_argument("--refunds", type=int, default=20_000)
    parser.add_argument("--docs", action="store_true", help="write the table into docs/payments.md")
    args = parser.parse_args()
    results = uvloop.run(run(args.checkouts, args.in_flight, args.refunds))
    for name, figures in results.items():
        cost = f"{figures['cpu_us']:>6.0f} us CPU {figures['database_us']:>6.0f} us PostgreSQL"
        rate = f"{figures['per_second']:>7.0f}/s {cost} {figures['seconds']:>6.1f} s"
        print(f"{name:50} {rate} {figures['peak_memory_mb']:>5.0f} MB  {target_of(name, figures)}")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "checkout.json").write_text(json.dumps(results, indent=2))
    if args.docs:
        put(DOCS / "payments.md", "checkout", table(results))


if __name__ == "__main__":
    main()
