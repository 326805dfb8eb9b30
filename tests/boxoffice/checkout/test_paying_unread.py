"""A hold that this server placed is paid without reading it again: with the outcome that reading it would have had.

Whatever another server did with the hold meanwhile, the first write of the payment notices.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.checkout.checkout import CheckoutResult, CheckoutState
from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.events.model.events import PriceTier
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.payments.model.payment_rules import PaymentRules
from frontrow.boxoffice.pricing.model.sale_options import Discount, SharedLimit, TicketType
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.shared.money import Money
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.office import Office, an_office, an_office_beside
from tests.boxoffice.refunds.market import CARD
from tests.boxoffice.shop import NOW, Shop, open_shop, sqlite_url

MEANWHILE = (
    "nothing",
    "extended",
    "other seats for the same price",
    "dearer",
    "released",
    "expired",
    "payment begun",
    "sold",
    "sold and refunded in part",
    "sold and refunded",
)


@pytest.fixture(params=["sqlite", "postgres"])
async def offices(request: pytest.FixtureRequest, tmp_path: Any) -> AsyncIterator[tuple[Office, Office]]:
    """Two servers on one ledger, with one provider."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_ledger_url")
    else:
        url = sqlite_url(tmp_path)
    async with an_office(url) as here, an_office_beside(url, here) as there:
        yield here, there


def purchases_of(shop: Shop, office: Office | None = None) -> Purchases:
    checkout: Any = office.checkout if office is not None else None
    return Purchases(shop.sales, shop.holds, checkout, shop.clock)


async def meanwhile(what: str, there: Office, booking: Booking, first: int) -> None:
    """What the other server does with the hold."""
    shop, clock = there.waiting.shop, there.clock
    visit = shop.shop_pass(booking.fan)
    if what == "extended":
        await there.ledger.extend_hold(booking.id, booking.fence, clock(), booking.hold_expires_at_us + US_PER_S)
    elif what == "other seats for the same price":
        await shop.holds.change(booking, visit, shop.ids([first + 2, first + 3]))
    elif what == "dearer":
        await shop.holds.change(booking, visit, shop.ids([first + 2, first + 3, first + 4]))
    elif what == "released":
        await purchases_of(shop, there).release(booking, visit)
    elif what == "expired":
        await there.ledger.expire_due(booking.hold_expires_at_us, 10)
    elif what == "payment begun":
        await purchases_of(shop, there).begin(booking, visit)
    elif what.startswith("sold"):
        await there.pay(booking.id, booking.fence)
        if what != "sold":
            seats = booking.seats[:1] if what.endswith("part") else None
            await there.refunds.refund(booking.id, booking.fence, seats)
            await there.till.settle()


async def paid(purchases: Purchases, booking: Booking, shop: Shop) -> CheckoutResult | str:
    try:
        return await purchases.pay(booking, shop.shop_pass(booking.fan), CARD)
    except FrontrowError as error:
        return error.code


def told(outcome: CheckoutResult | str, unlike: Booking) -> object:
    """An outcome without what differs between any two bookings."""
    if isinstance(outcome, str):
        return outcome
    booking = outcome.booking
    of_both = booking.state, len(booking.seats), booking.amount_minor, booking.seats == unlike.seats
    return outcome.state, of_both, outcome.payment.state if outcome.payment else None


@pytest.mark.parametrize("what", MEANWHILE)
async def test_paying_unread_ends_as_paying_what_was_read(offices: tuple[Office, Office], what: str) -> None:
    """B5, B6, F4: the same outcome, and the money, the seats and the tickets agree, whatever happened elsewhere."""
    here, there = offices
    shop, purchases, outcomes = here.waiting.shop, purchases_of(here.waiting.shop, here), []
    for unread, first in ((True, 0), (False, 5)):
        hold = await shop.hold(f"fan_{unread}", first, first + 1)
        booking = await there.till.booking(hold.booking_id)
        await meanwhile(what, there, booking, first)
        asked = purchases.just_held(hold.booking_id, CARD) if unread else await here.till.booking(hold.booking_id)
        assert asked is not None
        outcomes.append(told(await paid(purchases, asked, shop), booking))
        await here.checkout.work()
        await here.till.settle()
        after = await here.till.booking(hold.booking_id)
        tickets = await here.ledger.tickets.tickets_of(hold.booking_id)
        if after.state is BookingState.CONFIRMED:
            assert {one.seat_index for one in tickets if one.state == "valid"} == set(after.seats)
        await here.balanced()
    assert outcomes[0] == outcomes[1]


async def test_paying_unread_reads_no_booking(offices: tuple[Office, Office], monkeypatch: pytest.MonkeyPatch) -> None:
    here, _ = offices
    shop, purchases = here.waiting.shop, purchases_of(here.waiting.shop, here)
    hold = await shop.hold("ada", 0)
    reads: list[str] = []
    monkeypatch.setattr(here.ledger, "booking", lambda booking_id: reads.append(booking_id))
    booking = purchases.just_held(hold.booking_id, CARD)
    assert booking is not None
    outcome = await paid(purchases, booking, shop)
    assert isinstance(outcome, CheckoutResult)
    assert outcome.state is CheckoutState.CONFIRMED
    assert reads == []


async def test_two_clicks_take_the_money_once(offices: tuple[Office, Office]) -> None:
    """B6: the first click uses up what is remembered; the second reads, whether or not the first is still under way."""
    here, _ = offices
    shop, purchases = here.waiting.shop, purchases_of(here.waiting.shop, here)
    hold = await shop.hold("ada", 0)

    async def click() -> CheckoutResult | str:
        booking = purchases.just_held(hold.booking_id, CARD) or await here.till.booking(hold.booking_id)
        return await paid(purchases, booking, shop)

    outcomes = await asyncio.gather(*(click() for _ in range(5)))
    assert all(isinstance(one, CheckoutResult) for one in outcomes)
    await here.till.settle()
    assert [one["amount_received"] for one in here.till.provider.objects.values()] == [5000]
    assert purchases.just_held(hold.booking_id, CARD) is None


async def test_a_ledger_that_is_away_when_it_is_paid_unread_is_told_and_the_next_try_reads(tmp_path: Path) -> None:
    async with an_office(sqlite_url(tmp_path)) as here:
        shop, purchases = here.waiting.shop, purchases_of(here.waiting.shop, here)
        hold = await shop.hold("ada", 0)
        booking = purchases.just_held(hold.booking_id, CARD)
        assert booking is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(here.ledger.payments, "save_payment", _away)
            assert await paid(purchases, booking, shop) == "unavailable"
        assert purchases.just_held(hold.booking_id, CARD) is None
        again = await paid(purchases, await here.till.booking(hold.booking_id), shop)
        assert isinstance(again, CheckoutResult)
        assert again.state is CheckoutState.CONFIRMED


async def _away(*_: Any, **__: Any) -> None:
    raise Unavailable("no answer")


@pytest.mark.parametrize(
    ("changes", "method"),
    [
        ({"limits": (SharedLimit("children", "Children", 1, ("type:child",)),)}, CARD),
        ({"discounts": (Discount("KIDS", 0, unlocks=("child",)),)}, CARD),
        ({"payments": PaymentRules(methods=("card",))}, CARD),
        ({"tiers": (PriceTier("standard", Money(0, "EUR")), PriceTier("standing", Money(0, "EUR")))}, CARD),
        ({}, "ideal"),
        ({}, ""),
    ],
    ids=["a shared limit", "a code that unlocks", "chosen methods", "nothing to pay", "slow money", "no method"],
)
async def test_what_decides_before_the_first_write_is_read(
    tmp_path: Path, changes: dict[str, Any], method: str
) -> None:
    types = (TicketType("adult", "Adult"), TicketType("child", "Child", 5000))
    async with open_shop(sqlite_url(tmp_path), clock=ManualClock(NOW), ticket_types=types, **changes) as shop:
        hold = await shop.hold("ada", 0)
        assert len(shop.holds.held.recent) == 1
        assert purchases_of(shop).just_held(hold.booking_id, method) is None
