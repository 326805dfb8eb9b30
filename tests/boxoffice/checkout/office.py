"""A box office for tests of money: a shop with its waitlist, its till, and what its organiser and its gates do."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.gate.model.scans import Scan
from frontrow.boxoffice.organiser.reseating import Reseater
from frontrow.boxoffice.refunds.event_cancellation import RETRY_US, EventCancellations
from frontrow.boxoffice.refunds.model.refunds import Refund, RefundState
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.till import ISSUER
from tests.boxoffice.refunds.market import Market
from tests.boxoffice.shop import EVENT, open_shop
from tests.boxoffice.waiting import Waiting, small_plan

ADA = Editor("stf_ada", "org_hall")


class Office(Market):
    """A market with what its organiser and its gates do."""

    def __init__(self, waiting: Waiting, clock: ManualClock) -> None:
        super().__init__(waiting, clock)
        shop = waiting.shop
        self.checkout = Checkout(shop.ledger, self.till.guarded, clock, seats=shop.holds.held, issuer=ISSUER)
        self.till.checkout = self.checkout
        self.refunds = Refunds(shop.ledger, self.till.guarded, clock, seats=shop.holds.held)
        self.till.refunds = self.refunds
        self.cancelling = EventCancellations(shop.ledger.organiser, self.refunds, clock)
        self.reseating = Reseater(shop.ledger.organiser, shop.claims, ISSUER, shop.holds.held, clock)

    def note(self, refund: Refund) -> Change:
        return Change(ADA, "retry_refund", EVENT, self.clock(), {"booking": refund.booking_id, "refund": refund.id})

    async def cancel_event(self) -> None:
        event = await self.ledger.catalogue.event(EVENT)
        cancelled = replace_event(event, status=EventStatus.CANCELLED)
        await self.ledger.catalogue.put_event(cancelled, self.clock())
        await self.ledger.organiser.begin_cancellation(Change(ADA, "cancel_event", EVENT, self.clock()))

    async def finish_cancelling(self) -> None:
        """Rounds of the job until it says done."""
        for _ in range(20):
            await self.cancelling.work()
            await self.till.turn()
            job = await self.ledger.organiser.cancellation(EVENT)
            assert job is not None
            if job.state == "done":
                break
            self.clock.advance(RETRY_US // 1_000_000)
        assert job.state == "done"
        await self.till.settle(600, 60)

    async def scan(self, booking_id: str, seat: int, scan_id: str = "scn_1") -> list[Scan]:
        (ticket,) = [one for one in await self.ledger.tickets.tickets_of(booking_id) if one.seat_index == seat]
        return await self.ledger.organiser.admit(Scan(scan_id, EVENT, ticket.id, "north", self.clock()))

    async def reseat(self, booking_id: str, leave: int, come: int) -> None:
        booking = await self.ledger.booking(booking_id)
        assert booking is not None
        change = Change(ADA, "reseat", EVENT, self.clock())
        event = await self.ledger.catalogue.event(EVENT)
        await self.reseating.move(event, self.waiting.shop.plan, booking, [leave], [come], change)

    async def refund_states(self, booking_id: str) -> list[RefundState]:
        return [one.state for one in await self.ledger.payments.refunds_of(booking_id)]

    def given(self) -> int:
        """What the provider says went back."""
        return sum(one["amount"] for one in self.till.provider.refunds.values() if one["status"] != "failed")

    async def deliver(self) -> None:
        """The provider's webhooks so far."""
        while self.till.provider.notices:
            await self.checkout.handle_webhook(*self.till.provider.notices.popleft())


def replace_event(event: Event, **changes: Any) -> Event:
    return dataclasses.replace(event, **changes)


@contextlib.asynccontextmanager
async def an_office(url: str) -> AsyncIterator[Office]:
    clock = ManualClock()
    async with open_shop(url, clock=clock, plan=small_plan()) as shop:
        await shop.ledger.catalogue.put_event(shop.event, clock())
        yield Office(Waiting(shop), clock)


@contextlib.asynccontextmanager
async def an_office_beside(url: str, other: Office) -> AsyncIterator[Office]:
    """Another server on the same ledger, with the same provider."""
    async with open_shop(url, clock=other.clock, plan=small_plan()) as shop:
        one = Office(Waiting(shop), other.clock)
        one.till.provider = other.till.provider
        one.till.guarded.inner = other.till.provider
        yield one
