"""Reads what Stripe's webhook is about. Its signature was checked before, but its body can still be anything.

The simulated provider sends the same events.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from frontrow.boxoffice.payments.model.provider_intents import DISPUTES, Dispute, Notice, NoticeKind
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput, Unauthorised

AUTHORISED: Final = "payment_intent.amount_capturable_updated"
PAID: Final = "payment_intent.succeeded"
DISPUTE_OPENED: Final = "charge.dispute.created"
DISPUTE_CLOSED: Final = "charge.dispute.closed"
ACCOUNT_EVENTS: Final = ("account.updated", "account.application.deauthorized")
CLOSED_AS: Final = {"won": NoticeKind.DISPUTE_WON, "lost": NoticeKind.DISPUTE_LOST}


class _Evidence(msgspec.Struct):
    due_by: int | None = None


class _About(msgspec.Struct):
    """The object that the event is about: a payment intent, or something that names one."""

    id: str = ""
    object: str = ""
    payment_intent: Any = None
    status: Any = None
    amount: Any = None
    currency: Any = None
    reason: Any = None
    evidence_details: _Evidence | None = None


class _Content(msgspec.Struct):
    object: _About


class _WebhookEvent(msgspec.Struct):
    id: str
    type: str
    data: _Content
    account: str | None = None


_decode = msgspec.json.Decoder(_WebhookEvent).decode


def signature_of(headers: Mapping[str, str], name: str) -> str:
    """The header with the signature; without it the webhook is refused."""
    signature = headers.get(name, "")
    if not signature:
        raise Unauthorised(f"the header {name.title()} is missing")
    return signature


def read_notice(body: bytes) -> Notice | None:
    """The notice, or None if it is about no payment. Raises `InvalidInput` if the body is no event."""
    try:
        event = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the webhook's body is not an event: {error}", param="body") from None
    about, account = event.data.object, event.account or ""
    if event.type in ACCOUNT_EVENTS:
        named = account or (about.id if about.object == "account" else "")
        return Notice(event.id, NoticeKind.ACCOUNT_CHANGED, named, named) if named else None
    ref = about.id if about.object == "payment_intent" else about.payment_intent
    if not isinstance(ref, str) or not ref:
        return None
    kind = kind_of(event.type, str(about.status))
    return Notice(event.id, kind, ref, account, _dispute_of(about) if kind in DISPUTES else None)


def kind_of(event_type: str, status: str = "") -> NoticeKind:
    """What Stripe's event means for the checkout."""
    if event_type == AUTHORISED:
        return NoticeKind.AUTHORISED
    if event_type == PAID:
        return NoticeKind.PAID
    if event_type == DISPUTE_OPENED:
        return NoticeKind.DISPUTE_OPENED
    if event_type == DISPUTE_CLOSED:
        return CLOSED_AS.get(status, NoticeKind.DISPUTE_CLOSED)
    if event_type.startswith("payment_intent."):
        return NoticeKind.PAYMENT
    # refund.updated, refund.failed, charge.refunded, charge.refund.updated
    return NoticeKind.REFUND if "refund" in event_type else NoticeKind.OTHER


def _dispute_of(about: _About) -> Dispute:
    due_s = (about.evidence_details.due_by if about.evidence_details else None) or 0
    amount_minor = about.amount if isinstance(about.amount, int) else 0
    return Dispute(about.id, amount_minor, str(about.currency or "").upper(), str(about.reason or ""), due_s * US_PER_S)
