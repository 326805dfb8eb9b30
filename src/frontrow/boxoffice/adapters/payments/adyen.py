"""Adyen over plain HTTP: sessions on its own page or in its form on ours, stored cards, manual capture, refunds,
cancels, signed webhooks.

Captures, refunds and cancels are only received by the call; a webhook says later what became of them. Until then they
are `processing`, or pending. Payments cannot be read at Adyen, so everything that it says is kept as notes in the
ledger, and an object is read from those (ADR 0214). Every POST carries our idempotency key. A 5xx or no answer is
unknown and repeated under its key, which Adyen keeps for a week at least. A refused API key calls nothing, so the
payment waits. This code has never run against Adyen itself: docs/payments.md says what it was tested against.
"""

import copy
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import httpx
import msgspec

from frontrow.boxoffice.adapters.payments.adyen_access import AdyenAccess
from frontrow.boxoffice.adapters.payments.adyen_notes import (
    AT_ONCE,
    CLOSED,
    HOSTED,
    MADE,
    PAGE,
    SESSION,
    TYPES,
    AdyenObject,
    AdyenSession,
    AdyenWord,
    Authorisation,
    Made,
)
from frontrow.boxoffice.adapters.payments.adyen_webhooks import KEPT, read_webhook
from frontrow.boxoffice.payments.model.payment_methods import (
    BANCONTACT,
    CARD,
    EPS,
    IDEAL,
    KLARNA,
    PAYPAL,
    PRZELEWY24,
    SWISH,
    TWINT,
    PaymentMethod,
    find_method,
)
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    IntentState,
    NewIntent,
    Notice,
    ProviderNotCalled,
    ProviderRefund,
    ProviderRefused,
    ProviderUnknown,
)
from frontrow.boxoffice.payments.ports import PaymentProvider, ProviderNote, ProviderNotes
from frontrow.core.clock import Clock

TIMEOUT_S: Final = 20.0
CONNECTIONS: Final = 1_000
MAX_KEY_CHARS: Final = 64
SESSION_LASTS: Final = timedelta(hours=1)
NAME: Final = "adyen"
TEST_CARD: Final = "test_"  # in Adyen's test environment, the number of a test card with this before it is a card
# Currencies whose minor units Adyen counts in another way than ISO 4217; nothing is guessed with money.
OTHER_UNITS: Final = frozenset({"CLP", "CVE", "IDR", "ISK"})


class AdyenProvider:
    """See PaymentProvider."""

    name = NAME
    methods: Sequence[PaymentMethod] = (CARD, PAYPAL, KLARNA, IDEAL, BANCONTACT, EPS, PRZELEWY24, TWINT, SWISH)

    def __init__(self, access: AdyenAccess, notes: ProviderNotes, clock: Clock) -> None:
        self._access, self._merchant, self._account = access, access.merchant_account, ""
        self._notes, self._now = notes, _Moments(clock)
        self._client = httpx.AsyncClient(
            base_url=access.api.rstrip("/"),
            headers={"X-API-Key": access.key},
            timeout=TIMEOUT_S,
            limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=100),
            trust_env=False,
        )

    def for_account(self, account: str) -> PaymentProvider:
        """The same for another merchant account of the company."""
        other = copy.copy(self)
        other._merchant = other._account = account
        return other

    async def create(self, new: NewIntent) -> Intent:
        self._check_price(new)
        ref = _ref_of(new.key)
        made = Made(new.amount_minor, new.currency, new.booking_id, new.attempt, new.key)
        if not await self._keep(ref, MADE, made):
            known = (await self._find(ref)).made
            if known != made:
                raise ProviderRefused(f"key {new.key} was used for another request", "idempotency_error")
        if new.method and new.method != HOSTED:
            return await self.authorise(ref, new.method, new.key, new.return_url)
        found = await self._find(ref)
        if found.session is None and self._access.client_key and not new.method:
            await self._open_form(ref, new)
        elif found.session is None:
            await self._open_page(ref, new.key, SESSION, new.methods, new.event_id, new.return_url)
        return await self.authorise(ref, HOSTED, new.key) if new.method else (await self._find(ref)).intent()

    def _check_price(self, new: NewIntent) -> None:
        """Refuse what none of the offered methods takes."""
        if new.currency in OTHER_UNITS:
            raise ProviderRefused(f"Adyen counts {new.currency} in other units than we do", "unsupported_currency")
        wanted = new.methods or ((new.method,) if new.method in TYPES else ())
        offered = [found for one in wanted if (found := find_method(self.methods, one)) is not None]
        if offered and not any(one.takes(new.amount_minor, new.currency) for one in offered):
            names = ", ".join(one.name for one in offered)
            raise ProviderRefused(f"{new.amount_minor} {new.currency} cannot be paid with {names}", "unsupported_price")

    async def authorise(self, ref: str, method: str, key: str, return_url: str = "") -> Intent:
        """`hosted` leads to Adyen's page, a method of ours to its bank's, `SHOPPER/ID` is a stored card. At the test
        address `test_NUMBER` is a test card, `test_NUMBER/DECLINED` one that is declined."""
        found = await self._find(ref)
        intent = found.intent()
        if method == HOSTED and found.session is not None:
            if intent.state is IntentState.CREATED:
                if not found.page_url:  # it was opened for the form, which the fan's browser cannot show
                    opened = found.session
                    await self._open_page(ref, f"{key}:page", PAGE, opened.methods, opened.event, return_url)
                await self._keep(ref, HOSTED, {})
            return (await self._find(ref)).intent()
        if found.asked("SENT", key) and (found.main is not None or not found.is_undecided):
            return intent  # this very call, which was answered, by a notice if not to us
        if intent.state in (IntentState.VOID, IntentState.CAPTURED, IntentState.AUTHORISED):
            raise ProviderRefused(f"{ref} is {intent.state}", "unexpected_state")
        assert found.made is not None
        await self._keep(ref, f"sent:{key}", AdyenWord("SENT", key=key, method=TYPES.get(method, "")))
        body = {
            "amount": {"value": found.made.amount, "currency": found.made.currency},
            "reference": ref,
            "returnUrl": return_url or "https://localhost/",
            "paymentMethod": self._payment_method(method),
            "metadata": {"booking": found.made.booking, "attempt": str(found.made.attempt)},
        }
        if TYPES.get(method) not in AT_ONCE:
            body["additionalData"] = {"manualCapture": "true"}
        if method in TYPES or self._is_test_card(method):
            body["channel"] = "Web"
        else:
            body |= {
                "shopperReference": method.partition("/")[0],
                "shopperInteraction": "ContAuth",
                "recurringProcessingModel": "CardOnFile",
            }
        await self._keep_result(ref, await self._post("/payments", body, key), key, TYPES.get(method, ""))
        return (await self._find(ref)).intent()

    def _is_test_card(self, method: str) -> bool:
        return method.startswith(TEST_CARD) and self._access.is_test

    def _payment_method(self, method: str) -> dict[str, str]:
        if method in TYPES:
            return {"type": TYPES[method]}
        if self._is_test_card(method):
            number, _, holder = method.partition("/")
            ends = {"encryptedExpiryMonth": "test_03", "encryptedExpiryYear": "test_2030"}
            card = {"type": "scheme", "encryptedCardNumber": number, **ends, "encryptedSecurityCode": "test_737"}
            return card | ({"holderName": holder} if holder else {})
        return {"type": "scheme", "storedPaymentMethodId": method.partition("/")[2] or method}

    async def capture(self, ref: str, key: str) -> Intent:
        """`processing` means that Adyen has received the request; a notice says what became of it."""
        found, tried = await self._at(ref)
        intent = found.intent(tried, ref=ref)
        if intent.state is IntentState.CAPTURED and found.asked("ASKED_CAPTURE", key):
            return intent
        if intent.state is IntentState.PROCESSING and tried is not None:
            return intent
        if intent.state is not IntentState.AUTHORISED or tried is None:
            raise ProviderRefused(f"{ref} is {intent.state}", "unexpected_state")
        if tried.capture_failed:
            raise ProviderRefused(f"the bank did not pay {ref} out", "capture_failed")
        await self._modify(found.ref, tried.psp, "captures", key, "ASKED_CAPTURE", amount=tried.amount)
        found, tried = await self._at(ref)
        return found.intent(tried, ref=ref)

    async def void(self, ref: str, key: str) -> Intent:
        """`processing` until a notice says that the authorisation was cancelled. Without an authorisation the object is
        closed here: what is paid into it later is given back when its notice comes."""
        found, tried = await self._at(ref)
        intent = found.intent(tried, ref=ref)
        if intent.state is IntentState.CAPTURED:
            raise ProviderRefused(f"{ref} is captured", "unexpected_state")
        if intent.state is IntentState.VOID:
            return intent
        if tried is not None:
            if not found.is_waiting(tried):
                await self._modify(found.ref, tried.psp, "cancels", key, "ASKED_CANCEL")
        else:
            if found.is_undecided:  # perhaps an authorisation whose answer was lost
                await self._cancel_by_reference(found.ref, key)
            await self._keep(found.ref, CLOSED, {})
        found, tried = await self._at(ref)
        return found.intent(tried, ref=ref)

    async def refund(self, ref: str, amount_minor: int, refund_id: str, key: str) -> ProviderRefund:
        """The refund is pending until a notice says that it was made or refused."""
        found, tried = await self._at(ref)
        intent = found.intent(tried, ref=ref)
        asked = found.asked("ASKED_REFUND", key)
        if not asked:
            left = intent.captured_minor - intent.refunded_minor
            if intent.state is not IntentState.CAPTURED or tried is None or not 0 < amount_minor <= left:
                raise ProviderRefused(f"{amount_minor} is more than is left of {ref}", "charge_already_refunded")
            await self._modify(
                found.ref, tried.psp, "refunds", key, "ASKED_REFUND", amount=amount_minor, reference=refund_id
            )
            found, tried = await self._at(ref)
            asked = found.asked("ASKED_REFUND", key)
            intent = found.intent(tried, ref=ref)
        return next(one for one in intent.refunds if one.ref == asked[0].own)

    async def read(self, ref: str) -> Intent:
        found, tried = await self._at(ref)
        return found.intent(tried, ref=ref)

    async def page(self, since_us: int, after: str = "", limit: int = 100) -> list[Intent]:
        last = after.partition("/")[0]
        refs = await self._notes.newest(NAME, self._account, since_us, last, limit)
        notes = await self._notes.notes_of(NAME, refs)
        found = [AdyenObject(ref, notes[ref]) for ref in refs]
        # A fan who paid twice has a second object. It stands before its own, which the next page begins after.
        return [intent for one in found for intent in (*one.spare_intents(), one.intent())]

    def notice(self, body: bytes, headers: Mapping[str, str], now_us: int) -> Notice | None:
        return read_webhook(body, self._access.hmac_key, self._access.merchant_account)

    async def remember(self, notice: Notice) -> Notice:
        """Keep what a notice tells. Its payment is the one of Adyen's reference, if we know it, or of ours."""
        told = msgspec.json.decode(notice.told, type=AdyenWord)
        ref = await self._notes.ref_of(NAME, told.psp) or notice.ref
        known = AdyenObject(ref, (await self._notes.notes_of(NAME, [ref]))[ref])
        is_foreign = bool(notice.account) and notice.account != known.account  # its reference was chosen there
        if notice.kind in KEPT and known.made is not None and not is_foreign:
            note = ProviderNote(ref, f"notice:{notice.id}", notice.account, told.psp, notice.told, self._now())
            await self._notes.keep(NAME, note)
        return msgspec.structs.replace(notice, ref=ref)

    async def returned(self, ref: str, answers: Mapping[str, str]) -> bool:
        """The fan came back from Adyen's page or the page of a bank, or Adyen's form is done. What that says is asked
        of Adyen."""
        found = await self._find(ref)
        if found.session is not None and answers.get("sessionResult"):
            # The session may be that of another payment, which the fan has left in an old tab: at another price.
            session = answers.get("sessionId") or found.session.id
            own = ref if session in found.sessions else await self._notes.ref_of(NAME, session)
            if not own:
                return False
            result = quote(answers["sessionResult"], safe="")
            got = await self._send("GET", f"/sessions/{quote(session, safe='')}?sessionResult={result}")
            for one in got.get("payments") or ():
                await self._keep_result(own, one | {"amount": one.get("amount") or {}}, "")
            return True
        if answers.get("redirectResult"):
            details = {"details": {"redirectResult": answers["redirectResult"]}}
            key = f"details:{hashlib.sha256(answers['redirectResult'].encode()).hexdigest()[:40]}"
            got = await self._post("/payments/details", details, key)
            # The page may be that of another payment, which the fan has left: perhaps of the booking at a lower price.
            own = str(got.get("merchantReference") or "")
            if own and (await self._notes.notes_of(NAME, [own]))[own]:
                await self._keep_result(own, got, key)
            return True
        return False

    async def aclose(self) -> None:
        await self._client.aclose()

    # Notes.

    async def _find(self, ref: str) -> AdyenObject:
        found = AdyenObject(ref, (await self._notes.notes_of(NAME, [ref]))[ref])
        if found.made is None:
            raise ProviderRefused(f"there is no {ref}", "resource_missing")
        return found

    async def _at(self, ref: str) -> tuple[AdyenObject, Authorisation | None]:
        """The object and the authorisation that `ref` names: `ref/psp` is one that a fan made beside the first."""
        own, _, psp = ref.partition("/")
        found = await self._find(own)
        tried = found.find_try(psp) if psp else found.main
        if psp and tried is None:
            raise ProviderRefused(f"there is no {ref}", "resource_missing")
        return found, tried

    async def _keep(self, ref: str, name: str, what: Any, their_ref: str = "") -> bool:
        body = msgspec.json.encode(what).decode()
        return await self._notes.keep(NAME, ProviderNote(ref, name, self._account, their_ref, body, self._now()))

    async def _keep_result(self, ref: str, got: Mapping[str, Any], key: str, asked: str = "") -> None:
        """Keep how an authorisation went, by the answer to a call."""
        psp, result = str(got.get("pspReference") or ""), str(got.get("resultCode") or "")
        amount = int((got.get("amount") or {}).get("value") or 0)
        method = str(
            (got.get("paymentMethod") or {}).get("brand") or (got.get("paymentMethod") or {}).get("type") or asked
        )
        if result == "Authorised":
            told = AdyenWord("AUTHORISATION", True, psp, amount=amount, method=method, key=key)
        elif result in ("Refused", "Cancelled", "Error"):
            why = str(got.get("refusalReason") or result)
            told = AdyenWord("AUTHORISATION", False, psp, method=method, reason=why, key=key)
        elif result in ("RedirectShopper", "ChallengeShopper", "IdentifyShopper", "PresentToShopper"):
            url = str((got.get("action") or {}).get("url") or "")
            told = AdyenWord("ACTION", url=url, key=key, method=method)
        else:  # Received, Pending: a notice follows
            told = AdyenWord("PENDING", psp=psp, method=method, key=key)
        await self._keep(ref, f"answer:{key}:{psp}:{result}", told, psp)

    # Calls.

    async def _open_form(self, ref: str, new: NewIntent) -> None:
        """A session for Adyen's form on our page. What a bank asks it asks on its own page: no frame of a bank, whose
        addresses nobody knows, has to be allowed on ours."""
        redirect = {"threeDSRequestData": {"nativeThreeDS": "disabled"}}
        body = self._session_body(ref, await self._find(ref), new.methods, new.event_id, new.return_url)
        got = await self._post("/sessions", body | {"authenticationData": redirect}, new.key)
        opened = AdyenSession(
            got["id"], ends_at_us=_moment(got["expiresAt"]), data=got["sessionData"], methods=new.methods
        )
        await self._keep(ref, SESSION, msgspec.structs.replace(opened, event=new.event_id), opened.id)

    async def _open_page(
        self, ref: str, key: str, note: str, methods: Sequence[str], event_id: str, return_url: str
    ) -> None:
        """A session on Adyen's page."""
        body = self._session_body(ref, await self._find(ref), methods, event_id, return_url)
        got = await self._post("/sessions", {"mode": "hosted"} | body, key)
        opened = AdyenSession(got["id"], str(got.get("url") or ""), _moment(got["expiresAt"]))
        await self._keep(ref, note, opened, opened.id)

    def _session_body(
        self, ref: str, found: AdyenObject, methods: Sequence[str], event_id: str, return_url: str
    ) -> dict[str, Any]:
        made = found.made
        assert made is not None
        ends = datetime.fromtimestamp(self._now() / 1_000_000, UTC) + SESSION_LASTS
        body: dict[str, Any] = {
            "channel": "Web",
            "amount": {"value": made.amount, "currency": made.currency},
            "reference": ref,
            "returnUrl": return_url or "https://localhost/",
            "expiresAt": ends.isoformat(timespec="seconds"),
            "additionalData": {"manualCapture": "true"},
            "metadata": {"booking": made.booking, "attempt": str(made.attempt), "event": event_id[:80]},
        }
        if methods:
            body["allowedPaymentMethods"] = [TYPES.get(one, "scheme") for one in methods]
        return body

    async def _modify(
        self, ref: str, psp: str, what: str, key: str, code: str, *, amount: int = 0, reference: str = ""
    ) -> None:
        """Ask to capture, cancel or refund, and keep that Adyen has received it."""
        body: dict[str, Any] = {"reference": reference or ref}
        if amount:
            found = await self._find(ref)
            assert found.made is not None
            body["amount"] = {"value": amount, "currency": found.made.currency}
        got = await self._post(f"/payments/{psp}/{what}", body, key)
        told = AdyenWord(code, psp=psp, own=got["pspReference"], amount=amount, refund_id=reference, key=key)
        await self._keep(ref, f"{code}:{key}", told, psp)

    async def _cancel_by_reference(self, ref: str, key: str) -> None:
        """Cancel what may have been authorised under our reference. Adyen refuses it if nothing was."""
        try:
            await self._post("/cancels", {"paymentReference": ref, "reference": ref}, f"{key}:ref")
        except ProviderRefused:
            return

    async def _post(self, path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
        if len(key) > MAX_KEY_CHARS:
            key = hashlib.sha256(key.encode()).hexdigest()
        if path != "/payments/details":
            body = {"merchantAccount": self._merchant} | body
        return await self._send("POST", path, body, key)

    async def _send(self, how: str, path: str, body: dict[str, Any] | None = None, key: str = "") -> dict[str, Any]:
        """Adyen's answer, with its errors turned into ours."""
        try:
            answer = await self._client.request(how, path, json=body, headers={"Idempotency-Key": key} if key else {})
            got: dict[str, Any] = answer.json()
        except httpx.HTTPError as error:
            raise ProviderUnknown(f"Adyen did not answer: {type(error).__name__}") from error
        except ValueError:
            got = {}
        if answer.is_success:
            if not isinstance(got, dict):
                raise ProviderUnknown(f"Adyen answered {path} with something else than an object")
            return got
        why = str(got.get("message") or answer.status_code) if isinstance(got, dict) else str(answer.status_code)
        if answer.status_code == 429:
            raise ProviderNotCalled("Adyen: too many requests")
        if answer.status_code in (401, 403):
            raise ProviderNotCalled(f"Adyen refuses our API key for the merchant account {self._merchant}: {why}")
        if answer.status_code >= 500 or answer.status_code == 409:
            raise ProviderUnknown(f"Adyen: {answer.status_code}")  # repeated under its key: never done twice
        code = str(got.get("errorCode") or f"http_{answer.status_code}") if isinstance(got, dict) else "error"
        raise ProviderRefused(f"Adyen: {why}", code)


class _Moments:
    """The time of each note. No two notes of a process have the same, so that they keep their order."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._last_us = clock, 0

    def __call__(self) -> int:
        self._last_us = max(self._clock(), self._last_us + 1)
        return self._last_us


def _moment(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1_000_000)


def _ref_of(key: str) -> str:
    """Our reference for the payment that is created under this key: at most 80 characters, no colons."""
    ref = key.replace(":", "-")
    return ref if len(ref) <= 80 else hashlib.sha256(key.encode()).hexdigest()
