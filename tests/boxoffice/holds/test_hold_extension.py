"""More time for a hold (B3): a fan gets it, and nobody keeps seats from others by asking again and again."""

from pathlib import Path

import pytest

from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.holds.model.holds import MAX_HOLD_FACTOR, HoldNotExtendable, extended_end_us
from frontrow.core.clock import US_PER_S
from tests.boxoffice.shop import open_shop, sqlite_url

HOLD_S = 600


async def test_a_hold_that_is_extended_thirty_times_ends_all_the_same(tmp_path: Path) -> None:
    async with open_shop(sqlite_url(tmp_path)) as shop:
        clock = shop.clock
        purchases = Purchases(shop.sales, shop.holds, None, clock)  # type: ignore[arg-type]  # nothing is paid
        began_us = clock()
        hold = await shop.hold("ada", 1)
        refused = 0
        for _ in range(30):
            clock.advance(60)  # type: ignore[attr-defined]
            booking = await shop.ledger.booking(hold.booking_id)
            assert booking is not None
            if not booking.live(clock()):
                break
            try:
                await purchases.extend(booking, shop.shop_pass("ada"))
            except HoldNotExtendable:
                refused += 1
        booking = await shop.ledger.booking(hold.booking_id)
        assert booking is not None
        assert refused
        assert booking.hold_expires_at_us == began_us + MAX_HOLD_FACTOR * HOLD_S * US_PER_S
        assert not booking.live(clock())


async def test_more_time_counts_from_now_and_is_refused_when_it_is_none(tmp_path: Path) -> None:
    async with open_shop(sqlite_url(tmp_path)) as shop:
        hold = await shop.hold("ada", 1)
        booking = await shop.ledger.booking(hold.booking_id)
        assert booking is not None
        with pytest.raises(HoldNotExtendable):
            extended_end_us(booking, HOLD_S * US_PER_S, shop.clock())
        later_us = shop.clock() + 60 * US_PER_S
        assert extended_end_us(booking, HOLD_S * US_PER_S, later_us) == later_us + HOLD_S * US_PER_S
