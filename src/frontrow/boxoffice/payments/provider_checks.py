"""What `PaymentProvider` promises, tried out on a provider in its test mode: for `frontrow doctor --payments`.

Each check makes payments of its own and says in one sentence how the provider differs. Whatever was made is ended
afterwards: voided, or refunded where it was captured. tests/contracts/payment_provider.py is the longer contract, for
adapters.
"""

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from frontrow.boxoffice.payments.model.provider_intents import Intent, IntentState, NewIntent, ProviderRefused
from frontrow.boxoffice.payments.ports import PaymentProvider
from frontrow.core.errors import FrontrowError

AMOUNT_MINOR: Final = 1_234
NOTICE_S: Final = 30.0
LOOK_EVERY_S: Final = 0.5
NO_NOTICE: Final = (
    "no notice said in time what became of it; does a server run, and does the provider send its webhooks there with "
    "this secret?"
)
MAX_PAGES: Final = 20
PAGE: Final = 100


class Difference(Exception):
    """The provider does not do what the port promises."""


class CheckResult(msgspec.Struct, frozen=True):
    """What came of one check; `difference` is empty if the provider passed."""

    name: str
    difference: str = ""


class TestPayments:
    """Makes payments at a provider in its test mode, and ends them all."""

    __test__ = False  # no test of pytest's

    def __init__(
        self,
        provider: PaymentProvider,
        cards: Mapping[str, str],
        currency: str,
        since_us: int,
        *,
        notice_s: float = NOTICE_S,
    ) -> None:
        """`notice_s`: how long a provider may take to tell what became of a request that it has accepted."""
        self.provider, self.cards, self.currency, self.since_us = provider, cards, currency, since_us
        self._notice_s = notice_s
        self._run, self._numbers = secrets.token_hex(6), itertools.count(1)
        self.made: list[str] = []

    def new(self) -> NewIntent:
        booking = f"bkg_doctor_{self._run}_{next(self._numbers)}"
        return NewIntent(booking, 1, AMOUNT_MINOR, self.currency, "evt_doctor", 1, (0,), f"{booking}:create:1")

    async def create(self, new: NewIntent | None = None) -> Intent:
        made = await self.provider.create(new or self.new())
        if made.ref not in self.made:
            self.made.append(made.ref)
        return made

    async def authorised(self, card: str = "visa") -> Intent:
        made = await self.create()
        return await self.provider.authorise(made.ref, self.cards[card], f"{made.ref}:authorise:1")

    async def captured(self) -> Intent:
        held = await self.authorised()
        return await self.decided(await self.provider.capture(held.ref, f"{held.ref}:capture:1"))

    async def decided(self, answer: Intent) -> Intent:
        """The result of a request that was only accepted: the provider tells it later, by a notice."""
        pauses = int(self._notice_s / LOOK_EVERY_S)
        for _ in range(pauses if answer.state is IntentState.PROCESSING else 0):
            await asyncio.sleep(LOOK_EVERY_S)
            answer = await self.provider.read(answer.ref)
            if answer.state is not IntentState.PROCESSING:
                break
        if answer.state is IntentState.PROCESSING:
            self._notice_s = 0.0  # if one did not come, the next ones are not waited for
            raise Difference(NO_NOTICE)
        return answer

    async def end(self) -> list[str]:
        """Void or refund all that was made. Returns what is left, with the reason."""
        left = []
        for ref in self.made:
            try:
                found = await self.provider.read(ref)
                if found.state is IntentState.CAPTURED:
                    rest = found.captured_minor - found.refunded_minor
                    if rest:
                        await self.provider.refund(ref, rest, f"rfd_{ref}_end", f"{ref}:end")
                elif found.state is not IntentState.VOID:
                    await self.decided(await self.provider.void(ref, f"{ref}:end"))
            except FrontrowError as error:
                left.append(f"{ref}: {error.message}")
            except Difference as error:
                left.append(f"{ref}: {error}")
        self.made.clear()
        return left


Check = Callable[[TestPayments], Awaitable[None]]


def expect(found: object, wanted: object, what: str) -> None:
    """Raise the difference unless both are equal."""
    if found != wanted:
        raise Difference(f"{what} is {_shown(found)}, not {_shown(wanted)}")


def _shown(value: object) -> str:
    return str(getattr(value, "value", value))[:80]


async def expect_refusal(call: Awaitable[Any], what: str) -> None:
    try:
        await call
    except ProviderRefused:
        return
    raise Difference(f"{what} was not refused")


async def a_new_payment_reserves_nothing(pay: TestPayments) -> None:
    new = pay.new()
    made = await pay.create(new)
    expect(made.state, IntentState.CREATED, "the state of a new payment")
    expect((made.amount_minor, made.currency), (new.amount_minor, new.currency), "its amount")
    expect((made.booking_id, made.attempt), (new.booking_id, 1), "the booking in its metadata")
    expect(await pay.provider.read(made.ref), made, "what is read back")


async def a_repeated_key_is_the_same_call(pay: TestPayments) -> None:
    new = pay.new()
    first = await pay.create(new)
    expect((await pay.create(new)).ref, first.ref, "the object of a repeated key")
    other = msgspec.structs.replace(new, amount_minor=AMOUNT_MINOR + 1)
    await expect_refusal(pay.create(other), "another request under the same key")


async def money_is_reserved_and_then_taken_once(pay: TestPayments) -> None:
    held = await pay.authorised()
    expect((held.state, held.captured_minor), (IntentState.AUTHORISED, 0), "an authorised payment")
    taken = await pay.decided(await pay.provider.capture(held.ref, f"{held.ref}:capture:1"))
    expect((taken.state, taken.captured_minor), (IntentState.CAPTURED, AMOUNT_MINOR), "a captured payment")
    again = await pay.provider.capture(held.ref, f"{held.ref}:capture:1")
    expect(again.captured_minor, AMOUNT_MINOR, "what a repeated capture took")
    await expect_refusal(pay.provider.capture(held.ref, f"{held.ref}:capture:2"), "a second capture")


async def a_void_is_for_ever(pay: TestPayments) -> None:
    held = await pay.authorised()
    voided = await pay.decided(await pay.provider.void(held.ref, f"{held.ref}:void:1"))
    expect(voided.state, IntentState.VOID, "a voided payment")
    again = await pay.provider.void(held.ref, f"{held.ref}:void:2")
    expect(again.state, IntentState.VOID, "a payment that was voided twice")
    await expect_refusal(pay.provider.capture(held.ref, f"{held.ref}:capture:1"), "a capture after a void")


async def what_was_taken_cannot_be_voided(pay: TestPayments) -> None:
    taken = await pay.captured()
    await expect_refusal(pay.provider.void(taken.ref, f"{taken.ref}:void:1"), "a void after a capture")


async def a_declined_card_says_why(pay: TestPayments) -> None:
    answer = await pay.authorised("declined")
    expect((answer.state, answer.declined), (IntentState.CREATED, True), "a payment with a declined card")
    await expect_refusal(pay.provider.capture(answer.ref, f"{answer.ref}:capture:1"), "a capture of a declined card")


async def a_bank_may_ask_the_fan(pay: TestPayments) -> None:
    expect((await pay.authorised("action")).state, IntentState.ACTION, "a card whose bank asks")


async def refunds_never_exceed_what_was_taken(pay: TestPayments) -> None:
    taken = await pay.captured()
    first = await pay.provider.refund(taken.ref, 400, f"rfd_{taken.ref}_1", f"{taken.ref}:refund:1")
    again = await pay.provider.refund(taken.ref, 400, f"rfd_{taken.ref}_1", f"{taken.ref}:refund:1")
    expect((first.amount_minor, again.ref), (400, first.ref), "a repeated refund")
    over = pay.provider.refund(taken.ref, AMOUNT_MINOR, f"rfd_{taken.ref}_2", f"{taken.ref}:refund:2")
    await expect_refusal(over, "a refund of more than is left")
    found = await pay.provider.read(taken.ref)
    expect([one.refund_id for one in found.refunds], [f"rfd_{taken.ref}_1"], "the refunds that are read back")


async def the_list_has_every_payment_once(pay: TestPayments) -> None:
    made = {(await pay.create()).ref for _ in range(3)}
    seen: list[str] = []
    after = ""
    for _ in range(MAX_PAGES):
        page = await pay.provider.page(pay.since_us, after, PAGE)
        seen += [one.ref for one in page]
        if made <= set(seen) or len(page) < PAGE:
            break
        after = page[-1].ref
    expect(len(seen), len(set(seen)), "the number of different payments in the list")
    expect(made - set(seen), set(), "what the list lacks")


async def what_is_not_there_is_a_definite_no(pay: TestPayments) -> None:
    await expect_refusal(pay.provider.read("pi_nobody"), "reading a payment that does not exist")


CHECKS: Final[tuple[Check, ...]] = (
    a_new_payment_reserves_nothing,
    a_repeated_key_is_the_same_call,
    money_is_reserved_and_then_taken_once,
    a_void_is_for_ever,
    what_was_taken_cannot_be_voided,
    a_declined_card_says_why,
    a_bank_may_ask_the_fan,
    refunds_never_exceed_what_was_taken,
    the_list_has_every_payment_once,
    what_is_not_there_is_a_definite_no,
)


async def run_checks(pay: TestPayments) -> tuple[list[CheckResult], list[str]]:
    """Every check in turn, then the end of all payments that were made. Returns the results, and what is left."""
    results = []
    try:
        for check in CHECKS:
            results.append(await _run_one(check, pay))
    finally:
        left = await pay.end()
    return results, left


async def _run_one(check: Check, pay: TestPayments) -> CheckResult:
    name = check.__name__.replace("_", " ")
    try:
        await check(pay)
    except Difference as error:
        return CheckResult(name, str(error))
    except FrontrowError as error:
        return CheckResult(name, f"an unexpected refusal: {error.message}"[:300])
    return CheckResult(name)
