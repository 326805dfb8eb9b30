"""The contract of the PaymentProvider port as plain checks: over the simulated provider, Stripe's client and Adyen.

A provider may receive a capture, a void or a refund and decide it later. `settle` brings its notices; then the object
says what became of the request.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import msgspec

from frontrow.boxoffice.payments.model.payment_methods import MethodFamily, PaymentMethod
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    IntentState,
    NewIntent,
    ProviderRefund,
    ProviderRefused,
)
from frontrow.boxoffice.payments.ports import PaymentProvider

CALLERS = 60
_numbers = itertools.count(1)


class ProviderCase:
    """A provider and its cards: `visa`, `declined`, `3ds`; `answer` is the fan at the bank's page, `arrive` the bank
    with awaited money (or without it)."""

    def __init__(
        self,
        provider: PaymentProvider,
        cards: dict[str, str],
        answer: Callable[[Intent, bool], Awaitable[None]],
        arrive: Callable[[Intent, bool], Awaitable[None]] | None = None,
        *,
        settle: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.provider, self.cards, self.answer, self.arrive = provider, cards, answer, arrive
        self._settle = settle

    def new(self, amount_minor: int = 5000, booking: str = "") -> NewIntent:
        booking = booking or f"bkg_C{next(_numbers):025d}"
        return NewIntent(booking, 1, amount_minor, "EUR", "evt_1", 7, (1, 2), f"{booking}:create:1")

    async def authorised(self, amount_minor: int = 5000) -> Intent:
        made = await self.provider.create(self.new(amount_minor))
        return await self.provider.authorise(made.ref, self.cards["visa"], f"{made.ref}:authorise:1")

    async def captured(self, amount_minor: int = 5000) -> Intent:
        held = await self.authorised(amount_minor)
        return await self.capture(held.ref, f"{held.ref}:capture:1")

    async def capture(self, ref: str, key: str) -> Intent:
        return await self._decided(await self.provider.capture(ref, key))

    async def void(self, ref: str, key: str) -> Intent:
        return await self._decided(await self.provider.void(ref, key))

    async def refund(self, ref: str, amount_minor: int, refund_id: str, key: str) -> ProviderRefund:
        given = await self.provider.refund(ref, amount_minor, refund_id, key)
        if self._settle is None:
            return given
        await self._settle()
        return next(one for one in (await self.provider.read(ref)).refunds if one.ref == given.ref)

    async def _decided(self, answer: Intent) -> Intent:
        if self._settle is None:
            return answer
        await self._settle()
        return await self.provider.read(answer.ref)


Check = Callable[[ProviderCase], Coroutine[Any, Any, None]]
CHECKS: list[Check] = []
METHOD_CHECKS: list[Check] = []  # for providers with methods other than cards; each checks those that there are
IN_THE_BROWSER: Final = ("card", "apple_pay", "google_pay", "link")  # the fan gives them to the provider's own form
BACK: Final = "https://shop.example/checkout/bkg_1"


def check_methods(function: Check) -> Check:
    METHOD_CHECKS.append(function)
    return function


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
    taken = await case.capture(held.ref, f"{held.ref}:capture:1")
    assert (taken.state, taken.captured_minor) == (IntentState.CAPTURED, 5000)
    assert (await case.capture(held.ref, f"{held.ref}:capture:1")).captured_minor == 5000
    await refused(case.provider.capture(held.ref, f"{held.ref}:capture:2"))
    assert (await case.provider.read(held.ref)).captured_minor == 5000


@check
async def a_void_is_for_ever_and_may_be_repeated(case: ProviderCase) -> None:
    held = await case.authorised()
    assert (await case.void(held.ref, f"{held.ref}:void:1")).state is IntentState.VOID
    assert (await case.void(held.ref, f"{held.ref}:void:2")).state is IntentState.VOID
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
    first = await case.refund(taken.ref, 400, "rfd_1", f"{taken.ref}:refund:1")
    again = await case.refund(taken.ref, 400, "rfd_1", f"{taken.ref}:refund:1")
    assert (first.amount_minor, first.ref) == (400, again.ref)
    await refused(case.provider.refund(taken.ref, 601, "rfd_2", f"{taken.ref}:refund:2"))
    await case.refund(taken.ref, 600, "rfd_3", f"{taken.ref}:refund:3")
    found = await case.provider.read(taken.ref)
    assert found.refunded_minor == 1000
    assert {refund.refund_id for refund in found.refunds} == {"rfd_1", "rfd_3"}


@check
async def a_refund_that_fails_gave_nothing_back_and_is_made_again(case: ProviderCase) -> None:
    """H4: under a new key; the failed one stays in the list."""
    made = await case.provider.create(case.new(1000))
    await case.provider.authorise(made.ref, case.cards["refund_fails"], f"{made.ref}:authorise:1")
    await case.capture(made.ref, f"{made.ref}:capture:1")
    failed = await case.refund(made.ref, 1000, "rfd_1", f"{made.ref}:refund:1")
    assert (failed.failed, failed.pending, failed.failure) == (True, False, "lost_or_stolen_card")
    assert (await case.provider.read(made.ref)).refunded_minor == 0
    paid = await case.refund(made.ref, 1000, "rfd_1", f"{made.ref}:refund:1.2")
    assert (paid.failed, paid.pending) == (False, False)
    found = await case.provider.read(made.ref)
    assert (found.refunded_minor, [one.failed for one in found.refunds].count(True)) == (1000, 1)


@check
async def a_refund_may_be_pending(case: ProviderCase) -> None:
    """H4."""
    made = await case.provider.create(case.new(1000))
    await case.provider.authorise(made.ref, case.cards["refund_pends"], f"{made.ref}:authorise:1")
    await case.capture(made.ref, f"{made.ref}:capture:1")
    assert (await case.refund(made.ref, 400, "rfd_1", f"{made.ref}:refund:1")).pending
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


# Methods other than cards.


def _methods(case: ProviderCase, family: MethodFamily) -> list[PaymentMethod]:
    """Those that ask the fan on a page of theirs, or send the fan away with details."""
    return [one for one in case.provider.methods if one.family is family and one.id not in IN_THE_BROWSER]


def _priced(case: ProviderCase, method: PaymentMethod) -> NewIntent:
    currency = next(iter(sorted(method.currencies)), "EUR")
    return msgspec.structs.replace(case.new(), currency=currency, methods=(method.id,), return_url=BACK)


async def _begun(case: ProviderCase, method: PaymentMethod) -> Intent:
    made = await case.provider.create(_priced(case, method))
    assert made.state is IntentState.CREATED, method.id
    return await case.provider.authorise(made.ref, method.id, f"{made.ref}:authorise:1", BACK)


@check_methods
async def money_that_comes_at_once_is_taken_without_a_capture(case: ProviderCase) -> None:
    methods = _methods(case, MethodFamily.AT_ONCE)
    assert methods
    for method in methods:
        asked = await _begun(case, method)
        assert (asked.state, asked.method) == (IntentState.ACTION, method.id)
        assert asked.action_url.startswith("http")
        await case.answer(asked, True)
        paid = await case.provider.read(asked.ref)
        assert (paid.state, paid.captured_minor, paid.method) == (IntentState.CAPTURED, 5000, method.id)
        await refused(case.provider.void(asked.ref, f"{asked.ref}:void:1"))


@check_methods
async def a_fan_who_turns_back_at_the_bank_may_pay_another_way(case: ProviderCase) -> None:
    for method in _methods(case, MethodFamily.AT_ONCE):
        asked = await _begun(case, method)
        await case.answer(asked, False)
        back = await case.provider.read(asked.ref)
        assert back.declined, method.id
        assert back.captured_minor == 0
        again = await case.provider.authorise(asked.ref, method.id, f"{asked.ref}:authorise:2", BACK)
        assert again.state is IntentState.ACTION
        assert (await case.void(asked.ref, f"{asked.ref}:void:1")).state is IntentState.VOID


@check_methods
async def a_method_may_come_with_the_creation(case: ProviderCase) -> None:
    for method in _methods(case, MethodFamily.AT_ONCE):
        new = msgspec.structs.replace(_priced(case, method), method=method.id)
        made = await case.provider.create(new)
        assert made.state is IntentState.ACTION, method.id
        assert await case.provider.create(new) == made


@check_methods
async def slow_money_is_awaited_until_it_comes_or_fails(case: ProviderCase) -> None:
    assert case.arrive is not None
    for method in _methods(case, MethodFamily.SLOW):
        for comes in (True, False):
            asked = await _begun(case, method)
            if asked.state is IntentState.ACTION:
                await case.answer(asked, True)
                asked = await case.provider.read(asked.ref)
            assert (asked.state, asked.captured_minor, asked.method) == (IntentState.PROCESSING, 0, method.id)
            assert (asked.transfer is not None) == (method.id == "bank_transfer")
            if comes or not method.recallable:
                await case.arrive(asked, comes)
                ended = await case.provider.read(asked.ref)
                assert ended.state is (IntentState.CAPTURED if comes else IntentState.CREATED)
                assert ended.declined is not comes
            else:
                assert (await case.void(asked.ref, f"{asked.ref}:void:1")).state is IntentState.VOID


@check_methods
async def awaited_money_that_cannot_be_stopped_is_not_void(case: ProviderCase) -> None:
    for method in _methods(case, MethodFamily.SLOW):
        if method.recallable:
            continue
        asked = await _begun(case, method)
        await case.answer(asked, True)
        try:
            answer = await case.provider.void(asked.ref, f"{asked.ref}:void:1")
        except ProviderRefused:
            answer = await case.provider.read(asked.ref)
        assert answer.state is IntentState.PROCESSING


@check_methods
async def a_method_that_asks_the_fan_may_still_reserve_only(case: ProviderCase) -> None:
    """PayPal, Klarna: reserved first, as a card is."""
    for method in _methods(case, MethodFamily.RESERVE):
        held = await _begun(case, method)
        if held.state is IntentState.ACTION:
            await case.answer(held, True)
            held = await case.provider.read(held.ref)
        assert (held.state, held.captured_minor, held.method) == (IntentState.AUTHORISED, 0, method.id)
        taken = await case.capture(held.ref, f"{held.ref}:capture:1")
        assert taken.captured_minor == 5000


@check_methods
async def money_that_came_at_once_is_refunded_in_parts(case: ProviderCase) -> None:
    for method in _methods(case, MethodFamily.AT_ONCE):
        asked = await _begun(case, method)
        await case.answer(asked, True)
        await case.refund(asked.ref, 2000, "rfd_1", f"{asked.ref}:refund:1")
        await refused(case.provider.refund(asked.ref, 3001, "rfd_2", f"{asked.ref}:refund:2"))
        await case.refund(asked.ref, 3000, "rfd_2", f"{asked.ref}:refund:3")
        assert (await case.provider.read(asked.ref)).refunded_minor == 5000


@check_methods
async def a_currency_that_no_offered_method_takes_is_refused_in_a_sentence(case: ProviderCase) -> None:
    for method in case.provider.methods:
        if method.currencies and "JPY" not in method.currencies:
            new = msgspec.structs.replace(_priced(case, method), currency="JPY")
            assert len((await refused(case.provider.create(new))).message) > 10
