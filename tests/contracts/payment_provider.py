"""The contract of the PaymentProvider port as plain checks: over the simulated provider and Stripe's client."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec

from frontrow.boxoffice.payments.model.provider_intents import Intent, IntentState, NewIntent, ProviderRefused
from frontrow.boxoffice.payments.ports import PaymentProvider

CALLERS = 60
_numbers = itertools.count(1)


class ProviderCase:
    """A provider and its cards: `visa`, `declined`, `3ds`; `answer` is the fan at the bank's page."""

    def __init__(
        self, provider: PaymentProvider, cards: dict[str, str], answer: Callable[[Intent, bool], Awaitable[None]]
    ) -> None:
        self.provider, self.cards, self.answer = provider, cards, answer

    def new(self, amount_minor: int = 5000, booking: str = "") -> NewIntent:
        booking = booking or f"bkg_C{next(_numbers):025d}"
        return NewIntent(booking, 1, amount_minor, "EUR", "evt_1", 7, (1, 2), f"{booking}:create:1")

    async def authorised(self, amount_minor: int = 5000) -> Intent:
        made = await self.provider.create(self.new(amount_minor))
        return await self.provider.authorise(made.ref, self.cards["visa"], f"{made.ref}:authorise:1")

    async def captured(self, amount_minor: int = 5000) -> Intent:
        held = await self.authorised(amount_minor)
        return await self.provider.capture(held.ref, f"{held.ref}:capture:1")


Check = Callable[[ProviderCase], Coroutine[Any, Any, None]]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    CHECKS.append(function)
    return function


async def refused(call: Awaitable[Any]) -> ProviderRefused:
    try:
        answer = await call
    except ProviderRefused as error:
        return error
    raise AssertionError(f"expected a refusal, got {answer!r}")


@check
async def a_new_object_reserves_nothing_and_names_its_booking(case: ProviderCase) -> None:
    new = case.new(1234)
    made = await case.provider.create(new)
    assert (made.state, made.amount_minor, made.currency) == (IntentState.CREATED, 1234, "EUR")
    assert (made.booking_id, made.attempt, made.captured_minor, made.declined) == (new.booking_id, 1, 0, False)
    assert made.client_secret
    assert await case.provider.read(made.ref) == made


@check
async def the_same_key_is_the_same_call(case: ProviderCase) -> None:
    new = case.new()
    made = await asyncio.gather(*(case.provider.create(new) for _ in range(CALLERS)))
    assert len({one.ref for one in made}) == 1
    other = NewIntent(new.booking_id, 1, 1, "EUR", "evt_1", 7, (1,), new.key)
    await refused(case.provider.create(other))


@check
async def authorise_then_capture_takes_the_money_once(case: ProviderCase) -> None:
    held = await case.authorised()
    assert (held.state, held.captured_minor) == (IntentState.AUTHORISED, 0)
    taken = await case.provider.capture(held.ref, f"{held.ref}:capture:1")
    assert (taken.state, taken.captured_minor) == (IntentState.CAPTURED, 5000)
    assert (await case.provider.capture(held.ref, f"{held.ref}:capture:1")).captured_minor == 5000
    await refused(case.provider.capture(held.ref, f"{held.ref}:capture:2"))
    assert (await case.provider.read(held.ref)).captured_minor == 5000


@check
async def a_void_is_for_ever_and_may_be_repeated(case: ProviderCase) -> None:
    held = await case.authorised()
    assert (await case.provider.void(held.ref, f"{held.ref}:void:1")).state is IntentState.VOID
    assert (await case.provider.void(held.ref, f"{held.ref}:void:2")).state is IntentState.VOID
    await refused(case.provider.capture(held.ref, f"{held.ref}:capture:1"))
    await refused(case.provider.authorise(held.ref, case.cards["visa"], f"{held.ref}:authorise:2"))
    assert (await case.provider.read(held.ref)).state is IntentState.VOID


@check
async def what_is_captured_cannot_be_voided(case: ProviderCase) -> None:
    taken = await case.captured()
    await refused(case.provider.void(taken.ref, f"{taken.ref}:void:1"))
    assert (await case.provider.read(taken.ref)).state is IntentState.CAPTURED


@check
async def a_declined_card_says_why_and_reserves_nothing(case: ProviderCase) -> None:
    made = await case.provider.create(case.new())
    answer = await case.provider.authorise(made.ref, case.cards["declined"], f"{made.ref}:authorise:1")
    assert answer.declined
    assert answer.error
    await refused(case.provider.capture(made.ref, f"{made.ref}:capture:1"))


@check
async def the_bank_may_want_to_see_the_fan(case: ProviderCase) -> None:
    for success, state in ((True, IntentState.AUTHORISED), (False, IntentState.CREATED)):
        made = await case.provider.create(case.new())
        asked = await case.provider.authorise(made.ref, case.cards["3ds"], f"{made.ref}:authorise:1")
        assert asked.state is IntentState.ACTION
        await case.answer(asked, success)
        answer = await case.provider.read(made.ref)
        assert (answer.state, answer.declined) == (state, not success)


@check
async def a_card_may_come_with_the_creation(case: ProviderCase) -> None:
    """One call instead of two. The same key is the same call, whatever the bank said to the card."""
    states = {"visa": IntentState.AUTHORISED, "3ds": IntentState.ACTION, "declined": IntentState.CREATED}
    for card, state in states.items():
        new = msgspec.structs.replace(case.new(), method=case.cards[card])
        made = await case.provider.create(new)
        assert (made.state, made.declined, made.booking_id) == (state, card == "declined", new.booking_id)
        assert await case.provider.create(new) == made == await case.provider.read(made.ref)
    again = await case.provider.authorise(made.ref, case.cards["visa"], f"{made.ref}:authorise:1")
    assert again.state is IntentState.AUTHORISED


@check
async def refunds_never_exceed_what_was_captured(case: ProviderCase) -> None:
    taken = await case.captured(1000)
    first = await case.provider.refund(taken.ref, 400, "rfd_1", f"{taken.ref}:refund:1")
    again = await case.provider.refund(taken.ref, 400, "rfd_1", f"{taken.ref}:refund:1")
    assert (first.amount_minor, first.ref) == (400, again.ref)
    await refused(case.provider.refund(taken.ref, 601, "rfd_2", f"{taken.ref}:refund:2"))
    await case.provider.refund(taken.ref, 600, "rfd_3", f"{taken.ref}:refund:3")
    found = await case.provider.read(taken.ref)
    assert found.refunded_minor == 1000
    assert {refund.refund_id for refund in found.refunds} == {"rfd_1", "rfd_3"}


@check
async def a_refund_that_fails_gave_nothing_back_and_is_made_again(case: ProviderCase) -> None:
    """H4: under a new key; the failed one stays in the list."""
    made = await case.provider.create(case.new(1000))
    await case.provider.authorise(made.ref, case.cards["refund_fails"], f"{made.ref}:authorise:1")
    await case.provider.capture(made.ref, f"{made.ref}:capture:1")
    failed = await case.provider.refund(made.ref, 1000, "rfd_1", f"{made.ref}:refund:1")
    assert (failed.failed, failed.pending, failed.failure) == (True, False, "lost_or_stolen_card")
    assert (await case.provider.read(made.ref)).refunded_minor == 0
    paid = await case.provider.refund(made.ref, 1000, "rfd_1", f"{made.ref}:refund:1.2")
    assert (paid.failed, paid.pending) == (False, False)
    found = await case.provider.read(made.ref)
    assert (found.refunded_minor, [one.failed for one in found.refunds].count(True)) == (1000, 1)


@check
async def a_refund_may_be_pending(case: ProviderCase) -> None:
    """H4."""
    made = await case.provider.create(case.new(1000))
    await case.provider.authorise(made.ref, case.cards["refund_pends"], f"{made.ref}:authorise:1")
    await case.provider.capture(made.ref, f"{made.ref}:capture:1")
    assert (await case.provider.refund(made.ref, 400, "rfd_1", f"{made.ref}:refund:1")).pending
    assert [one.pending for one in (await case.provider.read(made.ref)).refunds] == [True]


@check
async def pages_show_every_object_once(case: ProviderCase) -> None:
    made = {(await case.provider.create(case.new())).ref for _ in range(5)}
    seen: list[str] = []
    after = ""
    for _ in range(200):
        page = await case.provider.page(0, after, 2)
        seen += [intent.ref for intent in page]
        if len(page) < 2:
            break
        after = page[-1].ref
    assert len(seen) == len(set(seen))
    assert made <= set(seen)


@check
async def what_is_not_there_is_a_definite_no(case: ProviderCase) -> None:
    await refused(case.provider.read("pi_nobody"))
    await refused(case.provider.capture("pi_nobody", "k:capture:1"))
