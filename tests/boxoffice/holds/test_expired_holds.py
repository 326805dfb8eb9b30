"""What the sweeper tells the claim store about expired holds (B14)."""

import asyncio
from pathlib import Path

import pytest

from frontrow.boxoffice.holds.expiry import Sweeper
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.core.errors import Unavailable
from tests.boxoffice.shop import EVENT, open_shop, sqlite_url
from tests.support.eventually import eventually

CLOSED = "evt_closed"


async def test_a_hold_of_an_event_that_is_closed_here_delays_nobody_elses(tmp_path: Path) -> None:
    """One of them ended the sweeper with an error, again and again, and the claims of all others stayed until recovery
    compared them."""
    async with open_shop(sqlite_url(tmp_path)) as shop:
        now_us = shop.clock()
        for number in range(3):  # the oldest ones, which are ended first
            foreign = NewHold(f"bkg_{number}", CLOSED, "eve", (number,), now_us, now_us + 1, 5000, "EUR", (5000,))
            await shop.ledger.place_hold(foreign)
        await shop.hold("ada", 3)
        shop.clock.advance(3600)  # type: ignore[attr-defined]
        shop.sale.seats.mark_taken([3], "ada", 0, shop.clock())
        sweeper = Sweeper(shop.ledger, shop.clock, on_expired=shop.holds.held.expired, every_s=0.01)
        running = asyncio.create_task(sweeper.run())
        await eventually(lambda: sweeper.ended == 4 or running.done())
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert (sweeper.ended, sweeper.failures) == (4, 0)
        assert shop.sale.seats.states[3] == 0
        assert 3 in shop.changed, "the map shows it"


async def test_an_event_that_was_closed_after_the_sale_of_its_holds_is_released_in_peace(tmp_path: Path) -> None:
    """The release is written; that there is nothing to update here is no error."""
    async with open_shop(sqlite_url(tmp_path)) as shop:
        hold = await shop.hold("ada", 3)
        shop.sales.close(EVENT)
        assert (await shop.holds.held.release(hold.booking_id, hold.fence)).state == "cancelled"


async def test_a_claim_that_cannot_be_released_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shop(sqlite_url(tmp_path)) as shop:
        holds = [await shop.hold(fan, seat) for seat, fan in enumerate(("ada", "bob", "eve"))]
        release = shop.claims.release

        async def away(event_id: str, seats: list[int], booking_id: str) -> int:
            if booking_id == holds[0].booking_id:
                raise Unavailable("the claim store does not answer")
            for _ in range(5):  # the others answer later
                await asyncio.sleep(0)
            return await release(event_id, seats, booking_id)

        monkeypatch.setattr(shop.claims, "release", away)
        shop.clock.advance(3600)  # type: ignore[attr-defined]
        sweeper = Sweeper(shop.ledger, shop.clock, on_expired=shop.holds.held.expired)
        with pytest.raises(Unavailable):
            await sweeper.sweep()
        assert {1, 2} <= set(shop.changed)
