"""A stand-in for Adyen, written from its public documentation (Checkout API v71 and standard webhooks v1).

It answers `/sessions`, `/payments`, `/payments/details`, captures, refunds and cancels over HTTP as the documents say:
with an API key, with an answer repeated for a repeated idempotency key, with modifications that are only received. What
became of them it tells in signed notices, which the test hands over in the order that it likes.
"""

import asyncio
import contextlib
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.adyen import AdyenProvider
from frontrow.boxoffice.adapters.payments.adyen_access import AdyenAccess
from frontrow.boxoffice.adapters.payments.adyen_webhooks import sign_text
from frontrow.core.clock import Clock

CLIENT_KEY = "test_CLIENTKEY"
KEY, HMAC_KEY, MERCHANT = (
    "AQE-test-key",
    "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
    "FrontrowECOM",
)
REFUSED = {"declined": "Refused", "poor": "Not enough balance", "cvc": "CVC Declined"}
AT_ONCE = {"ideal", "bcmc", "eps", "onlineBanking_PL", "twint", "swish"}


class Refusal(Exception):
    """A definite no, as Adyen writes it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.body = status, {"status": status, "errorCode": code, "message": message}


class Payment:
    """One authorisation."""

    def __init__(self, psp: str, merchant: str, reference: str, amount: dict[str, Any], method: str, card: str) -> None:
        self.psp, self.merchant, self.reference, self.amount = psp, merchant, reference, amount
        self.method, self.card, self.state = method, card, "pending"
        self.captured = self.refunded = 0
        self.refusals = 0

    @property
    def is_reserved(self) -> bool:
        return self.state == "authorised" and not self.captured


class AdyenServer:
    """Adyen's side of everything."""

    def __init__(self) -> None:
        self.url = ""
        self.payments: dict[str, Payment] = {}
        self.sessions: dict[str, dict[str, Any]] = {}
        self.redirects: dict[str, str] = {}  # what the bank's page gives back -> the payment
        self.answers: dict[str, tuple[int, Any]] = {}
        self.notices: list[bytes] = []
        self.calls: Counter[str] = Counter()
        self.merchants = {MERCHANT}
        self.revoked: set[str] = set()
        self.fail_next: list[str] = []  # "lost": done, but not answered; "500": not done
        self.away = False
        self.decides = True  # whether it tells what became of modifications
        self._numbers = itertools.count(1)

    # What fans and banks do.

    def pay_session(self, session_id: str, method: str = "visa", *, success: bool = True) -> str:
        """A fan pays on the session's page. Returns what the browser brings back."""
        session = self.sessions[session_id]
        payment = self._made(session["merchantAccount"], session["reference"], session["amount"], method, method)
        self._decide(payment, "" if success else "Refused")
        session["status"] = "completed" if success else "refused"
        if success:
            session["payments"].append(self._shown(payment) | {"resultCode": "Authorised"})
        return f"result-{session_id}"

    def set_up_session(self, session_id: str, data: str) -> dict[str, Any] | None:
        """Adyen's form asks what it can show; None: it is no session of a form."""
        session = self.sessions.get(session_id, {})
        if "asked" not in session or data != f"data-of:{session_id}":
            return None
        kinds = session["asked"].get("allowedPaymentMethods", ["scheme"])
        return {"id": session_id, "amount": session["amount"], "paymentMethods": [{"type": one} for one in kinds]}

    def pay_in_form(self, session_id: str, card: str) -> dict[str, Any]:
        """A fan pays in Adyen's form. A bank's page is a redirect; a paid session takes nothing more."""
        session = self.sessions[session_id]
        assert "asked" in session, "a session of Adyen's page"
        if session["status"] == "completed":
            return {"resultCode": "Error", "sessionResult": f"result-{session_id}"}
        if card in AT_ONCE:
            payment = self._made(session["merchantAccount"], session["reference"], session["amount"], card, card)
            result = f"R{payment.psp}"
            self.redirects[result] = payment.psp
            url = f"{self.url.removesuffix('/v71')}/redirect/{result}"
            return {"resultCode": "RedirectShopper", "action": {"type": "redirect", "method": "GET", "url": url}}
        good = card not in REFUSED
        result = self.pay_session(session_id, card if not good else "visa", success=good)
        session["status"] = "completed" if good else "active"  # another card may be tried
        return {"resultCode": "Authorised" if good else "Refused", "sessionResult": result}

    def answer_redirect(self, url: str, *, success: bool = True) -> str:
        """The fan at the page of the bank. Returns the redirectResult."""
        result = url.rpartition("/")[2]
        payment = self.payments[self.redirects[result]]
        if payment.state == "pending":
            self._decide(payment, "" if success else "3D Not Authenticated")
        return result

    def fail_capture(self, psp: str) -> None:
        payment = self.payments[psp]
        payment.captured = 0
        self._tell("CAPTURE_FAILED", payment, original=psp, reason="Capture Failed")

    def open_dispute(self, psp: str, amount: int) -> str:
        """The fan's bank takes money back for now. Returns the dispute's name."""
        own = self._psp()
        self._tell_dispute("CHARGEBACK", own, psp, amount)
        return own

    def close_dispute(self, own: str, psp: str, amount: int, *, won: bool) -> None:
        self._tell_dispute("CHARGEBACK_REVERSED" if won else "SECOND_CHARGEBACK", own, psp, amount)

    def _tell_dispute(self, code: str, own: str, psp: str, amount: int) -> None:
        payment = self.payments[psp]
        taken = payment.amount | {"value": amount}
        self._tell(code, payment, own=own, original=psp, amount=taken, reason="Fraudulent")

    def _decide(self, payment: Payment, refusal: str) -> None:
        payment.state = "refused" if refusal else "authorised"
        if not refusal and payment.method in AT_ONCE:
            payment.captured = payment.amount["value"]
        self._tell("AUTHORISATION", payment, success=not refusal, reason=refusal)

    # The API.

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.calls[request.path] += 1
        if request.headers.get("X-API-Key") != KEY:
            return web.json_response({"status": 401, "errorCode": "000", "message": "Unauthorized"}, status=401)
        fault = self.fail_next.pop(0) if self.fail_next and request.method == "POST" else ""
        if fault == "500" or self.away:
            return web.json_response({"status": 500, "errorCode": "905", "message": "down"}, status=500)
        key = request.headers.get("Idempotency-Key", "")
        assert len(key) <= 64
        if request.method == "POST" and key in self.answers:
            status, body = self.answers[key]
        else:
            asked = await request.json() if request.method == "POST" else {}
            try:
                status, body = 200, self._act(request, asked)
                status = 201 if request.path.count("/") > 2 or "sessions" in request.path else 200
            except Refusal as refusal:
                status, body = refusal.status, refusal.body
            if request.method == "POST" and key and status < 400:
                self.answers[key] = (status, body)
        if fault == "lost":
            assert request.transport is not None
            request.transport.close()
            await asyncio.sleep(0)
        return web.json_response(body, status=200 if request.method == "GET" and status < 400 else status)

    def _act(self, request: web.Request, asked: dict[str, Any]) -> Any:
        path = request.path.removeprefix("/v71")
        if request.method == "GET":
            session = self.sessions[path.split("/")[2]]
            if request.query.get("sessionResult") != f"result-{session['id']}":
                raise Refusal(422, "14_030", "sessionResult is not valid")
            return {name: session[name] for name in ("id", "status", "reference", "payments")}
        if path == "/payments/details":
            result = asked["details"]["redirectResult"]
            payment = self.payments[self.redirects[result]]
            words = {"authorised": "Authorised", "refused": "Refused"}
            said = {"resultCode": words.get(payment.state, "Pending"), "merchantReference": payment.reference}
            return self._shown(payment) | said
        if asked.get("merchantAccount") not in self.merchants:
            raise Refusal(422, "901", "Invalid Merchant Account")
        if asked["merchantAccount"] in self.revoked:
            raise Refusal(403, "010", "Not allowed")
        assert len(asked.get("reference", "")) <= 80
        if path == "/sessions":
            name = f"CS{next(self._numbers):08d}"
            session = {"id": name, "status": "active", "payments": [], "expiresAt": asked["expiresAt"]}
            self.sessions[name] = session | {
                k: asked[k] for k in ("reference", "amount", "merchantAccount", "returnUrl")
            }
            if asked.get("mode") == "hosted":
                url = f"{self.url.removesuffix('/v71')}/pay/{name}"
                return self.sessions[name] | {"url": url}
            self.sessions[name]["asked"] = asked
            return self.sessions[name] | {"sessionData": f"data-of:{name}"}
        if path == "/payments":
            return self._pay(asked)
        if path == "/cancels":
            found = [p for p in self.payments.values() if p.reference == asked["paymentReference"]]
            if not found:
                raise Refusal(422, "167", "Original pspReference required for this operation")
            return self._cancel(found[-1], asked, "TECHNICAL_CANCEL")
        _, _, psp, what = path.split("/")
        payment = self.payments.get(psp) or _missing()
        if payment.merchant != asked["merchantAccount"]:
            raise Refusal(422, "167", "Original pspReference required for this operation")
        if what == "cancels":
            return self._cancel(payment, asked, "CANCELLATION")
        return self._capture(payment, asked) if what == "captures" else self._refund(payment, asked)

    def _pay(self, asked: dict[str, Any]) -> Any:
        method = asked["paymentMethod"]
        card = method.get("storedPaymentMethodId", "")
        if "encryptedCardNumber" in method:  # of the test environment; the holder's name decides what happens
            assert method["encryptedCardNumber"] == "test_4111111111111111"
            assert "shopperReference" not in asked
            card = {"DECLINED": "declined"}.get(method.get("holderName", ""), "visa")
        kind = "visa" if method["type"] == "scheme" else method["type"]
        payment = self._made(asked["merchantAccount"], asked["reference"], asked["amount"], kind, card)
        if card == "3ds" or method["type"] != "scheme":
            result = f"R{payment.psp}"
            self.redirects[result] = payment.psp
            url = f"{self.url.removesuffix('/v71')}/redirect/{result}"
            return {"resultCode": "RedirectShopper", "action": {"type": "redirect", "method": "GET", "url": url}}
        self._decide(payment, REFUSED.get(card, ""))
        answer = self._shown(payment) | {"merchantReference": payment.reference}
        if payment.state == "refused":
            return answer | {"resultCode": "Refused", "refusalReason": REFUSED[card]}
        return answer | {"resultCode": "Authorised"}

    def _capture(self, payment: Payment, asked: dict[str, Any]) -> Any:
        own, amount = self._psp(), asked["amount"]
        good = payment.is_reserved and amount["value"] <= payment.amount["value"] and payment.card != "lapses"
        if good:
            payment.captured = amount["value"]
        if self.decides:
            reason = "" if good else "Insufficient balance on payment"
            self._tell("CAPTURE", payment, own=own, original=payment.psp, success=good, amount=amount, reason=reason)
        return self._received(payment, own, asked)

    def _refund(self, payment: Payment, asked: dict[str, Any]) -> Any:
        own, amount = self._psp(), asked["amount"]
        good = 0 < amount["value"] <= payment.captured - payment.refunded
        reason = "" if good else "Insufficient balance on payment"
        if payment.card == "refund_fails" and not payment.refusals:
            good, reason, payment.refusals = False, "lost_or_stolen_card", 1
        if good:
            payment.refunded += amount["value"]
        if self.decides and payment.card != "refund_pends":
            self._tell(
                "REFUND",
                payment,
                own=own,
                original=payment.psp,
                success=good,
                amount=amount,
                reason=reason,
                reference=asked.get("reference", ""),
            )
        return self._received(payment, own, asked)

    def _cancel(self, payment: Payment, asked: dict[str, Any], code: str) -> Any:
        own, good = self._psp(), payment.is_reserved
        if good:
            payment.state = "cancelled"
        if self.decides:
            self._tell(code, payment, own=own, original=payment.psp, success=good)
        return self._received(payment, own, asked)

    # Words.

    def _psp(self) -> str:
        return f"PSP{next(self._numbers):013d}"

    def _made(self, merchant: str, reference: str, amount: dict[str, Any], method: str, card: str) -> Payment:
        payment = Payment(self._psp(), merchant, reference, amount, method, card)
        self.payments[payment.psp] = payment
        return payment

    def _shown(self, payment: Payment) -> dict[str, Any]:
        brand = {"type": "scheme", "brand": payment.method} if payment.method == "visa" else {"type": payment.method}
        return {"pspReference": payment.psp, "amount": payment.amount, "paymentMethod": brand}

    def _received(self, payment: Payment, own: str, asked: dict[str, Any]) -> Any:
        words = {"pspReference": own, "paymentPspReference": payment.psp, "status": "received"}
        return words | {"merchantAccount": payment.merchant, "reference": asked.get("reference", "")}

    def _tell(
        self,
        code: str,
        payment: Payment,
        *,
        own: str = "",
        original: str = "",
        success: bool = True,
        amount: dict[str, Any] | None = None,
        reason: str = "",
        reference: str = "",
    ) -> None:
        self.notices.append(
            notice_body(
                code,
                own or payment.psp,
                payment.merchant,
                reference or payment.reference,
                amount or payment.amount,
                original=original,
                success=success,
                method=payment.method,
                reason=reason,
            )
        )


def notice_body(
    code: str,
    psp: str,
    merchant: str,
    reference: str,
    amount: dict[str, Any],
    *,
    original: str = "",
    success: bool = True,
    method: str = "visa",
    reason: str = "",
    key: str = HMAC_KEY,
) -> bytes:
    """A standard webhook with its signature."""
    flag = "true" if success else "false"
    text = ":".join((psp, original, merchant, reference, str(amount["value"]), amount["currency"], code, flag))
    item: dict[str, Any] = {
        "pspReference": psp,
        "merchantAccountCode": merchant,
        "merchantReference": reference,
        "amount": amount,
        "eventCode": code,
        "eventDate": "2026-11-19T12:00:00+01:00",
        "paymentMethod": method,
        "reason": reason,
        "success": flag,
        "additionalData": {"hmacSignature": sign_text(text, key)},
    }
    if original:
        item["originalReference"] = original
    return json.dumps({"live": "false", "notificationItems": [{"NotificationRequestItem": item}]}).encode()


def _missing() -> Payment:
    raise Refusal(422, "167", "Original pspReference required for this operation")


@contextlib.asynccontextmanager
async def adyen_server() -> AsyncIterator[AdyenServer]:
    """The stand-in on a free port."""
    adyen, app = AdyenServer(), web.Application()
    app.router.add_route("*", "/{rest:.*}", adyen.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    adyen.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v71"
    try:
        yield adyen
    finally:
        await runner.cleanup()


def provider_of(adyen: AdyenServer, ledger: SqlLedger, clock: Clock, client_key: str = "") -> AdyenProvider:
    access = AdyenAccess(adyen.url, KEY, MERCHANT, HMAC_KEY, client_key)
    return AdyenProvider(access, ledger.provider_notes, clock)
