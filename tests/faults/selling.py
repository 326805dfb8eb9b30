"""A sale under fire: fans at two servers hold, buy, give back and abandon seats until told to stop; with a record."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable

from frontrow.boxoffice.holds.model.bookings import HoldEnded
from frontrow.boxoffice.holds.model.holds import Hold, SeatsTaken
from frontrow.core.errors import FrontrowError, Overloaded, Unavailable
from tests.boxoffice.shop import EVENT, Shop
from tests.support.eventually import eventually

FANS = 60
RECOVERY_BOUND_S = 5.0  # the promise: selling again so long after the claim store is back
LEDGER_BOUND_S = 10.0  # the same after the ledger's server is back
PAUSE_S = 0.05


async def within(true: Callable[[], bool | Awaitable[bool]], bound_s: float) -> None:
    """It becomes true in `bound_s` of the server's own time, counted in pauses of its event loop.

    On a machine that is busy with other things the loop's pauses grow as everything else does, so the bound is about
    what the service waits for (retries, checks, rebuilds), not about who else has the processor.
    """
    for _ in range(round(bound_s / PAUSE_S)):
        if await _holds(true):
            return
        await asyncio.sleep(PAUSE_S)
    assert await _holds(true), f"not within {bound_s} s"


async def _holds(true: Callable[[], bool | Awaitable[bool]]) -> bool:
    found = true()
    return found if isinstance(found, bool) else await found


class Selling:
    """60 fans at several servers. `wins` counts holds, `bought` is what was acknowledged as sold."""

    def __init__(self, shops: list[Shop], seed: int = 7) -> None:
        self.shops = shops
        self.random = random.Random(seed)
        self.wins = 0
        self.unavailable = 0
        self.bought: list[tuple[str, tuple[int, ...]]] = []
        self.unexpected: list[BaseException] = []
        self._stopped = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._fan(number)) for number in range(FANS)]

    async def stop(self) -> None:
        self._stopped = True
        await asyncio.gather(*self._tasks)

    async def until_wins(self, more: int, bound_s: float = 60.0) -> None:
        """Wait until so many more holds were won."""
        goal = self.wins + more
        await eventually(lambda: self.wins >= goal, bound_s)

    async def sells_again(self) -> None:
        """The next hold is won within the bound."""
        goal = self.wins + 1
        await within(lambda: self.wins >= goal, RECOVERY_BOUND_S)

    async def _fan(self, number: int) -> None:
        shop = self.shops[number % len(self.shops)]
        turn = 0
        while not self._stopped:
            turn += 1
            try:
                await self._attempt(shop, f"fan{number}.{turn}")
            except (Unavailable, Overloaded):
                self.unavailable += 1
            except (SeatsTaken, HoldEnded):  # somebody else's, or this fan was too slow
                pass
            except FrontrowError as error:
                self.unexpected.append(error)
            await asyncio.sleep(self.random.random() / 200)

    async def _attempt(self, shop: Shop, fan: str) -> None:
        first = self.random.randrange(shop.plan.size - 1)
        seats = (first,) if self.random.random() < 0.7 else (first, (first + 45) % shop.plan.size)
        hold = await shop.hold(fan, *seats)
        self.wins += 1
        chance = self.random.random()
        if chance < 0.10:
            await self._buy(shop, hold)
        elif chance < 0.85:
            await shop.holds.held.release(hold.booking_id, hold.fence)

    async def _buy(self, shop: Shop, hold: Hold) -> None:
        await shop.ledger.begin_payment(hold.booking_id, hold.fence, shop.clock())
        booking = await shop.ledger.confirm(hold.booking_id, hold.fence, shop.clock())
        self.bought.append((booking.id, booking.seats))  # acknowledged: from here on it must never be lost
        await shop.holds.held.sold(booking)


async def assert_nothing_was_sold_twice_or_lost(selling: Selling) -> None:
    """N4: acknowledged sales share no seat and are all in the ledger; the claim store can be made to agree with it."""
    shop = selling.shops[0]
    assert selling.unexpected == []
    times = Counter(seat for _, seats in selling.bought for seat in seats)
    assert [seat for seat, count in times.items() if count > 1] == []
    now_us = shop.clock()
    active = {seat.seat_index: seat async for seat in shop.ledger.active_seats(EVENT, now_us)}
    sold = {seat for seat, row in active.items() if row.expires_at_us == 0}
    assert set(times) <= sold


async def assert_no_seat_is_lost_for_ever(selling: Selling, later_us: int) -> None:
    """Once all holds have run out, every seat that is not sold can be held again, and no sold one."""
    shop = selling.shops[0]
    now_us = shop.clock() + later_us
    await shop.ledger.expire_due(now_us, 10_000)
    real = {seat.seat_index async for seat in shop.ledger.active_seats(EVENT, now_us)}
    await _reconcile(shop)
    stored = await shop.claims.states(EVENT, now_us)
    assert set(stored) == real


async def _reconcile(shop: Shop) -> None:
    """Reconcile as soon as this shop's breaker lets a call pass: the other shop may have sold again before it."""

    async def reconciled() -> bool:
        with contextlib.suppress(Unavailable):
            await shop.recovery.reconcile(EVENT)
            return True
        return False

    await within(reconciled, RECOVERY_BOUND_S)
