"""A market for tests: a shop, its waitlist and its till over one ledger, and a whole sale on it."""

import contextlib
from collections.abc import AsyncIterator

from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutResult, CheckoutState
from frontrow.boxoffice.gate.model.scans import Scan
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.model.ticket_returns import ReturnState
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.boxoffice.refunds.ticket_returns import TicketReturns
from frontrow.boxoffice.tickets.model.tickets import TicketState
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.till import Till
from tests.boxoffice.shop import EVENT, open_shop
from tests.boxoffice.waiting import Waiting, small_plan

CARD = "pm_card_visa"


class Market:
    """A shop, its waitlist and its till over one ledger."""

    def __init__(self, waiting: Waiting, clock: ManualClock) -> None:
        self.waiting, self.ledger, self.clock = waiting, waiting.ledger, clock
        self.till = Till(waiting.ledger, clock)
        shop = waiting.shop
        issuer = Issuer(TicketKeys(bytes(32)))
        self.checkout = Checkout(shop.ledger, self.till.guarded, clock, seats=shop.holds.held, issuer=issuer)
        self.money = ReturnRefunds(shop.ledger)
        self.resale = TicketReturns(shop.sales, shop.ledger, shop.holds.held, self.money, clock)

    async def sell(self, fan: str, *seats: int) -> tuple[str, int]:
        hold = await self.waiting.shop.hold(fan, *seats)
        assert (await self.pay(hold.booking_id, hold.fence)).state is CheckoutState.CONFIRMED
        return hold.booking_id, hold.fence

    async def pay(self, booking_id: str, fence: int, card: str = CARD) -> CheckoutResult:
        """Pay, and let the worker take the money."""
        result = await self.checkout.pay(booking_id, fence, card)
        await self.checkout.work()
        return result

    async def balanced(self, paid_out: int | None = None) -> None:
        """captured - refunded = what valid tickets cost + what returned ones are still owed."""
        captured = worth = asked = 0
        async for payment in self.ledger.payments.all_payments():
            captured += payment.amount_minor * (payment.state is PaymentState.CAPTURED)
        bookings = {s.booking_id async for s in self.ledger.active_seats(EVENT, self.clock())}
        for booking_id in bookings:
            prices = await self.ledger.payments.seat_prices(booking_id)
            tickets = [t for t in await self.ledger.tickets.tickets_of(booking_id) if t.state is TicketState.VALID]
            assert {t.seat_index for t in tickets} <= prices.keys()
            worth += sum(prices[t.seat_index] for t in tickets)
        refunded = sum(refund["amount"] for refund in self.till.provider.refunds.values())
        unsettled = await self.ledger.returns.returns_of_event(EVENT, "", 1_000)
        owed = sum(one.price_minor for one in unsettled if one.state is not ReturnState.GIVING)
        async for payment in self.ledger.payments.all_payments():
            refunds = await self.ledger.payments.refunds_of(payment.booking_id)
            asked += sum(refund.amount_minor for refund in refunds if refund.state is RefundState.ASKED)
        assert captured - refunded == worth + owed + asked, (captured, refunded, worth, owed, asked)
        if paid_out is not None:
            assert (refunded, owed, asked) == (paid_out, 0, 0)
        assert (await verify(self.ledger.store))[0] == []


@contextlib.asynccontextmanager
async def open_market(url: str, clock: ManualClock, event_id: str) -> AsyncIterator[Market]:
    async with open_shop(url, clock=clock, plan=small_plan(), ready=False, id=event_id) as shop:
        assert await shop.recovery.check(event_id)
        await shop.ledger.catalogue.put_event(shop.event, clock())
        yield Market(Waiting(shop), clock)


async def sell_everything(market: Market, event_id: str) -> None:
    """Hold, pay, wait, return, resell, refund and scan."""
    ledger, now_us = market.ledger, market.clock()
    booking_id, fence = await market.sell("old", 0, 1, 2)
    for start in (3, 6, 9, 12):
        await market.sell(f"x{start}", start, start + 1, start + 2)
    await market.waiting.list.join(event_id, "ada", 1)
    await market.resale.give_back(booking_id, "old", fence, [1])
    await market.waiting.worker.serve_event(event_id)
    (offer,) = await market.waiting.list.offers(event_id, "ada")
    claimed = await market.waiting.list.claim(offer.id, "ada")
    await market.pay(claimed.booking_id, claimed.fence)
    await market.resale.sweep()
    await market.till.refunds.work()
    ticket = (await ledger.tickets.tickets_of(claimed.booking_id))[0]
    await ledger.tickets.record_scans([Scan(f"scn_{event_id}", event_id, ticket.id, "north", now_us)])
    await market.till.refunds.override(booking_id)
    await market.till.refunds.work()
