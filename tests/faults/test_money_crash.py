"""F5, N4: processes killed with -9 at crash points of the checkout on real PostgreSQL and Redis; the next one finds the
right end within 60 s unaided: no charge without a seat, no seat without a charge, no authorisation left."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.adapters.ledger.engine.postgres import PostgresStore
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.adapters.payments.simulated_journal import PaymentJournal
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.till import Till, assert_money
from tests.boxoffice.payments.crashes import ENDS, UNTOUCHED
from tests.boxoffice.shop import EVENT, NOW, Shop, shop_event, shop_plan

# scenario, number of the step, before or after: each a row of the table in tests/boxoffice/payments/crashes.py
KILLED = [
    "sold:0:before",
    "sold:0:after",
    "sold:1:after",
    "sold:2:before",
    "sold:2:after",
    "sold:3:after",
    "sold:4:after",
    "declined:2:after",
    "late:1:after",
    "late:2:before",
    "late:2:after",
    "late:3:after",
    "after an outage:2:after",
    "refunded:0:after",
    "refunded:1:after",
    "partly refunded:1:after",
]


@pytest.mark.timeout(300)
async def test_killed_processes_leave_nothing_undone(postgres_ledger_url: str, redis_url: str, tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    claims, ledger = RedisClaims(redis_url), SqlLedger(PostgresStore(postgres_ledger_url))
    shop = Shop(claims, ledger, clock, shop_event(card_tries=1), shop_plan())
    try:
        assert await shop.recovery.check(EVENT)
        await ledger.catalogue.put_event(shop_event(card_tries=1), NOW)
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.faults.money_child",
            postgres_ledger_url,
            redis_url,
            str(tmp_path),
            str(NOW),
            *KILLED,
            stdout=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env=os.environ | {"PYTHONPATH": "."},
        )
        told, _ = await child.communicate()
        lines = [line.split() for line in told.decode().splitlines()]
        assert [line[0] for line in lines] == [str(int(signal.SIGKILL))] * len(KILLED)
        for at, (_, booking_id) in enumerate(lines):
            await recovered(ledger, tmp_path / f"journal{at}", KILLED[at], booking_id)
    finally:
        await claims.aclose()
        await ledger.aclose()


async def recovered(ledger: SqlLedger, journal: Path, point: str, booking_id: str) -> None:
    """A new process with nothing but the ledger and this provider: 60 s of its workers."""
    scenario, number, when = point.split(":")
    late_us = 600_000_000 if scenario == "late" else 0
    clock = ManualClock(NOW + late_us)
    provider = SimulatedProvider(clock, journal=PaymentJournal(journal))
    till = Till(ledger, clock, provider)
    for _ in range(7):
        for payment in await ledger.payments.payments_of(booking_id):  # the others belong to other providers here
            if 0 < payment.retry_at_us <= clock():
                await till.checkout.driver.drive(await till.booking(booking_id), payment)
        for refund in await ledger.payments.refunds_of(booking_id):
            if 0 < refund.retry_at_us <= clock():
                await till.refunds.payouts.pay_out(refund)
        clock.advance(10)
    booking = await till.booking(booking_id)
    untouched = number == "0" and when == "before"
    if scenario == "late":
        assert not booking.live(clock()), point
    else:
        assert booking.state in ({UNTOUCHED[scenario]} if untouched else ENDS[scenario]), point
    await assert_money(till, at_rest=True)
    await provider.aclose()
