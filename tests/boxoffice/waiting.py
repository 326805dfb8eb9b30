"""A sold-out little shop with a waitlist, for tests: services over a real ledger, hooks in memory."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.facts.model import Fact
from frontrow.boxoffice.holds.expiry import Sweeper
from frontrow.boxoffice.holds.model.holds import Hold
from frontrow.boxoffice.refunds.model.ticket_returns import Return
from frontrow.boxoffice.refunds.ticket_returns import TicketReturns
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, Section, area
from frontrow.boxoffice.waitlist.offers import OfferWorker
from frontrow.boxoffice.waitlist.waitlist_entries import WaitlistService
from frontrow.core.errors import Unavailable
from frontrow.testing.clock import ManualClock
from tests.boxoffice.shop import EVENT, Shop, open_shop
from tests.support.booking_moves import cancel_booking, decline_booking, refund_booking


def small_plan() -> Plan:
    """Section A of 2 rows x 4 (seats 0-7), B of 1 x 4 (8-11), standing area S of 3 (12-14)."""
    rows = tuple(Row(f"{r}", tuple(Seat(f"{s}") for s in range(1, 5)), rank=r) for r in (1, 2))
    return Plan("small", (Section("A", rows), Section("B", rows[:1], rank=1), area("S", 3)))


class Hooks:
    """Tickets and money in memory; fails when told to."""

    def __init__(self) -> None:
        self.dead: set[tuple[str, int]] = set()
        self.paid: dict[str, int] = {}
        self.calls = 0
        self.failing = 0

    async def revoke(self, booking_id: str, seats: Sequence[int], now_us: int) -> None:
        self._maybe_fail()
        self.dead |= {(booking_id, seat) for seat in seats}

    async def refund_return(self, resold: Return, now_us: int) -> None:
        self._maybe_fail()
        self.calls += 1
        self.paid[resold.id] = resold.price_minor  # the id is the key: once, however often asked

    def _maybe_fail(self) -> None:
        if self.failing:
            self.failing -= 1
            raise Unavailable("no answer")


class Waiting:
    """A shop with its waitlist, worker, resale and expiry."""

    def __init__(self, shop: Shop) -> None:
        self.shop, self.ledger, self.clock = shop, shop.ledger, shop.clock
        self.hooks = Hooks()
        parts = (shop.sales, shop.ledger, shop.claims, shop.holds.held, shop.clock)
        self.list = WaitlistService(*parts)
        self.worker = OfferWorker(*parts, every_s=0.01)
        self.resale = TicketReturns(
            shop.sales, shop.ledger, shop.holds.held, self.hooks, shop.clock, tickets=self.hooks
        )
        self.expiry = Sweeper(shop.ledger, shop.clock, on_expired=shop.holds.held.expired)

    async def bought(self, fan: str, *seats: int) -> Hold:
        hold = await self.shop.hold(fan, *seats)
        await self.shop.buy(hold)
        return hold

    async def facts(self) -> list[Fact]:
        """The facts since the last look, in order."""
        claimed = await self.ledger.claim_facts(self.clock(), 1, 10_000)
        await self.ledger.facts_published([fact.number for fact in claimed], self.clock())
        return [fact.fact for fact in claimed]

    async def tell(self) -> int:
        """The bus works: the worker hears all facts and serves."""
        for fact in await self.facts():
            self.worker.note_fact(fact)
            self.resale.note_fact(fact)
        await self.resale.sweep()
        return await self.worker.serve_noted()

    async def offered(self, *fans: str) -> dict[str, tuple[int, ...]]:
        """Open offers of these fans."""
        found = {fan: await self.list.offers(EVENT, fan) for fan in fans}
        return {fan: offers[0].seats for fan, offers in found.items() if offers}

    async def status(self) -> EventStatus:
        return (await self.ledger.catalogue.event(EVENT)).status


@contextlib.asynccontextmanager
async def sold_out(ledger_url: str, redis_url: str | None = None, **more: Any) -> AsyncIterator[Waiting]:
    """Everything sold: A row 1 to one fan a seat (s0-s3), the rest in one booking each of row 2, B and S."""
    more.setdefault("plan", small_plan())
    async with open_shop(ledger_url, redis_url, **more) as shop:
        await shop.ledger.catalogue.put_event(shop.event, shop.clock())
        waiting = Waiting(shop)
        if shop.plan.size == small_plan().size:
            for seat in range(4):
                await waiting.bought(f"s{seat}", seat)
            await waiting.bought("row2", *range(4, 8))
            await waiting.bought("b", *range(8, 12))
            await waiting.bought("s", *range(12, 15))
        yield waiting


@contextlib.asynccontextmanager
async def second_server(ledger_url: str, redis_url: str | None, other: Waiting) -> AsyncIterator[Waiting]:
    """Another server of the same shop."""
    async with open_shop(ledger_url, redis_url, clock=other.clock, plan=other.shop.plan) as shop:
        yield Waiting(shop)


# ways in which seat 0 becomes free


def clock_of(waiting: Waiting) -> ManualClock:
    assert isinstance(waiting.clock, ManualClock)
    return waiting.clock


async def refund_seat(waiting: Waiting, fan: str) -> None:
    """The fan's booking is refunded; the seats are free in ledger and claim store."""
    (booking,) = await waiting.ledger.bookings_of(EVENT, fan)
    ended = await refund_booking(waiting.ledger, booking.id, booking.fence, waiting.clock())
    await waiting.shop.holds.held.freed(EVENT, ended.seats, ended.id)


async def by_refund(waiting: Waiting) -> None:
    await refund_seat(waiting, "s0")


async def by_cancellation(waiting: Waiting) -> None:
    (booking,) = await waiting.ledger.bookings_of(EVENT, "s0")
    ended = await cancel_booking(waiting.ledger, booking.id, booking.fence, waiting.clock())
    await waiting.shop.holds.held.freed(EVENT, ended.seats, ended.id)


async def by_release(waiting: Waiting) -> None:
    await refund_seat(waiting, "s0")
    hold = await waiting.shop.hold("quick", 0)
    await waiting.shop.holds.held.release(hold.booking_id, hold.fence)


async def by_decline(waiting: Waiting) -> None:
    await refund_seat(waiting, "s0")
    hold = await waiting.shop.hold("quick", 0)
    await waiting.ledger.begin_payment(hold.booking_id, hold.fence, waiting.clock())
    ended = await decline_booking(waiting.ledger, hold.booking_id, hold.fence, waiting.clock())
    await waiting.shop.holds.held.freed(EVENT, ended.seats, ended.id)


async def by_expiry(waiting: Waiting) -> None:
    await refund_seat(waiting, "s0")
    await waiting.shop.hold("quick", 0)
    clock_of(waiting).advance(600)
    assert await waiting.expiry.sweep() == 1


async def by_return(waiting: Waiting) -> None:
    (booking,) = await waiting.ledger.bookings_of(EVENT, "s0")
    await waiting.resale.give_back(booking.id, "s0", booking.fence)
