"""Disputes: the fan's bank takes money back. What is disputed is never refunded, and the books say what was lost."""

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontrow.boxoffice.facts.model import DisputeEnded, DisputeLost, DisputeOpened
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.payments.model.disputes import (
    AGAINST,
    NEXT_DISPUTE,
    STATE_OF_NOTICE,
    BookingDisputed,
    DisputeState,
    PaymentDispute,
)
from frontrow.boxoffice.payments.model.provider_intents import Dispute, Notice, NoticeKind
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.core.clock import US_PER_S
from tests.boxoffice.checkout.till import EVENT, Till, open_till
from tests.boxoffice.payments.crashes import pay_although_void
from tests.boxoffice.shop import shop_event
from tests.support.log_lines import log_lines

CARD = "pm_card_visa"
TOLD = (DisputeOpened, DisputeEnded, DisputeLost)


@pytest.fixture
async def till(tmp_path: Path) -> AsyncIterator[Till]:
    async with open_till(tmp_path) as one:
        await one.ledger.catalogue.put_event(shop_event(id=EVENT), one.clock())
        yield one


async def sold(till: Till, *seats: int) -> tuple[str, int, str]:
    hold = await till.hold(*seats)
    await till.pay(hold.booking_id, hold.fence, CARD)
    await till.hear()
    return hold.booking_id, hold.fence, (await till.driver_payment(hold.booking_id)).ref


async def states(till: Till, booking_id: str) -> list[DisputeState]:
    return [one.state for one in await till.ledger.payments.disputes_of(booking_id)]


def given_back(till: Till, ref: str) -> int:
    return sum(one["amount"] for one in till.provider.state.refunds_of(ref) if one["status"] != "failed")


async def test_a_dispute_is_on_the_booking_and_the_team_hears_of_each_step_once(till: Till) -> None:
    booking_id, _, ref = await sold(till, 1, 2)
    with log_lines() as lines:
        dispute = till.provider.open_dispute(ref, amount_minor=5_000)
        twice = list(till.provider.notices) * 2
        till.provider.notices.extend(twice)
        await till.hear()
        (kept,) = await till.ledger.payments.disputes_of(booking_id)
        assert (kept.ref, kept.amount_minor, kept.currency, kept.reason) == (dispute, 5_000, "EUR", "fraudulent")
        assert kept.answer_by_us == (till.clock() // US_PER_S + 7 * 86_400) * US_PER_S
        till.provider.close_dispute(ref, "won", amount_minor=5_000)
        await till.hear()
        assert await states(till, booking_id) == [DisputeState.WON]
        till.provider.open_dispute(ref, number=2)
        till.provider.close_dispute(ref, "lost", number=2)
        await till.hear()
        said = [one["action"] for one in lines() if one["action"].startswith("dispute_")]
        assert said == ["dispute_opened", "dispute_ended", "dispute_opened", "dispute_lost"]
    told = [type(fact) for fact in await till.facts() if isinstance(fact, TOLD)]
    assert told == [DisputeOpened, DisputeEnded, DisputeOpened, DisputeLost]
    page = await till.ledger.payments.disputes("", EVENT, 10)
    assert {one.state for one in page} == {DisputeState.WON, DisputeState.LOST}


def a_notice(kind: NoticeKind, ref: str) -> Notice:
    return Notice(f"evt_{kind}", kind, ref, dispute=Dispute("dp_1", 5_000, "EUR"))


AFTER = {
    DisputeState.OPEN: {DisputeState.WON, DisputeState.LOST, DisputeState.CLOSED},
    DisputeState.CLOSED: {DisputeState.WON, DisputeState.LOST},
    DisputeState.WON: {DisputeState.LOST},
    DisputeState.LOST: set(),
}


@pytest.mark.parametrize(("was", "kind"), list(itertools.product([None, *DisputeState], STATE_OF_NOTICE)))
async def test_every_notice_in_every_state_does_what_the_table_says(
    till: Till, was: DisputeState | None, kind: NoticeKind
) -> None:
    """Late and reordered notices. What is lost stays lost, and what has ended does not open again."""
    booking_id, _, ref = await sold(till, 1)
    payment = await till.driver_payment(booking_id)
    about = ("simulated", "dp_1", ref, payment.id, booking_id, EVENT, 5_000, "EUR")
    if was is not None:
        assert await till.ledger.payments.record_dispute(PaymentDispute(*about, was))
    state = STATE_OF_NOTICE[kind]
    moved = await till.ledger.payments.record_dispute(PaymentDispute(*about, state))
    assert moved is (was is None or state in AFTER[was])
    assert await states(till, booking_id) == [state if moved else was]
    assert AFTER == NEXT_DISPUTE


async def test_of_sixty_equal_notices_at_once_one_is_told(till: Till) -> None:
    booking_id, _, ref = await sold(till, 1)
    payment = await till.driver_payment(booking_id)
    listener = till.checkout._notices._listeners[0]
    for kind in (NoticeKind.DISPUTE_OPENED, NoticeKind.DISPUTE_LOST):
        notice = a_notice(kind, ref)
        await asyncio.gather(*(listener.heard("simulated", notice, payment) for _ in range(60)))
    told = [type(fact) for fact in await till.facts() if isinstance(fact, TOLD)]
    assert told == [DisputeOpened, DisputeLost]


async def test_a_fan_and_an_organiser_read_why_nothing_is_refunded(till: Till) -> None:
    booking_id, fence, ref = await sold(till, 1, 2)
    till.provider.open_dispute(ref)
    await till.hear()
    booking = await till.booking(booking_id)
    for call in (
        till.refunds.refund(booking_id, fence),
        till.refunds.refund(booking_id, fence, [1]),
        till.refunds.override(booking_id),
        till.refunds.quote(booking, [1]),
    ):
        with pytest.raises(BookingDisputed, match="wait until that is decided"):
            await call
    till.provider.close_dispute(ref, "lost")
    await till.hear()
    with pytest.raises(BookingDisputed, match="nothing to refund"):
        await till.refunds.override(booking_id)
    assert (await till.booking(booking_id)).state is BookingState.CONFIRMED
    assert given_back(till, ref) == 0


async def test_won_gives_everything_back_to_its_course(till: Till) -> None:
    booking_id, fence, ref = await sold(till, 1)
    till.provider.open_dispute(ref)
    till.provider.close_dispute(ref, "won")
    await till.hear()
    await till.refunds.refund(booking_id, fence)
    await till.settle()
    assert given_back(till, ref) == 5_000


async def test_a_refund_that_was_asked_before_waits_and_is_paid_once_the_dispute_is_won(till: Till) -> None:
    booking_id, fence, ref = await sold(till, 1)
    refund = await till.refunds.refund(booking_id, fence)
    till.provider.open_dispute(ref)
    await till.hear()
    with log_lines() as lines:
        await till.settle(for_s=600)
        assert [one["action"] for one in lines()] == ["refund_waits"]
    assert given_back(till, ref) == 0
    till.provider.close_dispute(ref, "won")
    await till.hear()
    await till.turn()
    (kept,) = await till.ledger.payments.refunds_of(booking_id)
    assert (kept.id, kept.state) == (refund.id, RefundState.DONE)
    assert given_back(till, ref) == 5_000


async def test_the_end_of_a_dispute_that_nobody_tells_is_found_within_an_hour(till: Till) -> None:
    """The webhook of the end was heard by another process, whose wake-up of the refund was lost."""
    booking_id, fence, ref = await sold(till, 1)
    await till.refunds.refund(booking_id, fence)
    till.provider.open_dispute(ref)
    await till.hear()
    await till.turn()
    till.provider.close_dispute(ref, "warning_closed")
    await till.hear()
    assert await states(till, booking_id) == [DisputeState.CLOSED]
    till.clock.advance(3600)
    await till.turn()
    assert given_back(till, ref) == 5_000


async def test_what_was_lost_is_never_refunded_and_the_rest_of_a_payment_is(till: Till) -> None:
    booking_id, _, ref = await sold(till, 1, 2, 3)  # 15,000
    till.provider.open_dispute(ref, amount_minor=5_000)
    till.provider.close_dispute(ref, "lost", amount_minor=5_000)
    await till.hear()
    async for _ in till.refunds.cancel_event(EVENT):
        pass
    await till.settle(for_s=600)
    (refund,) = await till.ledger.payments.refunds_of(booking_id)
    assert (refund.state, refund.failure) == (RefundState.FAILED, "lost_in_part"), "a person gives back the rest"
    assert given_back(till, ref) == 0


async def test_a_cancelled_event_waits_for_its_disputes_and_owes_nothing_for_what_was_lost(till: Till) -> None:
    kept = [await sold(till, seat) for seat in (1, 2, 3)]
    for number, (_, _, ref) in enumerate(kept[:2]):
        till.provider.open_dispute(ref, number=number)
    await till.hear()
    async for _ in till.refunds.cancel_event(EVENT):
        pass
    await till.settle(for_s=300)
    assert [given_back(till, ref) for _, _, ref in kept] == [0, 0, 5_000]
    till.provider.close_dispute(kept[0][2], "won", number=0)
    till.provider.close_dispute(kept[1][2], "lost", number=1)
    await till.hear()
    await till.settle(for_s=60)
    assert [given_back(till, ref) for _, _, ref in kept] == [5_000, 0, 5_000]
    done = [(await till.ledger.payments.refunds_of(booking_id))[0].state for booking_id, _, _ in kept]
    assert done == [RefundState.DONE, RefundState.MOOT, RefundState.DONE]


async def test_a_resold_ticket_pays_nothing_of_a_disputed_payment(till: Till) -> None:
    booking_id, fence, ref = await sold(till, 1, 2)
    booking = await till.booking(booking_id)
    till.provider.open_dispute(ref)
    await till.hear()
    await till.ledger.returns.begin_return(booking_id, booking.fan, fence, [1], till.clock())
    (listed,) = await till.ledger.returns.list_return(booking_id, [1], till.clock())
    await ReturnRefunds(till.ledger).refund_return(listed, till.clock())
    await till.settle(for_s=300)
    assert given_back(till, ref) == 0
    till.provider.close_dispute(ref, "won")
    await till.hear()
    await till.settle(for_s=30)
    assert given_back(till, ref) == 5_000


async def test_late_money_that_is_disputed_is_not_given_back_twice(till: Till) -> None:
    """Money that came for a booking that is over is refunded by itself, but not while the bank takes it back."""
    booking_id, _, ref = await sold(till, 1)
    till.provider.open_dispute(ref)
    await till.hear()
    assert await till.refunds.cancel_booking(booking_id) == "refunded"
    await till.settle(for_s=300)
    assert given_back(till, ref) == 0


@pytest.mark.parametrize(("decided", "back_minor"), [("won", 5_000), ("lost", 0)])
async def test_money_for_a_payment_the_fan_left_waits_for_its_dispute(
    till: Till, decided: str, back_minor: int
) -> None:
    """It goes back by itself, unless the bank has taken it back before."""
    hold = await till.hold(1)
    left = await till.checkout.pay(hold.booking_id, hold.fence, "ideal")
    assert left.payment is not None
    ref = left.payment.ref
    await till.checkout.step_back(hold.booking_id, hold.fence)
    await till.pay(hold.booking_id, hold.fence, CARD)
    pay_although_void(till.provider, ref)
    money = till.provider.notices[-1]
    till.provider.open_dispute(ref)
    for notice in (till.provider.notices[-1], money, money):
        await till.checkout.handle_webhook(*notice)
    reads = till.provider.calls["read"]
    await till.settle(for_s=1_800)
    assert given_back(till, ref) == 0
    assert till.provider.calls["read"] - reads < 20, "it is looked at once an hour"
    till.provider.close_dispute(ref, decided)
    await till.checkout.handle_webhook(*till.provider.notices[-1])
    till.clock.advance(3_600)
    await till.settle(for_s=60)
    assert given_back(till, ref) == back_minor
    payments = await till.ledger.payments.payments_of(hold.booking_id)
    assert all(not one.retry_at_us for one in payments)


async def test_the_reconciler_names_the_sums_and_refunds_no_disputed_object_of_nobody(till: Till) -> None:
    _, _, first = await sold(till, 1)
    _, _, second = await sold(till, 2)
    till.provider.open_dispute(first)
    till.provider.open_dispute(second)
    till.provider.close_dispute(second, "lost")
    await till.hear()
    report = await till.reconciler.run()
    assert (report.disputed_minor, report.lost_minor) == ({"EUR": 5_000}, {"EUR": 5_000})
    assert (report.problems, report.difference_minor) == ([], {}), "what is decided needs no person"
    # an object that no payment of the ledger names, captured and disputed
    hold = await till.hold(7)
    booking = await till.booking(hold.booking_id)
    stray = dict(till.provider.objects[first], id="pi_stray")
    stray["metadata"] = stray["metadata"] | {"booking": booking.id, "attempt": "9"}
    till.provider.objects["pi_stray"] = stray
    till.provider.open_dispute("pi_stray")
    await till.hear()
    till.clock.advance(3600)
    report = await till.reconciler.run()
    assert any("is disputed" in problem for problem in report.problems)
    assert given_back(till, "pi_stray") == 0


moves = st.tuples(
    st.sampled_from(["fan", "organiser", "open", "won", "lost", "closed", "work", "late", "cancel", "restart"]),
    st.integers(0, 1),  # which booking
    st.sampled_from([0, 3_000]),  # of the whole payment, or a part
)


class History:
    """Two sold bookings, and what happens to them. `late`: webhooks wait until somebody fetches them."""

    def __init__(self, till: Till, known: list[tuple[str, int, str]]) -> None:
        self.till, self.known, self.late = till, known, False
        self.numbers = itertools.count(1)
        self.opened: dict[int, tuple[int, int]] = {}
        self.heard: dict[str, tuple[int, int]] = {}  # how many disputes are known, and what was given back then
        self.frozen: dict[str, int] = {}  # what was given back when a dispute became known

    async def do(self, what: str, at: int, amount: int) -> None:
        booking_id, fence, ref = self.known[at]
        till = self.till
        match what:
            case "fan" | "organiser":
                await self.ask_refund(booking_id, fence, everything=what == "organiser")
            case "open":
                if at not in self.opened and not given_back(till, ref):  # a bank disputes what it has not got back
                    self.opened[at] = next(self.numbers), amount
                    till.provider.open_dispute(ref, number=self.opened[at][0], amount_minor=amount)
            case "won" | "lost" | "closed":
                if at in self.opened:
                    number, minor = self.opened.pop(at)
                    status = "warning_closed" if what == "closed" else what
                    till.provider.close_dispute(ref, status, number=number, amount_minor=minor)
            case "work":
                await till.turn()
            case "late":
                self.late = not self.late
            case "cancel":
                async for _ in till.refunds.cancel_event(EVENT):
                    pass
            case "restart":
                self.till = till.restarted()
        if not self.late:
            await self.hear()

    async def ask_refund(self, booking_id: str, fence: int, *, everything: bool) -> None:
        booking = await self.till.booking(booking_id)
        if booking.state is not BookingState.CONFIRMED:
            return
        disputed = any(one in AGAINST for one in await states(self.till, booking_id))
        try:
            if everything:
                await self.till.refunds.override(booking_id)
            else:
                await self.till.refunds.refund(booking_id, fence, [booking.seats[0]])
        except BookingDisputed:
            assert disputed
        else:
            assert not disputed

    async def hear(self) -> None:
        await self.till.hear()
        for booking_id, _, ref in self.known:
            if DisputeState.OPEN in await states(self.till, booking_id):
                self.frozen.setdefault(ref, given_back(self.till, ref))
            else:
                self.frozen.pop(ref, None)
            count = len(await states(self.till, booking_id))
            if count > self.heard.get(ref, (0, 0))[0]:
                self.heard[ref] = count, given_back(self.till, ref)

    async def check(self) -> None:
        """Nothing is given back while a dispute is known, nor ever what was lost."""
        for booking_id, _, ref in self.known:
            found = await self.till.ledger.payments.disputes_of(booking_id)
            back, captured = given_back(self.till, ref), self.till.provider.objects[ref]["amount_received"]
            assert back == self.frozen.get(ref, back), found
            lost = sum(one.amount_minor for one in found if one.state is DisputeState.LOST)
            heard = self.heard.get(ref, (0, 0))[1]  # a refund may be paid before the notice of the dispute comes
            assert back <= max(heard, captured - lost), found
            booking = await self.till.booking(booking_id)
            worth = booking.amount_minor if booking.state is BookingState.CONFIRMED else 0
            refunds = await self.till.ledger.payments.refunds_of(booking_id)
            owed = sum(one.amount_minor for one in refunds)
            assert captured == worth + owed, "each cent is a valid ticket's, or in a refund"
            assert back <= owed


@settings(max_examples=80, deadline=None)
@given(st.lists(moves, max_size=12))
def test_over_any_history_no_cent_is_refunded_that_a_bank_has_taken(order: list[tuple[str, int, int]]) -> None:
    async def run(folder: Path) -> None:
        async with open_till(folder) as till:
            await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
            one = History(till, [await sold(till, 2 * number + 1, 2 * number + 2) for number in range(2)])
            for step in order:
                await one.do(*step)
                await one.check()
            await one.hear()
            for _ in range(2):
                await one.till.settle(for_s=30)
                await one.check()
                one.till.clock.advance(3600)
            for booking_id, _, ref in one.known:
                waiting = [
                    refund.state
                    for refund in await one.till.ledger.payments.refunds_of(booking_id)
                    if refund.state is RefundState.ASKED
                ]
                assert not waiting or ref in one.frozen, "a refund waits only for an open dispute"

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
