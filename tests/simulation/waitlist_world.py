"""A sold-out show in virtual time: fans who join, buy, pay, refuse, return and vanish; facts that get lost; a ledger
whose requests and replies get lost; processes that die anywhere and start again with empty memory. One seed decides.

The ledger is the real one on SQLite. Tickets and money are hooks that live outside of the process.
"""

import contextlib
import functools
import random
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.facts.model import Fact, decode_fact
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.testing.clock import ManualClock
from tests.boxoffice.shop import EVENT, Shop, shop_event
from tests.boxoffice.waiting import Hooks, Waiting, small_plan
from tests.support.booking_moves import decline_booking, refund_booking

CAP = 4
FANS = [f"f{n}" for n in range(14)]
FAULTY = frozenset(
    {
        "make_offers",
        "claim_offer",
        "decline_offer",
        "end_finished_offers",
        "join_waitlist",
        "leave_waitlist",
        "expire_due",
        "begin_return",
        "list_return",
        "mark_resales",
        "turn_return",
        "shift_event",
        "waiting_page",
        "place_hold",
    }
)


class Killed(Exception):
    """The process died here."""


class FaultyLedger:
    """The real ledger behind a bad line: requests and replies get lost, and the process may die at either."""

    def __init__(self, real: SqlLedger, dice: random.Random, rate: float) -> None:
        self._real, self._dice, self.rate = real, dice, rate
        self.waitlist, self.returns = FaultyBook(self, real.waitlist), FaultyBook(self, real.returns)

    def __getattr__(self, name: str) -> Any:
        return self.faulty(self._real, name)

    def faulty(self, of: Any, name: str) -> Any:
        """An attribute of the ledger or of one of its books, behind the bad line."""
        found = getattr(of, name)
        return functools.partial(self._call, found) if name in FAULTY else found

    async def _call(self, method: Callable[..., Awaitable[Any]], *arguments: Any, **named: Any) -> Any:
        fault = self._dice.random()
        if fault < self.rate:
            raise self._fault(fault)
        answer = await method(*arguments, **named)
        if self.rate <= fault < 2 * self.rate:
            raise self._fault(fault - self.rate)
        return answer

    def _fault(self, fault: float) -> Exception:
        return Killed() if fault < self.rate / 2 else Unavailable("no answer")


class FaultyBook:
    """A book of the ledger behind the same bad line."""

    def __init__(self, ledger: FaultyLedger, real: Any) -> None:
        self._ledger, self._real = ledger, real

    def __getattr__(self, name: str) -> Any:
        return self._ledger.faulty(self._real, name)


class World:
    """Everything that a seed decides."""

    def __init__(self, ledger: SqlLedger, path: str, seed: int, rate: float) -> None:
        self.dice = random.Random(seed)
        self.real, self.path = ledger, path
        self.clock = ManualClock()
        self.ledger = FaultyLedger(ledger, self.dice, rate)
        self.hooks = Hooks()
        self.deaths = 0
        self.said: Counter[str] = Counter()

    async def begin(self) -> None:
        event = shop_event(max_per_person=CAP, hold_ttl_s=600)
        await self.real.catalogue.put_event(event, self.clock())
        await self.restart()
        rate, self.ledger.rate = self.ledger.rate, 0.0
        for seat in range(0, 15, 3):
            await self.waiting.bought(f"first{seat}", seat, seat + 1, seat + 2)
        self.ledger.rate = rate

    async def restart(self) -> None:
        """A new process: nothing in memory, the claim store filled from the ledger."""
        event = await self.real.catalogue.event(EVENT)
        shop = Shop(MemoryClaims(), self.ledger, self.clock, event, small_plan())  # type: ignore[arg-type]
        self.waiting = Waiting(shop)
        self.waiting.hooks = self.hooks
        self.waiting.resale._tickets = self.waiting.resale._money = self.hooks
        assert await shop.recovery.check(EVENT)

    async def step(self) -> None:
        """One thing happens; errors of the box office are answers, a death is a restart."""
        often = [self.time_passes, self.a_fan_joins, self.a_fan_answers, self.some_facts_arrive, self.a_sweep]
        seldom = [self.a_fan_leaves, self.a_fan_buys, self.a_refund, self.a_return, self.the_bouncer_agrees]
        acts = [*often * 3, *seldom, *[self.the_public_buys, self.a_holder_pays] * 2]
        act = self.dice.choice(acts)
        try:
            await act()
            self.said[act.__name__] += 1
        except FrontrowError as error:
            self.said[error.code] += 1
        except Killed:
            self.deaths += 1
            await self.restart()
        await self.waiting.shop.holds.aclose()

    # what happens

    async def time_passes(self) -> None:
        self.clock.advance(self.dice.choice([1, 20, 100, 301]))

    async def a_fan_joins(self) -> None:
        sections = self.dice.choice([(), (), ("A",), ("B", "S")])
        count, split_ok = self.dice.choice([1, 1, 2, 3]), self.dice.random() < 0.3
        await self.waiting.list.join(EVENT, self.dice.choice(FANS), count, sections=sections, split_ok=split_ok)

    async def a_fan_leaves(self) -> None:
        entry = await self.real.waitlist.entry_of_fan(EVENT, self.dice.choice(FANS))
        if entry is not None and self.dice.random() < 0.5:
            await self.waiting.list.leave(entry.id, entry.fan)

    async def a_fan_answers(self) -> None:
        for fan in self.dice.sample(FANS, 5):
            for offer in await self.waiting.list.offers(EVENT, fan):
                if self.dice.random() < 0.7:
                    await self.waiting.list.claim(offer.id, fan)
                else:
                    await self.waiting.list.decline(offer.id, fan)
                return

    async def a_fan_buys(self) -> None:
        await self.waiting.shop.hold(self.dice.choice(FANS), self.dice.randrange(15))

    async def the_public_buys(self) -> None:
        """People who wait for nothing take what is on sale."""
        states = [s.seat_index async for s in self.real.active_seats(EVENT, self.clock())]
        for seat in sorted(set(range(15)) - set(states)):
            await self.waiting.bought(f"p{self.dice.randrange(50)}", seat)

    async def a_holder_pays(self) -> None:
        booking = await self._some(BookingState.HELD)
        if booking is not None:
            now_us = self.clock()
            await self.real.begin_payment(booking.id, booking.fence, now_us)
            if self.dice.random() < 0.8:
                await self.waiting.shop.holds.held.sold(await self.real.confirm(booking.id, booking.fence, now_us))
            else:
                ended = await decline_booking(self.real, booking.id, booking.fence, now_us)
                await self.waiting.shop.holds.held.freed(EVENT, ended.seats, ended.id)

    async def a_refund(self) -> None:
        booking = await self._some(BookingState.CONFIRMED)
        if booking is not None:
            ended = await refund_booking(self.real, booking.id, booking.fence, self.clock())
            await self.waiting.shop.holds.held.freed(EVENT, ended.seats, ended.id)

    async def a_return(self) -> None:
        booking = await self._some(BookingState.CONFIRMED)
        if booking is not None:
            self.hooks.failing = int(self.dice.random() < 0.2)
            seats = self.dice.sample(booking.seats, self.dice.randint(1, len(booking.seats)))
            await self.waiting.resale.give_back(booking.id, booking.fan, booking.fence, seats)

    async def some_facts_arrive(self) -> None:
        """Half of them are lost on the way."""
        for fact in await self.waiting.facts():
            if self.dice.random() < 0.5:
                self.waiting.worker.note_fact(fact)
                self.waiting.resale.note_fact(fact)
        await self.waiting.resale.sweep()
        await self.waiting.worker.serve_noted()

    async def a_sweep(self) -> None:
        await self.dice.choice([self.waiting.worker, self.waiting.expiry, self.waiting.resale]).sweep()

    async def the_bouncer_agrees(self) -> None:
        await self.waiting.shop.recovery.reconcile(EVENT)

    async def _some(self, state: BookingState) -> Any:
        """A live booking in this state."""
        now_us = self.clock()
        found = {s.fence: s.booking_id async for s in self.real.active_seats(EVENT, now_us) if s.state is state}
        return await self.real.booking(found[self.dice.choice(sorted(found))]) if found else None

    # what is left

    async def come_to_rest(self) -> None:
        """No more faults, nobody does anything: sweeps alone put everything in order, all facts lost."""
        self.ledger.rate, self.hooks.failing = 0.0, 0
        await self.restart()
        for _ in range(3):
            await self.waiting.expiry.sweep()
            await self.waiting.shop.recovery.reconcile(EVENT)
            await self.waiting.resale.sweep()
            await self.waiting.worker.sweep()

    def history(self) -> list[Fact]:
        """Every fact that was ever written, in order."""
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            rows = connection.execute("SELECT body FROM outbox ORDER BY number").fetchall()
        return [decode_fact(row[0]) for row in rows]
