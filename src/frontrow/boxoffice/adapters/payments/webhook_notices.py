"""Reads what Stripe's webhook is about. Its signature was checked before, but its body can still be anything.

The simulated provider sends the same events.
"""

from typing import Any, Final

import msgspec

from frontrow.boxoffice.payments.model.provider_intents import Notice, NoticeKind
from frontrow.core.errors import InvalidInput

AUTHORISED: Final = "payment_intent.amount_capturable_updated"


class _About(msgspec.Struct):
    """The object that the event is about: a payment intent, or something that names one."""

    id: str = ""
    object: str = ""
    payment_intent: Any = None


class _Content(msgspec.Struct):
    object: _About


class _WebhookEvent(msgspec.Struct):
    id: str
    type: str
    data: _Content


_decode = msgspec.json.Decoder(_WebhookEvent).decode


def read_notice(body: bytes) -> Notice | None:
    """The notice, or None if it is about no payment. Raises `InvalidInput` if the body is no event."""
    try:
        event = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the webhook's body is not an event: {error}", param="body") from None
    about = event.data.object
    ref = about.id if about.object == "payment_intent" else about.payment_intent
    return Notice(event.id, kind_of(event.type), ref) if isinstance(ref, str) and ref else None


def kind_of(event_type: str) -> NoticeKind:
    """What Stripe's event means for the checkout."""
    if event_type == AUTHORISED:
        return NoticeKind.AUTHORISED
    # refund.updated, refund.failed, charge.refunded, charge.refund.updated
    return NoticeKind.REFUND if "refund" in event_type else NoticeKind.OTHER
