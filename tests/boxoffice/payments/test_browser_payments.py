"""Payments that the fan's browser confirms at the provider without us (issue 11, section 1; B6, B7, B9, F2, F4)."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.adapters.payments.simulated import LAPSES, Fault
from frontrow.boxoffice.checkout.checkout import CheckoutState
from frontrow.boxoffice.facts.model import (
    BookingConfirmed,
    HoldReleased,
    LatePaymentReturned,
    PaymentDeclined,
    PriorityGranted,
)
from frontrow.boxoffice.holds.model.bookings import BookingState, HoldEnded, MoveRefused
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.payments.model.provider_intents import Intent, IntentState, NewIntent
from frontrow.core.errors import FrontrowError
from tests.boxoffice.checkout.till import EVENT, HOLD_S, Till, assert_money, open_till
from tests.boxoffice.shop import shop_event

CARD = "pm_card_visa"
NO = "pm_card_declined"


@pytest.fixture
async def till(tmp_path: Path) -> AsyncIterator[Till]:
    async with open_till(tmp_path) as one:
        yield one


class Page:
    """A payment page that is open in a browser: the hold, the payment's name at the provider."""

    def __init__(self, till: Till, booking_id: str, fence: int, ref: str) -> None:
        self.till, self.booking_id, self.fence, self.ref = till, booking_id, fence, ref

    def confirm(self, card: str = CARD) -> None:
        self.till.provider.confirm_in_browser(self.ref, card)

    async def return_(self) -> CheckoutState:
        return (await self.till.checkout.check(self.booking_id, self.fence)).state

    async def webhook(self) -> None:
        body, signature = self.till.provider.notices[-1]
        await self.till.checkout.handle_webhook(body, signature)

    async def state(self) -> BookingState:
        return (await self.till.booking(self.booking_id)).state


async def opened(till: Till, *seats: int, tries: int = 1) -> Page:
    if tries > 1:
        await till.ledger.catalogue.put_event(shop_event(id=EVENT, card_tries=tries), till.clock())
    hold = await till.hold(*seats)
    begun = await till.checkout.begin(hold.booking_id, hold.fence)
    assert begun.state is CheckoutState.OPEN
    assert begun.payment is not None
    return Page(till, hold.booking_id, hold.fence, begun.payment.ref)


async def by_webhook(page: Page) -> None:
    await page.webhook()


async def by_return(page: Page) -> None:
    await page.return_()


async def by_worker(page: Page) -> None:
    page.till.clock.advance(15)
    await page.till.checkout.work()


async def by_reconciler(page: Page) -> None:
    report = await page.till.reconciler.run()
    assert report.problems == []


WAYS: list[Callable[[Page], Awaitable[None]]] = [by_webhook, by_return, by_worker, by_reconciler]


async def sold_once(page: Page, captures: int = 1) -> None:
    till = page.till
    assert await page.state() is BookingState.CONFIRMED
    await till.checkout.work()
    assert [o["amount_received"] for o in till.provider.objects.values()] == [5000]
    assert till.provider.calls["capture"] <= captures
    assert [type(f) for f in await till.facts()].count(BookingConfirmed) == 1
    assert len(await till.ledger.tickets.tickets_of(page.booking_id)) == 1
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize("way", WAYS)
async def test_each_way_alone_sells(till: Till, way: Callable[[Page], Awaitable[None]]) -> None:
    """B6: webhook alone, return alone, worker alone, reconciler alone: confirmed, captured once."""
    page = await opened(till)
    page.confirm()
    await way(page)
    await sold_once(page)


@pytest.mark.parametrize("order", list(itertools.permutations(WAYS[:3])), ids=lambda o: "-".join(w.__name__ for w in o))
async def test_all_ways_in_any_order_sell_once(
    till: Till, order: tuple[Callable[[Page], Awaitable[None]], ...]
) -> None:
    page = await opened(till)
    page.confirm()
    for way in (*order, *order):
        await way(page)
    await sold_once(page)


async def test_sixty_at_the_same_moment_sell_once(till: Till) -> None:
    """B7: return, webhook and reload at the same time, many of each."""
    page = await opened(till)
    page.confirm()
    done = await asyncio.gather(
        *(page.return_() for _ in range(30)), *(page.webhook() for _ in range(30)), return_exceptions=True
    )
    assert not [one for one in done if isinstance(one, BaseException)]
    await till.settle()
    await sold_once(page, captures=60)  # all under one key


async def test_the_webhook_of_an_authorisation_leaves_a_sold_booking_to_the_worker(till: Till) -> None:
    """It comes for every payment, a moment after the sale: it would take the provider's calls from fans who pay."""
    page = await opened(till)
    page.confirm()
    assert await page.return_() is CheckoutState.CONFIRMED
    await page.webhook()
    assert till.provider.calls["capture"] == 0
    await sold_once(page)


@pytest.mark.parametrize("who", ["a second click", "a driver that was slower"])
async def test_a_booking_that_was_read_before_its_sale_does_not_void_it(till: Till, who: str) -> None:
    """The booking was read, then somebody else sold it, then its payment was read: it is sold, and charged once."""
    page = await opened(till)
    stale = await till.booking(page.booking_id)
    assert stale.state is BookingState.PAYING
    page.confirm()
    assert await page.return_() is CheckoutState.CONFIRMED
    if who == "a second click":
        second = await till.checkout.pay(page.booking_id, page.fence, CARD, loaded=stale)
        assert second.state is CheckoutState.CONFIRMED
    else:
        await till.checkout.driver.drive(stale, await till.driver_payment(page.booking_id))
    await till.settle()
    await sold_once(page)


async def test_an_open_payment_is_looked_at_with_a_bound(till: Till) -> None:
    """Nobody pays: eight reads in ten minutes, then the object is void."""
    page = await opened(till)
    before = till.provider.calls["read"]
    await till.settle(for_s=HOLD_S - 5, step_s=5)
    assert 4 <= till.provider.calls["read"] - before <= 10
    till.clock.advance(10)
    await till.settle()
    assert till.provider.objects[page.ref]["status"] == "canceled"
    await assert_money(till, at_rest=True)


async def test_an_extended_hold_with_an_open_payment_goes_on(till: Till) -> None:
    page = await opened(till)
    booking = await till.booking(page.booking_id)
    await till.ledger.extend_hold(booking.id, booking.fence, till.clock(), booking.hold_expires_at_us + 300_000_000)
    till.clock.advance(HOLD_S + 100)
    page.confirm()
    await till.checkout.work()
    await sold_once(page)


async def test_a_card_confirmed_after_the_hold_ended_is_voided(till: Till) -> None:
    """F4, B9: the money is never taken, the seat may be somebody else's, and the person is told once."""
    page = await opened(till, 9)
    till.clock.advance(HOLD_S)
    page.confirm()
    await till.sweeper.sweep()
    await till.hold(9)
    with pytest.raises(HoldEnded):
        await till.checkout.check(page.booking_id, page.fence)
    await page.webhook()
    await till.settle()
    assert till.provider.objects[page.ref]["status"] == "canceled"
    assert [type(f) for f in await till.facts()].count(LatePaymentReturned) == 1
    await assert_money(till, at_rest=True)


async def test_three_d_secure_in_the_browser_sells(till: Till) -> None:
    page = await opened(till)
    page.confirm("pm_card_3ds")
    assert await page.return_() is CheckoutState.ACTION
    till.provider.finish_action(page.ref)
    assert await page.return_() is CheckoutState.CONFIRMED
    await sold_once(page)


# declines


@pytest.mark.parametrize("way", WAYS)
async def test_a_declined_card_in_the_browser_frees_the_seats_at_once(
    till: Till, way: Callable[[Page], Awaitable[None]]
) -> None:
    """B9: one policy for page and API: the event's number of tries, 1 by default."""
    page = await opened(till, 7)
    page.confirm(NO)
    await way(page)
    assert await page.state() is BookingState.CANCELLED
    assert (await till.hold(7)).booking_id != page.booking_id
    [declined] = [f for f in await till.facts() if isinstance(f, PaymentDeclined)]
    assert declined.reason == "card_declined"
    assert till.provider.objects[page.ref]["status"] == "canceled", "no second tab can put a card to it"
    assert await page.return_() is CheckoutState.DECLINED
    await assert_money(till, at_rest=True)


async def test_a_second_card_may_be_tried_where_the_event_says_so(till: Till) -> None:
    page = await opened(till, tries=2)
    page.confirm(NO)
    await page.webhook()
    await page.webhook()
    outcome = await till.checkout.check(page.booking_id, page.fence)
    assert (outcome.state, outcome.problem, outcome.tries_left) == (CheckoutState.OPEN, "card_declined", 1)
    page.confirm(CARD)
    assert await page.return_() is CheckoutState.CONFIRMED
    await sold_once(page)


async def test_the_last_try_frees_the_seats(till: Till) -> None:
    page = await opened(till, 7, tries=3)
    for left in (2, 1):
        page.confirm(NO)
        for _ in range(2):  # told twice, counted once
            outcome = await till.checkout.check(page.booking_id, page.fence)
            assert (outcome.state, outcome.tries_left) == (CheckoutState.OPEN, left)
    page.confirm(NO)
    assert await page.return_() is CheckoutState.DECLINED
    assert (await till.hold(7)).booking_id
    await till.settle()
    await assert_money(till, at_rest=True)


async def test_a_failed_question_of_the_bank_is_a_declined_card(till: Till) -> None:
    page = await opened(till, tries=2)
    for state in (CheckoutState.OPEN, CheckoutState.DECLINED):
        page.confirm("pm_card_3ds_declined")
        assert await page.return_() is CheckoutState.ACTION
        till.provider.finish_action(page.ref)
        assert await page.return_() is state


async def test_what_was_mistyped_never_counts(till: Till) -> None:
    page = await opened(till)
    for _ in range(4):
        page.confirm("pm_card_incorrect_cvc")
        outcome = await till.checkout.check(page.booking_id, page.fence)
        assert (outcome.state, outcome.problem, outcome.tries_left) == (CheckoutState.OPEN, "incorrect_cvc", 1)
    page.confirm()
    assert await page.return_() is CheckoutState.CONFIRMED
    await sold_once(page)


async def test_the_api_has_the_same_policy(till: Till) -> None:
    """B9: `pay` with a card that is declined, mistyped, declined again; every card is a call of its own."""
    page = await opened(till, 7, tries=2)
    key = (page.booking_id, page.fence)
    first = await till.checkout.pay(*key, NO)
    assert (first.state, first.problem, first.tries_left) == (CheckoutState.OPEN, "card_declined", 1)
    typo = await till.checkout.pay(*key, "pm_card_incorrect_cvc")
    assert (typo.state, typo.problem, typo.tries_left) == (CheckoutState.OPEN, "incorrect_cvc", 1)
    assert (await till.checkout.pay(*key, NO)).state is CheckoutState.DECLINED
    assert (await till.hold(7)).booking_id
    await till.settle()
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize("fault", list(Fault))
async def test_a_second_card_is_charged_once_whatever_is_lost(tmp_path: Path, fault: Fault) -> None:
    """F2: the call that brings the second card is lost, doubled or answered by an error."""
    faults: list[Fault] = []

    def script(asked: str, key: str, number: int) -> Fault | None:
        return faults.pop() if faults and asked == "authorise" else None

    async with open_till(tmp_path, script=script) as till:
        page = await opened(till, tries=2)
        await till.checkout.pay(page.booking_id, page.fence, NO)
        faults.append(fault)
        await till.checkout.pay(page.booking_id, page.fence, CARD)
        await till.settle(for_s=60)
        assert await page.state() is BookingState.CONFIRMED
        await assert_money(till, at_rest=True)


async def test_declines_are_counted_over_all_attempts(till: Till) -> None:
    """Stepping back and beginning again does not give new tries."""
    page = await opened(till, tries=2)
    page.confirm(NO)
    await page.return_()
    assert (await till.checkout.step_back(page.booking_id, page.fence)).state is BookingState.HELD
    again = await till.checkout.begin(page.booking_id, page.fence)
    assert again.payment is not None
    assert (again.state, again.tries_left, again.payment.attempt) == (CheckoutState.OPEN, 1, 2)
    assert till.provider.objects[page.ref]["status"] == "canceled"
    till.provider.confirm_in_browser(again.payment.ref, NO)
    assert await page.return_() is CheckoutState.DECLINED
    await till.settle()
    await assert_money(till, at_rest=True)


# giving the seats back


@pytest.mark.parametrize("card", ["", CARD, "pm_card_3ds", NO])
async def test_release_voids_what_the_page_opened(till: Till, card: str) -> None:
    """The seats are free at once, and nothing stays reserved, also when a card got through a moment before."""
    page = await opened(till, 7, tries=2)
    if card:
        page.confirm(card)
    released = await till.checkout.release(page.booking_id, page.fence)
    assert released.state is BookingState.CANCELLED
    assert till.provider.objects[page.ref]["status"] == "canceled"
    assert (await till.hold(7)).booking_id
    if card:
        await page.webhook()
    assert (await till.checkout.release(page.booking_id, page.fence)).state is BookingState.CANCELLED, "again"
    assert [type(f) for f in await till.facts()].count(HoldReleased) == 1
    await till.settle()
    await assert_money(till, at_rest=True)


async def test_release_without_a_payment_and_after_the_sale(till: Till) -> None:
    hold = await till.hold()
    assert (await till.checkout.release(hold.booking_id, hold.fence)).state is BookingState.CANCELLED
    page = await opened(till)
    page.confirm()
    await page.return_()
    with pytest.raises(MoveRefused):
        await till.checkout.release(page.booking_id, page.fence)
    await till.checkout.work()
    await assert_money(till, at_rest=True)


async def test_release_while_the_provider_is_away_frees_at_once_and_voids_later(till: Till) -> None:
    page = await opened(till, 7)
    page.confirm()
    till.provider.down = True
    assert (await till.checkout.release(page.booking_id, page.fence)).state is BookingState.CANCELLED
    assert (await till.hold(7)).booking_id
    till.provider.down = False
    await till.settle(for_s=60)
    assert till.provider.objects[page.ref]["status"] == "canceled"
    await assert_money(till, at_rest=True)


async def test_release_racing_a_confirm_either_sells_or_voids(till: Till) -> None:
    """Never both, no money kept: fifty pages, each released while its card gets through and it is looked at."""
    pages = [await opened(till) for _ in range(50)]
    for page in pages:
        page.confirm()
    await asyncio.gather(
        *(
            act
            for page in pages
            for act in (
                page.return_(),
                till.checkout.release(page.booking_id, page.fence),
                page.return_(),
                till.checkout.release(page.booking_id, page.fence),
            )
        ),
        return_exceptions=True,
    )
    await till.settle()
    for page in pages:
        found = till.provider.objects[page.ref]
        sold = await page.state() is BookingState.CONFIRMED
        assert (found["status"], found["amount_received"]) == (("succeeded", 5000) if sold else ("canceled", 0))
    await assert_money(till, at_rest=True)


async def test_an_object_that_cannot_be_voided_yet_is_not_called_void(till: Till) -> None:
    """A card that is still being processed: the void is asked again until it is settled."""
    page = await opened(till)
    found = till.provider.objects[page.ref]
    found["status"] = "processing"
    void = till.provider._void

    def refuse(ref: str) -> object:
        from frontrow.boxoffice.payments.model.provider_intents import ProviderRefused

        if found["status"] == "processing":
            raise ProviderRefused("processing", "payment_intent_unexpected_state")
        return void(ref)

    till.provider._void = refuse  # type: ignore[method-assign,assignment]
    await till.checkout.release(page.booking_id, page.fence)
    assert (await till.driver_payment(page.booking_id)).state is PaymentState.VOIDING
    found["status"] = "requires_payment_method"
    page.confirm()
    await till.settle(for_s=60)
    assert (await till.guarded.read(page.ref)).state is IntentState.VOID
    await assert_money(till, at_rest=True)


async def test_a_page_opened_while_the_provider_is_away_comes_by_itself(till: Till) -> None:
    """B8."""
    hold = await till.hold()
    till.provider.down = True
    assert (await till.checkout.begin(hold.booking_id, hold.fence)).state is CheckoutState.RETRYING
    till.provider.down = False
    await till.settle(for_s=10)
    shown = await till.checkout.begin(hold.booking_id, hold.fence)
    assert shown.state is CheckoutState.OPEN
    assert shown.client_secret
    till.provider.down = True
    away = await till.checkout.check(hold.booking_id, hold.fence)
    assert (away.state, away.client_secret) == (CheckoutState.OPEN, "")
    till.provider.down = False
    with pytest.raises(FrontrowError):
        till.provider.confirm_in_browser("pi_nobody", CARD)


@pytest.mark.parametrize("paid", [False, True], ids=["nothing paid", "paid in the browser"])
async def test_a_hold_that_ends_while_the_provider_is_away_and_its_form_is_open_gives_priority(
    till: Till, paid: bool
) -> None:
    """B8, issue 11: it ended as if the fan had not paid in time. Nothing is kept of a card that got through."""
    page = await opened(till, 7)
    if paid:
        page.confirm()
    till.provider.down = True
    await till.settle(for_s=HOLD_S + 300)
    assert await page.state() is BookingState.EXPIRED
    payment = await till.driver_payment(page.booking_id)
    assert (payment.state, payment.reason) == (PaymentState.VOIDING, "provider_unavailable")
    till.provider.down = False
    await till.settle(for_s=600)
    facts = await till.facts()
    [granted] = [fact for fact in facts if isinstance(fact, PriorityGranted)]
    assert granted.booking_id == page.booking_id
    assert granted.until_us > till.clock()
    assert not [fact for fact in facts if isinstance(fact, LatePaymentReturned)]
    assert till.provider.objects[page.ref]["status"] == "canceled"
    payment = await till.driver_payment(page.booking_id)
    assert (payment.state, payment.reason) == (PaymentState.VOIDED, "provider_unavailable")
    await assert_money(till, at_rest=True)


async def test_a_page_left_alone_or_of_a_cancelled_event_gives_no_priority(till: Till) -> None:
    left = await opened(till, 7)
    till.provider.down = True
    await till.settle(for_s=60)
    till.provider.down = False
    await till.settle(for_s=HOLD_S + 60)  # the provider was back long before the hold ended
    assert await left.state() is BookingState.EXPIRED
    stopped = await opened(till, 8, tries=2)
    till.provider.down = True
    await till.settle(for_s=60)
    async for _ in till.refunds.cancel_event(EVENT):
        pass
    await till.settle(for_s=300)
    till.provider.down = False
    await till.settle(for_s=600)
    assert await stopped.state() is BookingState.CANCELLED
    assert not [fact for fact in await till.facts() if isinstance(fact, PriorityGranted)]
    await assert_money(till, at_rest=True)


async def test_a_sale_whose_card_lapsed_and_is_not_known_here_is_cancelled(till: Till) -> None:
    """It was authorised again without a card. The simulated bank accepted that, and a bank that calls it mistyped was
    asked for ever while the fan had tickets."""
    page = await opened(till, 7)
    page.confirm(LAPSES)
    await till.settle(for_s=60)
    assert await page.state() is BookingState.CANCELLED
    assert len(await till.ledger.payments.payments_of(page.booking_id)) == 1
    await assert_money(till, at_rest=True)


async def test_a_mistyped_card_after_the_sale_ends_it(till: Till) -> None:
    """Nobody is there to type it again: a sale that lapsed was tried with the same card without end."""
    hold = await till.hold(7)
    await till.checkout.pay(hold.booking_id, hold.fence, LAPSES)
    create = till.provider.create

    async def mistyped(new: NewIntent) -> Intent:
        return await create(replace(new, method="pm_card_incorrect_cvc") if new.attempt > 1 else new)

    till.provider.create = mistyped  # type: ignore[method-assign]
    await till.settle(for_s=60)
    assert (await till.booking(hold.booking_id)).state is BookingState.CANCELLED
    await assert_money(till, at_rest=True)
