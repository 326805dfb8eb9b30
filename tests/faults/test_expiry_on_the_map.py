"""B14, N5: an expired seat is claimable at once and free on the map within a second; never early; whatever clocks say.

Nobody listens to keyspace notifications anywhere, so all of them are "lost" in every test here.
"""

import asyncio
from pathlib import Path

import pytest

from frontrow.boxoffice.holds.expiry import LedgerClock, Sweeper
from frontrow.boxoffice.holds.model.holds import SeatsTaken
from frontrow.boxoffice.seats.map.frame_log import MemoryFrameLog
from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.boxoffice.seats.map.seat_states import ClaimStates
from frontrow.core.clock import US_PER_S, SystemClock
from tests.boxoffice.shop import Shop, open_shop, sqlite_url
from tests.support.eventually import eventually


class ShiftedClock(SystemClock):
    """A machine whose clock is wrong by so much."""

    __slots__ = ("shift_us",)

    def __init__(self, shift_us: int) -> None:
        super().__init__()
        self.shift_us = shift_us

    def __call__(self) -> int:
        return super().__call__() + self.shift_us


@pytest.mark.parametrize("shift_s", [-3600, 0, 3600])
async def test_an_expired_seat_is_on_the_map_within_a_second_with_the_clock_an_hour_off(
    tmp_path: Path, redis_url: str, shift_s: int
) -> None:
    """The service's clock is an hour before or behind Redis'; the hold ends when its second is over, not earlier."""
    clock = ShiftedClock(shift_s * US_PER_S)
    ends = {"hold_ttl_s": 1, "sale_ends_at_us": clock() * 2}
    async with open_shop(sqlite_url(tmp_path), redis_url, clock=clock, **ends) as shop:
        feed = MapFeed(
            shop.plan.size, MemoryFrameLog(epoch=1), ClaimStates(shop.claims, shop.event, shop.plan.size, clock)
        )
        shop.holds.held._on_change = lambda _, seats: feed.notify(seats)
        await feed.start()
        sweeper = asyncio.create_task(Sweeper(shop.ledger, clock, on_expired=shop.holds.held.expired).run())
        try:
            hold = await shop.hold("ann", 3, 4)
            await eventually(lambda: feed.state(3) == 1)
            freed_us = await _watch_until_free(shop, feed, hold.expires_at_us)
            assert freed_us >= hold.expires_at_us, "never early"
            assert (await shop.hold("bob", 3)).fence > hold.fence
        finally:
            sweeper.cancel()
            await feed.stop()


async def _watch_until_free(shop: Shop, feed: MapFeed, ends_at_us: int) -> int:
    """When the map first showed the seat as free."""

    async def is_free() -> bool:
        if feed.state(3) == 0:
            return True
        if shop.clock() < ends_at_us - 500_000:  # it is asked for before the end, and answered before
            with pytest.raises(SeatsTaken):
                await shop.hold("cid", 3)
        return False

    await eventually(is_free)
    return shop.clock()


async def test_servers_with_clocks_two_hours_apart_agree_by_the_ledgers_time(tmp_path: Path, redis_url: str) -> None:
    """B14: one server is an hour fast, one an hour slow; holds of one are not expired to the other."""
    url = sqlite_url(tmp_path)
    ends = {"hold_ttl_s": 600, "sale_ends_at_us": SystemClock()() * 2}
    async with open_shop(url, redis_url, clock=ShiftedClock(0), **ends) as first:
        fast = await LedgerClock.measure(first.ledger, ShiftedClock(3600 * US_PER_S))
        slow = await LedgerClock.measure(first.ledger, ShiftedClock(-3600 * US_PER_S))
        assert abs(fast() - slow()) < US_PER_S
        async with (
            open_shop(url, redis_url, clock=fast, **ends) as ahead,
            open_shop(url, redis_url, clock=slow, **ends) as late,
        ):
            for holder, other, seat in ((ahead, late, 3), (late, ahead, 4)):
                await holder.hold("ann", seat)
                with pytest.raises(SeatsTaken):
                    await other.hold("bob", seat)
                assert await other.ledger.expire_due(other.clock(), 100) == []
