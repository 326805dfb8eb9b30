"""What a server remembers of the holds it has placed: what the ledger has, once, and no longer than it is so."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontrow.boxoffice.holds.attempt import AttemptRunner
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.holds import PlacedHold
from frontrow.boxoffice.holds.model.requested_seats import Wish
from frontrow.boxoffice.holds.plain_attempt import PlainAttempts
from frontrow.boxoffice.holds.recent_holds import RecentHolds
from frontrow.boxoffice.pricing.model.prices import Quote
from frontrow.core.clock import US_PER_S
from frontrow.testing.clock import ManualClock
from tests.boxoffice.shop import EVENT, NOW, Shop, open_shop, sqlite_url

NO_PRICE = Quote((), (), 0, "EUR")


@pytest.fixture(params=["sqlite", "postgres"])
async def shop(request: pytest.FixtureRequest, tmp_path: Any) -> AsyncIterator[Shop]:
    url = sqlite_url(tmp_path)
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_ledger_url")
    async with open_shop(url, clock=ManualClock(NOW)) as one:
        yield one


def placed(number: int, *, expires_at_us: int = NOW + 60 * US_PER_S, repeated: bool = False) -> PlacedHold:
    return PlacedHold(f"bkg_{number}", EVENT, "ada", (number,), number, expires_at_us, repeated=repeated)


@pytest.mark.parametrize("attempts", [AttemptRunner, PlainAttempts])
async def test_a_hold_is_remembered_as_the_ledger_has_it(shop: Shop, attempts: type[AttemptRunner]) -> None:
    """B3: field by field, whichever way it was placed, with its price, its visit and its end."""
    holds = HoldService(shop.sales, shop.claims, shop.ledger, shop.clock, attempts=attempts)
    visit = shop.shop_pass("ada")
    chosen = await holds.place(EVENT, visit, shop.ids([5, 3, 80]))
    best = await holds.place_best(EVENT, shop.shop_pass("bob"), Wish(2))
    for hold in (chosen, best):
        assert holds.held.recent.find(hold.booking_id, shop.clock()) == await shop.ledger.booking(hold.booking_id)
    assert len(holds.held.recent) == 2


@pytest.mark.parametrize("what", ["extended", "changed", "released", "freed elsewhere here"])
async def test_what_this_server_does_to_a_hold_makes_it_forget_it(shop: Shop, what: str) -> None:
    hold = await shop.hold("ada", 1)
    held = shop.holds.held
    booking = await shop.ledger.booking(hold.booking_id)
    assert booking is not None
    if what == "extended":
        await held.extend(hold.booking_id, hold.fence, hold.expires_at_us + US_PER_S)
    elif what == "changed":
        await shop.holds.change(booking, shop.shop_pass("ada"), shop.ids([2]))
    elif what == "released":
        await held.release(hold.booking_id, hold.fence)
    else:
        await held.freed(EVENT, hold.indexes, hold.booking_id)
    assert held.recent.find(hold.booking_id, shop.clock()) is None


async def test_a_hold_that_was_there_before_is_not_remembered(shop: Shop) -> None:
    """Its answer is that of the first request, and its seats may have been changed since."""
    first = await shop.hold("ada", 1, key="mine")
    shop.holds.held.recent.forget(first.booking_id)
    again = await shop.hold("ada", 1, key="mine")
    assert again.repeated
    assert shop.holds.held.recent.find(first.booking_id, shop.clock()) is None


def test_a_hold_is_forgotten_at_its_end_and_no_earlier() -> None:
    recent = RecentHolds()
    recent.remember(placed(1), NO_PRICE, "", "vis_1", NOW)
    found = recent.find("bkg_1", NOW + 60 * US_PER_S - 1)
    assert found is not None
    assert (found.state, found.visit_id, found.created_at_us) == (BookingState.HELD, "vis_1", NOW)
    assert recent.find("bkg_1", NOW + 60 * US_PER_S) is None
    assert len(recent) == 0


def test_a_server_remembers_a_bounded_number_of_holds_the_newest() -> None:
    recent = RecentHolds(max_holds=3)
    for number in range(1, 6):
        recent.remember(placed(number), NO_PRICE, "", "", NOW)
    recent.remember(placed(9, repeated=True), NO_PRICE, "", "", NOW)
    assert len(recent) == 3
    assert [number for number in range(10) if recent.find(f"bkg_{number}", NOW)] == [3, 4, 5]
