"""N4: three layers against a double sale, each switched off in turn; with all of them off the attack must succeed."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator

import psycopg
import pytest

from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.adapters.ledger.engine.postgres import PostgresStore
from frontrow.boxoffice.adapters.ledger.engine.statements import Dialect, render
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.holds.model.holds import Hold
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.core.errors import FrontrowError
from frontrow.testing.clock import ManualClock
from tests.boxoffice.shop import EVENT, NOW, Shop, shop_event, shop_plan
from tests.faults.broken_claims import YesClaims

RACED, LATE = range(20), range(40, 60)
FANS = 60


def careless_confirm() -> str:
    """The conditional update without its conditions on fence, state and expiry when it confirms."""
    sql = render(Dialect.POSTGRES)["move_bookings"]
    careful = (
        "b.fence = r.fence AND b.state = r.from_state\n  AND (r.needs_live = 0 OR b.hold_expires_at_us > r.now_us)"
    )
    assert careful in sql
    return sql.replace(careful, f"(r.to_state = 'confirmed' OR ({careful}))")


@contextlib.asynccontextmanager
async def two_servers(
    postgres_ledger_url: str, redis_url: str, *, claim: bool, where: bool, index: bool
) -> AsyncIterator[list[Shop]]:
    if not index:
        with psycopg.connect(postgres_ledger_url, autocommit=True) as admin:
            admin.execute("DROP INDEX one_active_booking_per_seat")
    clock = ManualClock(NOW)
    shops = []
    for _ in range(2):
        claims: SeatClaims = RedisClaims(redis_url) if claim else YesClaims()
        ledger = SqlLedger(
            PostgresStore(postgres_ledger_url, sql=None if where else {"move_bookings": careless_confirm()})
        )
        shops.append(Shop(claims, ledger, clock, shop_event(max_per_person=10), shop_plan()))
    try:
        for shop in shops:
            assert await shop.recovery.check(EVENT)
        yield shops
    finally:
        for shop in shops:
            await shop.holds.aclose()
            await shop.claims.aclose()
            await shop.ledger.aclose()


async def race(shops: list[Shop]) -> None:
    """60 fans at two servers want the same seat at once; whoever gets a hold pays."""

    async def one(fan: int, seat: int) -> None:
        shop = shops[fan % 2]
        shop.sale.seats.mark_free([seat])  # no help from the local map
        with contextlib.suppress(FrontrowError):
            await shop.buy(await shop.hold(f"fan{fan}.{seat}", seat))

    for seat in RACED:
        await asyncio.gather(*(one(fan, seat) for fan in range(FANS)))


async def pay_late(shops: list[Shop]) -> None:
    """F4: a payment arrives after the hold ended and the seat was sold to somebody else."""
    first, second = shops
    clock = first.clock
    assert isinstance(clock, ManualClock)
    late: list[Hold] = []
    for seat in LATE:
        hold = await first.hold(f"late{seat}", seat)
        await first.ledger.begin_payment(hold.booking_id, hold.fence, clock())
        late.append(hold)
    clock.advance(601)
    for hold in late:
        await second.buy(await second.hold(f"quick{hold.indexes[0]}", *hold.indexes))
        with contextlib.suppress(FrontrowError):
            await first.ledger.confirm(hold.booking_id, hold.fence, clock())


def double_sales(postgres_ledger_url: str) -> int:
    """Seats in more than one confirmed booking, whatever the seat rows say."""
    with psycopg.connect(postgres_ledger_url) as reader:
        rows = reader.execute("SELECT seats FROM bookings WHERE state = 'confirmed'").fetchall()
    sold = Counter(seat for (seats,) in rows for seat in json.loads(seats))
    assert len(sold) >= len(RACED) + len(LATE), "every seat must have been sold"
    return sum(1 for times in sold.values() if times > 1)


@pytest.mark.parametrize("off", ["claim", "where", "index"])
async def test_with_one_layer_off_the_other_two_still_hold(postgres_ledger_url: str, redis_url: str, off: str) -> None:
    """N4, F4, B16."""
    layers = {"claim": True, "where": True, "index": True} | {off: False}
    async with two_servers(postgres_ledger_url, redis_url, **layers) as shops:
        await race(shops)
        await pay_late(shops)
    assert double_sales(postgres_ledger_url) == 0


async def test_with_all_layers_off_seats_are_sold_twice(postgres_ledger_url: str, redis_url: str) -> None:
    """The canary: the attack is real, so the tests above prove something."""
    async with two_servers(postgres_ledger_url, redis_url, claim=False, where=False, index=False) as shops:
        await race(shops)
        await pay_late(shops)
    assert double_sales(postgres_ledger_url) > 0
