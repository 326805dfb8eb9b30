"""For any booking and any sequence of refunds, returns and servers of two versions: no cent is lost or made."""

import asyncio
import contextlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace as changed
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.refunds.model.refund_lines import add_ons_gone, decode_refund_lines
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.boxoffice.refunds.model.refunds import Refund
from frontrow.boxoffice.refunds.model.ticket_returns import OWED_STATES, NotReturnable, ReturnState
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from tests.boxoffice.checkout.till import EVENT, Till, open_till
from tests.boxoffice.refunds.show_with_choices import CARD, SHOW, held

SEATS = (1, 2, 3, 4)
some_seats = st.sets(st.sampled_from(SEATS)).map(sorted)
buyers = st.sampled_from(["fan", "organiser", "by policy", "twice"])
steps = st.one_of(
    st.tuples(buyers, some_seats, st.integers(0, 1), st.integers(0, 2)),
    st.tuples(st.sampled_from(["return", "older"]), some_seats, st.just(0), st.just(0)),
    st.tuples(st.sampled_from(["resell", "work"]), st.just([]), st.just(0), st.just(0)),
)
policies = st.builds(
    RefundPolicy,
    fee_per_seat_minor=st.sampled_from([0, 133, 50_000]),
    fee_basis_points=st.sampled_from([0, 333]),
    keeps_seat_fees=st.booleans(),
    keeps_booking_fees=st.booleans(),
)


class OneSale:
    """One booking and what is done to it."""

    def __init__(self, till: Till, booking: Booking) -> None:
        self.till, self.fence, self.id, self.paid = till, booking.fence, booking.id, booking.amount_minor

    async def do(self, what: str, seats: Sequence[int], dinner: int, parking: int) -> None:
        """Do one thing as far as the booking still has what it is about."""
        booking = await self.till.booking(self.id)
        gone = add_ons_gone([decode_refund_lines(one.lines) for one in await self.refunds()])
        own = [seat for seat in seats if seat in booking.seats]
        extras = {"dinner": min(dinner, 1 - gone["dinner"]), "parking": min(parking, 2 - gone["parking"])}
        extras = {key: count for key, count in extras.items() if count}
        refunds, now_us = self.till.refunds, self.till.clock()
        if what == "work":
            await self.till.turn()
        elif what == "resell":
            await self.resell()
        elif booking.state is not BookingState.CONFIRMED or not (own or extras):
            return
        elif what == "return" and own:
            await self.till.ledger.returns.begin_return(self.id, booking.fan, self.fence, own, now_us)
            await self.till.ledger.returns.list_return(self.id, own, now_us)
        elif what == "older" and own:
            await self.refund_by_older_server(booking, own)
        elif what == "fan":
            await refunds.refund(self.id, self.fence, own, extras)
        elif what == "twice":
            number = (await refunds.quote(booking, own, extras)).number
            both = [refunds.refund(self.id, self.fence, own, extras, number=number) for _ in range(2)]
            first, second = await asyncio.gather(*both)
            assert first.id == second.id
        elif what in ("organiser", "by policy"):
            await refunds.override(self.id, own, extras, free_of_fee=what == "organiser")

    async def refunds(self) -> list[Refund]:
        return await self.till.ledger.payments.refunds_of(self.id)

    async def resell(self) -> None:
        for one in await self.till.ledger.returns.returns_of(self.id):
            if one.state is ReturnState.LISTED:
                await ReturnRefunds(self.till.ledger).refund_return(one, self.till.clock())
                await self.till.ledger.returns.turn_return(one.id, one.state, ReturnState.REFUNDED, self.till.clock())

    async def refund_by_older_server(self, booking: Booking, seats: Sequence[int]) -> None:
        """As the version before did it: the prices of the seats, or all that is left with the last one; no lines."""
        prices = await self.till.ledger.payments.seat_prices(self.id)
        ends = set(seats) == set(booking.seats)
        amount = booking.amount_minor if ends else sum(prices[seat] for seat in seats)
        payment, number = await self.till.driver_payment(self.id), len(await self.refunds()) + 1
        refund = Refund(
            f"rfd_{self.id[4:]}_{number}",
            self.id,
            payment.id,
            number,
            amount,
            "EUR",
            tuple(seats),
            retry_at_us=self.till.clock(),
        )
        await self.till.ledger.payments.ask_refund(refund, fence=self.fence, now_us=self.till.clock())

    async def check(self) -> None:
        """Back, kept, owed for returned tickets and paid for what is left add up to what was paid."""
        booking, refunds = await self.till.booking(self.id), await self.refunds()
        returns = await self.till.ledger.returns.returns_of(self.id)
        owed = sum(one.price_minor for one in returns if one.state in OWED_STATES)
        worth = booking.amount_minor if booking.state is BookingState.CONFIRMED else 0
        given = sum(one.amount_minor + one.fee_minor for one in refunds)
        assert given + owed + worth == self.paid, (refunds, returns, booking)
        for one in refunds:
            lines = decode_refund_lines(one.lines)
            assert not lines or sum(line.amount_minor for line in lines) == one.amount_minor


@settings(max_examples=40, deadline=None)
@given(policies, st.booleans(), st.booleans(), st.lists(steps, max_size=8))
def test_no_cent_is_lost_or_made(
    policy: RefundPolicy, family: bool, captured: bool, order: list[tuple[str, list[int], int, int]]
) -> None:
    async def run(folder: Path) -> None:
        async with open_till(folder) as till:
            await till.ledger.catalogue.put_event(changed(SHOW, refunds=policy), till.clock())
            booking_id, fence = await held(till, *SEATS, family=family, dinner=1, parking=2)
            await till.checkout.pay(booking_id, fence, CARD)
            if captured:
                await till.checkout.work()
            one = OneSale(till, await till.booking(booking_id))
            for step in order:
                with contextlib.nullcontext() if captured else contextlib.suppress(NotReturnable):
                    await one.do(*step)  # a ticket cannot be returned before the capture
                await one.check()
            async for _ in till.refunds.cancel_event(EVENT):
                pass
            await till.settle()
            await one.check()
            kept = sum(refund.fee_minor for refund in await one.refunds())
            back = sum(refund["amount"] for refund in till.provider.refunds.values())
            taken = sum(found["amount_received"] for found in till.provider.objects.values())
            assert (taken, back) in {(one.paid, one.paid - kept), (0, 0)}  # nothing was taken: it is voided
            assert taken or not captured

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
