"""A payment provider inside this process: deterministic and scripted, with objects shaped like Stripe's.

A `Fault` makes a call fail: the request is lost before it arrives, the answer is lost after it was carried out, a 500
comes before or after it was carried out (stored under the key and replayed, as Stripe does), or it is answered 429. A
call can also be slow. The name of a card decides whether it is accepted (`CARDS`) and how its refunds end. A name that
it does not know is refused like a mistyped number. The id of another method (`ideal`, `bank_transfer`) begins to pay
with it: the fan answers on the bank's page (`finish_action`), and awaited money comes or fails (`finish_money`).
Webhooks collect in `notices` (bounded) as signed bodies, and a test delivers them once, twice or in another order. Time
comes from the caller's clock, and waiting uses the given `sleep`.
"""

import asyncio
import hashlib
import itertools
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec

from frontrow.boxoffice.adapters.payments.stripe_objects import intent_of, refund_of
from frontrow.boxoffice.adapters.payments.webhook_notices import (
    DISPUTE_CLOSED,
    DISPUTE_OPENED,
    read_notice,
    signature_of,
)
from frontrow.boxoffice.payments.model.payment_methods import ALL_METHODS, MethodFamily, PaymentMethod, find_method
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    NewIntent,
    Notice,
    ProviderNotCalled,
    ProviderRefund,
    ProviderRefused,
    ProviderUnknown,
)
from frontrow.core.clock import US_PER_S, Clock
from frontrow.shared.coalescer import Coalescer
from frontrow.shared.webhook_signature import check_signature, sign

LAPSES: Final = "pm_card_lapses"  # authorised, but the capture is refused for good
REFUND_FAILS: Final = "pm_card_refund_fails"  # the first refund of each payment fails, later ones succeed
REFUND_PENDS: Final = "pm_card_refund_pends"  # refunds wait until `finish_refund`
# docs/payment-providers.md has the table of all cards
ACCEPTED: Final = frozenset({"pm_card_visa", LAPSES, REFUND_FAILS, REFUND_PENDS})
CARDS: Final = {  # cards that are declined -> what the bank says
    "pm_card_declined": "card_declined",
    "pm_card_insufficient_funds": "insufficient_funds",
    "pm_card_expired": "expired_card",
    "pm_card_incorrect_cvc": "incorrect_cvc",
}
NEEDS_ACTION: Final = frozenset({"pm_card_3ds", "pm_card_3ds_declined"})
WALLETS: Final = frozenset({"apple_pay", "google_pay", "link"})  # they ask the fan in the browser, before we are called
# Methods whose fan has something to do before there is money.
ASK_THE_FAN: Final = frozenset(
    {"paypal", "klarna", "ideal", "bancontact", "eps", "przelewy24", "twint", "swish", "sepa_debit"}
)
TRANSFER: Final = "display_bank_transfer_instructions"
UNKNOWN_CARD: Final = "incorrect_number"  # what the bank says about every other name
SIGNATURE: Final = "simulated-signature"
DISPUTE_ANSWER_S: Final = 7 * 86_400  # until when evidence is taken
MAX_NOTICES: Final = 10_000  # webhooks that nobody fetched; the oldest are dropped
AUTHORISATION_LIFETIME_US: Final = 7 * 86_400 * US_PER_S
_UNLOCKED: Final = nullcontext()
Call = tuple[str, str, str, Callable[[], Any], int]  # operation, key, request, what it does, number


class Fault(StrEnum):
    """What happens to one call."""

    LOST_REQUEST = "lost_request"
    LOST_REPLY = "lost_reply"
    ERROR_BEFORE = "error_before"  # a stored 500; it was not carried out
    ERROR_AFTER = "error_after"  # a stored 500; it was carried out
    BUSY = "busy"  # 429


Script = Callable[[str, str, int], Fault | None]  # (operation, key or ref, number of the call) -> fault
Answer = TypeVar("Answer")
Sleep = Callable[[float], Awaitable[None]]


def _no_faults(operation: str, key: str, number: int) -> Fault | None:
    return None


class ProviderState:
    """Everything that the simulated provider remembers, in Stripe's JSON shape."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}  # PaymentIntents by id
        self.refunds: dict[str, dict[str, Any]] = {}  # Refunds by id
        self.refund_ids: dict[str, list[str]] = {}  # of each PaymentIntent
        self.authorised_at_us: dict[str, int] = {}
        self.answers: dict[str, tuple[str, Any]] = {}  # idempotency key -> (the request, the stored answer)
        self.next_number = 1

    def clear(self) -> None:
        """Forget everything."""
        for kept in (self.objects, self.refunds, self.refund_ids, self.authorised_at_us, self.answers):
            kept.clear()
        self.next_number = 1

    def refunds_of(self, ref: str) -> list[dict[str, Any]]:
        ids = self.refund_ids.get(ref)
        return [self.refunds[refund_id] for refund_id in ids] if ids else []


class Journal(Protocol):
    """Makes the provider's state durable and shares it with other processes."""

    def lock(self, state: ProviderState) -> AbstractContextManager[None]:
        """While it is held nobody else writes, and `state` contains what others wrote."""

    def line(self, state: ProviderState, key: str, request: str) -> bytes:
        """What the request with this key changed; without a key, `request` begins with the object's id."""

    def write(self, state: ProviderState, lines: Sequence[bytes]) -> None:
        """Write these lines, or none of them: then `state` is as if their calls had never been made, and
        `ProviderUnknown` is raised."""

    def close(self) -> None: ...


class SimulatedProvider:
    """See PaymentProvider. With a `journal`, calls survive the process (adapters.payments.simulated_journal)."""

    name = "simulated"
    methods: Sequence[PaymentMethod] = ALL_METHODS

    def __init__(
        self,
        clock: Clock,
        *,
        script: Script = _no_faults,
        latency: Callable[[str, int], float] | None = None,
        sleep: Sleep = asyncio.sleep,
        secret: str = "whsec_simulated",  # noqa: S107 - no real money depends on it
        webhooks: bool = True,
        journal: Journal | None = None,
    ) -> None:
        self._clock, self.script, self._latency, self._sleep, self._secret = clock, script, latency, sleep, secret
        self.state, self._journal = ProviderState(), journal
        self._line: Coalescer[Call, Any] = Coalescer(self._handle_together, name="simulated provider")
        self.objects, self.refunds = self.state.objects, self.state.refunds
        self.notices: deque[tuple[bytes, dict[str, str]]] = deque(maxlen=MAX_NOTICES if webhooks else 0)
        self.calls: Counter[str] = Counter()
        self.down = False
        self.refund_status: Callable[[dict[str, Any], list[dict[str, Any]]], str] = refund_status
        self._call = itertools.count(1)
        with self._lock():  # read what the journal has
            pass

    # The port.

    async def create(self, new: NewIntent) -> Intent:
        def create_object() -> Intent:
            ref = f"pi_{self._id(new.key)}"
            offered = [new.method] if find_method(self.methods, new.method) else [*new.methods]
            self._check_price(offered, new)
            self.objects[ref] = {
                "id": ref,
                "object": "payment_intent",
                "status": "requires_payment_method",
                "amount": new.amount_minor,
                "amount_capturable": 0,
                "amount_received": 0,
                "currency": new.currency.lower(),
                "capture_method": "manual",
                "client_secret": f"{ref}_secret",
                "created": self._clock() // US_PER_S,
                "metadata": new.metadata(),
                "last_payment_error": None,
                "next_action": None,
                "payment_method": None,
                "latest_charge": None,
                "livemode": False,
                "cancellation_reason": None,
                "canceled_at": None,
                "confirmation_method": "automatic",
                "payment_method_types": offered or ["card"],
            }
            return self._authorise(ref, new.method) if new.method else self._intent(ref)

        return await self._do("create", new.key, repr(new), create_object)

    async def authorise(self, ref: str, method: str, key: str, return_url: str = "") -> Intent:
        return await self._do("authorise", key, f"{ref} {method}", lambda: self._authorise(ref, method))

    async def capture(self, ref: str, key: str) -> Intent:
        return await self._do("capture", key, ref, lambda: self._capture(ref))

    async def void(self, ref: str, key: str) -> Intent:
        return await self._do("void", key, ref, lambda: self._void(ref))

    async def refund(self, ref: str, amount_minor: int, refund_id: str, key: str) -> ProviderRefund:
        def create_refund() -> ProviderRefund:
            found = self._found(ref)
            earlier = self.state.refunds_of(ref)
            left = found["amount_received"] - sum(r["amount"] for r in earlier if r["status"] != "failed")
            if found["status"] != "succeeded" or not 0 < amount_minor <= left:
                raise ProviderRefused(f"{amount_minor} is more than is left of {ref}", "charge_already_refunded")
            refund_ref = f"re_{self._id(key)}"
            self.refunds[refund_ref] = {
                "id": refund_ref,
                "object": "refund",
                "amount": amount_minor,
                "currency": found["currency"],
                "payment_intent": ref,
                "status": self.refund_status(found, earlier),
                "created": self._clock() // US_PER_S,
                "metadata": {"refund": refund_id},
                "reason": None,
                "charge": found["latest_charge"],
                "balance_transaction": None,
                "receipt_number": None,
                "source_transfer_reversal": None,
                "transfer_reversal": None,
            }
            self.state.refund_ids.setdefault(ref, []).append(refund_ref)
            if self.refunds[refund_ref]["status"] == "failed":
                self._fail(self.refunds[refund_ref])
            else:
                self._send_webhook("charge.refunded", found)
            return refund_of(self.refunds[refund_ref])

        return await self._do("refund", key, f"{ref} {amount_minor}", create_refund)

    async def read(self, ref: str) -> Intent:
        return await self._do("read", "", ref, lambda: self._intent(ref))

    async def page(self, since_us: int, after: str = "", limit: int = 100) -> list[Intent]:
        def list_objects() -> list[Intent]:
            newest = [ref for ref, o in reversed(self.objects.items()) if o["created"] >= since_us // US_PER_S]
            start = newest.index(after) + 1 if after else 0
            return [self._intent(ref) for ref in newest[start : start + limit]]

        return await self._do("page", "", after, list_objects)

    def notice(self, body: bytes, headers: Mapping[str, str], now_us: int) -> Notice | None:
        check_signature(body, signature_of(headers, SIGNATURE), self._secret, now_us)
        return read_notice(body)

    async def aclose(self) -> None:
        await self._line.aclose()
        if self._journal is not None:
            self._journal.close()

    # What the bank does.

    def _check_price(self, offered: Sequence[str], new: NewIntent) -> None:
        """Refuse an amount or a currency that none of the offered methods takes."""
        methods = [method for one in offered if (method := find_method(self.methods, one)) is not None]
        if methods and not any(method.takes(new.amount_minor, new.currency) for method in methods):
            names = ", ".join(method.name for method in methods)
            raise ProviderRefused(f"{names} cannot take {new.amount_minor} {new.currency}", "amount_not_supported")

    def _authorise(self, ref: str, method: str) -> Intent:
        found = self._found(ref)
        if found["status"] in ("requires_capture", "requires_action", "processing", "succeeded"):
            raise ProviderRefused(f"{ref} is {found['status']}", "payment_intent_unexpected_state")
        if found["status"] == "canceled":
            raise ProviderRefused(f"{ref} is canceled", "payment_intent_unexpected_state")
        found["payment_method"], found["last_payment_error"] = method, None
        chosen = find_method(self.methods, method)
        if chosen is not None and chosen.id == "bank_transfer":
            found["status"] = "requires_action"
            found["next_action"] = {"type": TRANSFER, TRANSFER: _transfer_to(ref)}
            self._send_webhook("payment_intent.requires_action", found)
        elif method in NEEDS_ACTION or (chosen is not None and chosen.id in ASK_THE_FAN):
            found["status"] = "requires_action"
            found["next_action"] = {
                "type": "redirect_to_url",
                "redirect_to_url": {"url": f"https://bank.example/3ds/{ref}", "return_url": None},
            }
            self._send_webhook("payment_intent.requires_action", found)
        else:
            self._decide(found, "" if method in ACCEPTED | WALLETS else CARDS.get(method, UNKNOWN_CARD))
        return self._intent(ref)

    def confirm_in_browser(self, ref: str, method: str) -> Intent:
        """What the provider's own form does in a fan's browser: it has no key of ours, and we do not see the answer."""
        with self._lock():
            intent = self._authorise(ref, method)
            self._append_change(ref)
            return intent

    def finish_action(self, ref: str, *, agreed: bool = True) -> None:
        """The fan answered the bank's question, or paid on the bank's page."""
        with self._lock():
            found = self._found(ref)
            if found["status"] == "requires_action" and not _waits_for_transfer(found):
                found["next_action"] = None
                wrong = not agreed or found["payment_method"] == "pm_card_3ds_declined"
                if not wrong and self._family(found) is MethodFamily.SLOW:
                    found["status"] = "processing"
                    self._send_webhook("payment_intent.processing", found)
                else:
                    self._decide(found, "payment_intent_authentication_failure" if wrong else "")
            self._append_change(ref)

    def finish_money(self, ref: str, *, failed: bool = False) -> None:
        """Awaited money came, or the fan's bank does not pay. What comes for a cancelled object goes back unseen."""
        with self._lock():
            found = self._found(ref)
            if found["status"] == "processing" or _waits_for_transfer(found):
                found["next_action"] = None
                self._decide(found, "insufficient_funds" if failed else "")
            self._append_change(ref)

    def _family(self, found: dict[str, Any]) -> MethodFamily:
        chosen = find_method(self.methods, found["payment_method"] or "")
        return chosen.family if chosen is not None else MethodFamily.RESERVE

    def finish_refund(self, refund_ref: str, status: str) -> None:
        """The bank says what became of a refund: `succeeded` or `failed`, also after it had succeeded."""
        with self._lock():
            refund = self.refunds[refund_ref]
            if status == "failed":
                self._fail(refund)
            else:
                refund["status"] = status
                self._send_webhook("refund.updated", refund)
            self._append_change(refund["payment_intent"])

    def open_dispute(self, ref: str, *, amount_minor: int = 0, reason: str = "fraudulent", number: int = 1) -> str:
        """The bank takes back a captured payment, or a part of it, for now. Returns the dispute's name."""
        with self._lock():
            self._send_dispute(DISPUTE_OPENED, ref, f"dp_{ref[3:]}_{number}", amount_minor, reason, "needs_response")
        return f"dp_{ref[3:]}_{number}"

    def close_dispute(
        self, ref: str, status: str, *, amount_minor: int = 0, reason: str = "fraudulent", number: int = 1
    ) -> None:
        """The bank has decided: `won`, `lost`, or `warning_closed` for an inquiry that ended."""
        with self._lock():
            self._send_dispute(DISPUTE_CLOSED, ref, f"dp_{ref[3:]}_{number}", amount_minor, reason, status)

    def _send_dispute(
        self, event_type: str, ref: str, dispute: str, amount_minor: int, reason: str, status: str
    ) -> None:
        found = self._found(ref)
        about = {
            "id": dispute,
            "object": "dispute",
            "payment_intent": ref,
            "charge": found["latest_charge"],
            "amount": amount_minor or found["amount_received"],
            "currency": found["currency"],
            "reason": reason,
            "status": status,
            "evidence_details": {"due_by": self._clock() // US_PER_S + DISPUTE_ANSWER_S},
        }
        self._send_webhook(event_type, about)

    def _fail(self, refund: dict[str, Any]) -> None:
        refund["status"], refund["failure_reason"] = "failed", "lost_or_stolen_card"
        self._send_webhook("refund.failed", refund)

    def _decide(self, found: dict[str, Any], error: str) -> None:
        ref = found["id"]
        if error:
            found["status"] = "requires_payment_method"
            charge = f"ch_{self._id(ref)}"
            found["last_payment_error"] = {"type": "card_error", "code": error, "message": error, "charge": charge}
            self._send_webhook("payment_intent.payment_failed", found)
            return
        found["last_payment_error"], found["latest_charge"] = None, f"ch_{ref[3:]}"
        if self._family(found) is not MethodFamily.RESERVE:
            found["status"], found["amount_received"] = "succeeded", found["amount"]
            self._send_webhook("payment_intent.succeeded", found)
            return
        found["status"], found["amount_capturable"] = "requires_capture", found["amount"]
        self.state.authorised_at_us[ref] = self._clock()
        self._send_webhook("payment_intent.amount_capturable_updated", found)

    def _capture(self, ref: str) -> Intent:
        found = self._found(ref)
        if found["status"] != "requires_capture":
            raise ProviderRefused(f"{ref} is {found['status']}", "payment_intent_unexpected_state")
        expired = self._clock() - self.state.authorised_at_us[ref] >= AUTHORISATION_LIFETIME_US
        if expired or found["payment_method"] == LAPSES:
            found["status"], found["amount_capturable"] = "canceled", 0
            self._send_webhook("payment_intent.canceled", found)
            raise ProviderRefused(f"the authorisation of {ref} is gone", "charge_expired_for_capture")
        found["status"], found["amount_capturable"], found["amount_received"] = "succeeded", 0, found["amount"]
        self._send_webhook("payment_intent.succeeded", found)
        return self._intent(ref)

    def _void(self, ref: str) -> Intent:
        found = self._found(ref)
        if found["status"] == "succeeded":
            raise ProviderRefused(f"{ref} is captured", "payment_intent_unexpected_state")
        if found["status"] == "processing":
            raise ProviderRefused(f"the money of {ref} is on its way", "payment_intent_unexpected_state")
        if found["status"] != "canceled":
            found["status"], found["amount_capturable"], found["next_action"] = "canceled", 0, None
            found["canceled_at"] = self._clock() // US_PER_S
            self._send_webhook("payment_intent.canceled", found)
        return self._intent(ref)

    # Calls and their faults.

    async def _do(self, operation: str, key: str, request: str, act: Callable[[], Answer]) -> Answer:
        number = next(self._call)
        self.calls[operation] += 1
        if self._latency is not None:
            await self._sleep(self._latency(operation, number))
        if self._journal is None:
            return self._handle(operation, key, request, act, number)
        return cast(Answer, await self._line.submit((operation, key, request, act, number)))

    async def _handle_together(self, calls: Sequence[Call]) -> list[Any]:
        """Handle the calls of one moment, with one lock and one write to the journal. A file is slower than a call."""
        assert self._journal is not None
        answers: list[Any] = []
        lines: list[bytes] = []
        with self._journal.lock(self.state):
            for call in calls:
                _, key, request, _, _ = call
                stored_before = key in self.state.answers
                try:
                    answers.append(self._handle(*call))
                except Exception as error:  # of this call alone
                    answers.append(error)
                if key and not stored_before and key in self.state.answers:
                    lines.append(self._journal.line(self.state, key, request))
            try:
                self._journal.write(self.state, lines)
            except ProviderUnknown as error:
                return [ProviderUnknown(error.message) for _ in calls]
        return answers

    def _handle(self, operation: str, key: str, request: str, act: Callable[[], Answer], number: int) -> Answer:
        """Handle the call as the provider does, in one step."""
        fault = Fault.LOST_REQUEST if self.down else self.script(operation, key or request, number)
        if fault is Fault.LOST_REQUEST:
            raise ProviderUnknown(f"{operation}: no answer")
        if fault is Fault.BUSY:
            raise ProviderNotCalled(f"{operation}: too many requests")
        if key and key in self.state.answers:
            first_request, stored = self.state.answers[key]
            if first_request != request:
                raise ProviderRefused(f"key {key} was used for another request", "idempotency_error")
            return cast(Answer, _reply(operation, stored, fault))
        answer: Any = None
        if fault is not Fault.ERROR_BEFORE:
            try:
                answer = act()
            except ProviderRefused as refused:
                answer = refused
        if fault in (Fault.ERROR_BEFORE, Fault.ERROR_AFTER):
            answer = ProviderUnknown(f"{operation}: 500", answered=True)
        if key:
            self.state.answers[key] = (request, answer)
        return cast(Answer, _reply(operation, answer, fault))

    def _lock(self) -> AbstractContextManager[None]:
        return self._journal.lock(self.state) if self._journal is not None else _UNLOCKED

    def _append_change(self, ref: str) -> None:
        if self._journal is not None:
            self._journal.write(self.state, [self._journal.line(self.state, "", ref)])

    def _id(self, key: str) -> str:
        self.state.next_number += 1
        return hashlib.blake2b(f"{self.state.next_number} {key}".encode(), digest_size=12).hexdigest()

    def _found(self, ref: str) -> dict[str, Any]:
        if ref not in self.objects:
            raise ProviderRefused(f"there is no {ref}", "resource_missing")
        return self.objects[ref]

    def _intent(self, ref: str) -> Intent:
        return intent_of(self._found(ref), self.state.refunds_of(ref))

    def _send_webhook(self, kind: str, about: dict[str, Any]) -> None:
        if not self.notices.maxlen:
            return
        body = msgspec.json.encode(
            {
                "id": f"evt_{self._id(about['id'])}",
                "object": "event",
                "type": kind,
                "data": {"object": about},
                "created": self._clock() // US_PER_S,
                "livemode": False,
                "pending_webhooks": 1,
            }
        )
        self.notices.append((body, {SIGNATURE: sign(body, self._secret, self._clock())}))


def _waits_for_transfer(found: dict[str, Any]) -> bool:
    return bool(found["status"] == "requires_action" and found["next_action"]["type"] == TRANSFER)


def _transfer_to(ref: str) -> dict[str, Any]:
    """Where a fan sends the money of a simulated bank transfer."""
    reference = ref[3:15].upper()
    iban = {"iban": "DE89370400440532013000", "bic": "COBADEFFXXX", "account_holder_name": "Frontrow demo"}
    return {
        "type": "eu_bank_transfer",
        "reference": reference,
        "financial_addresses": [{"type": "iban", "iban": iban}],
    }


def refund_status(found: dict[str, Any], earlier: list[dict[str, Any]]) -> str:
    """The first status of a payment's next refund, by its card. `earlier` are the refunds it has."""
    if found["payment_method"] == REFUND_FAILS and not earlier:
        return "failed"
    return "pending" if found["payment_method"] == REFUND_PENDS else "succeeded"


def _reply(operation: str, answer: object, fault: Fault | None) -> object:
    if fault is Fault.LOST_REPLY:
        raise ProviderUnknown(f"{operation}: the answer was lost")
    if isinstance(answer, BaseException):
        raise answer
    return answer
