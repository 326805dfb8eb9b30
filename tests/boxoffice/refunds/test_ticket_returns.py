"""Offers and returns with the real checkout, refunds and tickets: money is conserved at every step (B11, B12, N4)."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.boxoffice.checkout.checkout import CheckoutState
from frontrow.boxoffice.gate.gate_check import Gate, GateVerdict
from frontrow.boxoffice.gate.gate_service import GateService
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.model.ticket_returns import ReturnState
from frontrow.boxoffice.tickets.model.tickets import TicketState
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.till import assert_money
from tests.boxoffice.refunds.market import Market
from tests.boxoffice.shop import EVENT, open_shop, sqlite_url
from tests.boxoffice.waiting import Waiting, small_plan


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[Market]:
    clock = ManualClock()
    async with contextlib.AsyncExitStack() as stack:
        shop = await stack.enter_async_context(open_shop(sqlite_url(tmp_path), clock=clock, plan=small_plan()))
        await shop.ledger.catalogue.put_event(shop.event, clock())
        yield Market(Waiting(shop), clock)


async def test_a_returned_seat_is_resold_through_the_waitlist_and_its_price_goes_back_once(market: Market) -> None:
    booking_id, fence = await market.sell("old", 0, 1, 2)
    for start in (3, 6, 9, 12):
        await market.sell(f"x{start}", start, start + 1, start + 2)
    await market.balanced(0)
    await market.waiting.list.join(EVENT, "ada", 1)
    await market.resale.give_back(booking_id, "old", fence, [1])
    await market.balanced()
    states = {t.seat_index: t.state for t in await market.ledger.tickets.tickets_of(booking_id)}
    assert states == {0: TicketState.VALID, 1: TicketState.REVOKED, 2: TicketState.VALID}
    await market.waiting.worker.sweep()
    (offer,) = await market.waiting.list.offers(EVENT, "ada")
    assert offer.seats == (1,)
    await market.resale.sweep()
    await market.balanced()
    claimed = await market.waiting.list.claim(offer.id, "ada")
    assert (await market.pay(claimed.booking_id, claimed.fence)).state is CheckoutState.CONFIRMED
    await market.balanced()
    for _ in range(3):  # the sweeps of several servers, and of restarts
        await market.resale.sweep()
        await market.balanced()
        await market.till.refunds.work()
        await market.balanced()
    await market.balanced(5_000)
    (refund,) = await market.ledger.payments.refunds_of(booking_id)
    assert (refund.amount_minor, refund.seats, refund.state) == (5_000, (1,), RefundState.DONE)
    assert [r.state for r in await market.ledger.returns.returns_of(booking_id)] == [ReturnState.REFUNDED]
    await market.till.settle(10)
    await assert_money(market.till, at_rest=True)
    # What is left of the old booking can still be refunded, to the last cent and not beyond.
    await market.till.refunds.override(booking_id)
    await market.till.refunds.work()
    await market.balanced(15_000)
    old = await market.ledger.booking(booking_id)
    assert old is not None
    assert old.state is BookingState.REFUNDED


async def test_the_old_qr_is_dead_at_the_gate_from_the_moment_it_is_given_back(market: Market) -> None:
    """B11, ADR 0073: before the seat is resold, and for good; what the booking keeps still opens the gate."""
    booking_id, fence = await market.sell("old", 0, 1)
    keys = TicketKeys(bytes(32))
    renderer = TicketRenderer(market.ledger, keys)
    gates = GateService(market.ledger, keys, renderer)
    given, kept = (renderer.signed(ticket).code for ticket in await market.ledger.tickets.tickets_of(booking_id))

    async def entry(code: str) -> GateVerdict:
        gate = Gate(await gates.bundle(EVENT, market.clock()), "north")
        return gate.verify(code, market.clock())[0]

    assert [await entry(given), await entry(kept)] == [GateVerdict.WELCOME] * 2
    await market.resale.give_back(booking_id, "old", fence, [0])
    assert [await entry(given), await entry(kept)] == [GateVerdict.REVOKED, GateVerdict.WELCOME]
    await market.sell("new", 0)
    assert await entry(given) is GateVerdict.REVOKED


async def test_a_whole_booking_returned_and_resold_seat_by_seat_pays_what_was_captured(market: Market) -> None:
    booking_id, fence = await market.sell("old", 0, 1)
    await market.resale.give_back(booking_id, "old", fence)
    await market.till.settle(120, 30)  # the money's workers see a cancelled booking and leave it alone
    await market.balanced()
    for fan, seat in (("a", 0), ("b", 1)):
        await market.sell(fan, seat)
        await market.resale.sweep()
        await market.till.refunds.work()
        await market.balanced()
    await market.balanced(10_000)
    assert sum(r.amount_minor for r in await market.ledger.payments.refunds_of(booking_id)) == 10_000


async def test_never_more_goes_back_than_was_paid(market: Market) -> None:
    """A return whose money went back on another way is settled without paying again."""
    booking_id, fence = await market.sell("old", 0)
    await market.resale.give_back(booking_id, "old", fence)
    (given,) = await market.ledger.returns.returns_of(booking_id)
    await market.money.refund_return(given, market.clock())
    await market.money.refund_return(given, market.clock())
    assert len(await market.ledger.payments.refunds_of(booking_id)) == 1
    other = type(given)(**{**{name: getattr(given, name) for name in given.__struct_fields__}, "id": "rtn_other"})
    await market.money.refund_return(other, market.clock())
    assert len(await market.ledger.payments.refunds_of(booking_id)) == 1, "refunded beyond the payment"
