"""Reads Adyen's standard webhooks. The signature stands inside the body and covers eight of its fields."""

import base64
import hashlib
import hmac
from typing import Final

import msgspec

from frontrow.boxoffice.adapters.payments.adyen_notes import AT_ONCE, AdyenWord
from frontrow.boxoffice.payments.model.provider_intents import DISPUTES, Dispute, Notice, NoticeKind
from frontrow.core.errors import InvalidInput, Unauthorised

KINDS: Final = {
    "AUTHORISATION": NoticeKind.AUTHORISED,
    "CAPTURE": NoticeKind.PAID,
    "CAPTURE_FAILED": NoticeKind.PAYMENT,
    "CANCELLATION": NoticeKind.PAYMENT,
    "TECHNICAL_CANCEL": NoticeKind.PAYMENT,
    "REFUND": NoticeKind.REFUND,
    "REFUND_FAILED": NoticeKind.REFUND,
    "REFUNDED_REVERSED": NoticeKind.REFUND,
    "CHARGEBACK": NoticeKind.DISPUTE_OPENED,
    "CHARGEBACK_REVERSED": NoticeKind.DISPUTE_WON,
    "SECOND_CHARGEBACK": NoticeKind.DISPUTE_LOST,
    "PREARBITRATION_LOST": NoticeKind.DISPUTE_LOST,
    "PREARBITRATION_WON": NoticeKind.DISPUTE_WON,
}
# Their success is a failure, and their reason says which. That of another success is the last digits of the card.
FAILURES: Final = frozenset({"CAPTURE_FAILED", "REFUND_FAILED", "REFUNDED_REVERSED"})
KEPT: Final = frozenset({NoticeKind.AUTHORISED, NoticeKind.PAID, NoticeKind.PAYMENT, NoticeKind.REFUND})


class _Amount(msgspec.Struct):
    value: int = 0
    currency: str = ""


class _More(msgspec.Struct, rename="camel"):
    hmac_signature: str = ""


class _Item(msgspec.Struct, rename="camel"):
    """One notification. Adyen writes `success` as a text."""

    psp_reference: str
    merchant_account_code: str
    event_code: str
    success: str | bool
    merchant_reference: str = ""
    original_reference: str = ""
    amount: _Amount = msgspec.field(default_factory=_Amount)
    payment_method: str = ""
    reason: str | None = ""
    additional_data: _More = msgspec.field(default_factory=_More)

    @property
    def is_success(self) -> bool:
        return str(self.success).lower() == "true"

    def signed_text(self) -> str:
        """What Adyen signs: eight fields with colons in between."""
        return ":".join(
            (
                self.psp_reference,
                self.original_reference,
                self.merchant_account_code,
                self.merchant_reference,
                str(self.amount.value),
                self.amount.currency,
                self.event_code,
                "true" if self.is_success else "false",
            )
        )


class _Wrapper(msgspec.Struct, rename="pascal"):
    notification_request_item: _Item


class _Webhook(msgspec.Struct, rename="camel"):
    notification_items: list[_Wrapper]


_decode = msgspec.json.Decoder(_Webhook).decode


def _kind_of(item: _Item) -> NoticeKind:
    kind = KINDS.get(item.event_code, NoticeKind.OTHER)
    if kind is NoticeKind.AUTHORISED and item.is_success and item.payment_method in AT_ONCE:
        return NoticeKind.PAID
    return NoticeKind.PAYMENT if kind in (NoticeKind.AUTHORISED, NoticeKind.PAID) and not item.is_success else kind


def sign_text(text: str, hmac_key: str) -> str:
    """Adyen's signature of a text, under a key in hexadecimal."""
    return base64.b64encode(hmac.digest(bytes.fromhex(hmac_key), text.encode(), hashlib.sha256)).decode()


def signed_webhook(merchant_account: str, reference: str, hmac_key: str) -> bytes:
    """A standard webhook about nothing of ours, as Adyen signs it."""
    item = _Item(reference, merchant_account, "REPORT_AVAILABLE", "true", amount=_Amount(0, "EUR"))
    item.additional_data = _More(sign_text(item.signed_text(), hmac_key))
    return msgspec.json.encode(_Webhook([_Wrapper(item)]))


def read_webhook(body: bytes, hmac_key: str, own_account: str) -> Notice:
    """The notice in a standard webhook. `Unauthorised` if it is not signed with our key.

    Adyen puts one notification into a webhook in JSON. Of several only the first could be acted on, so they are refused
    and show in Adyen's list of failed webhooks.
    """
    try:
        items = _decode(body).notification_items
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the webhook's body is no notification: {error}", param="body") from None
    if len(items) != 1:
        raise InvalidInput(f"the webhook has {len(items)} notifications; there must be one", param="body")
    item = items[0].notification_request_item
    expected = sign_text(item.signed_text(), hmac_key).encode()
    if not hmac.compare_digest(expected, item.additional_data.hmac_signature.encode()):
        raise Unauthorised("the webhook is not signed with adyen.hmac_key")
    kind = _kind_of(item)
    first = item.original_reference or item.psp_reference  # of the payment; a modification has a reference of its own
    dispute = None
    if kind in DISPUTES:
        dispute = Dispute(item.psp_reference, item.amount.value, item.amount.currency, item.reason or "")
    told = AdyenWord(
        item.event_code,
        item.is_success,
        first,
        item.psp_reference if item.original_reference else "",
        item.amount.value,
        item.payment_method,
        "" if item.is_success and item.event_code not in FAILURES else (item.reason or "")[:200],
        refund_id=item.merchant_reference if kind is NoticeKind.REFUND else "",
    )
    return Notice(
        f"{item.psp_reference}:{item.event_code}:{'true' if item.is_success else 'false'}",
        kind,
        item.merchant_reference,
        "" if item.merchant_account_code == own_account else item.merchant_account_code,
        dispute,
        told=msgspec.json.encode(told).decode(),
    )
