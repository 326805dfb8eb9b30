"""Turns Stripe's PaymentIntent and Refund objects (plain dictionaries) into our values."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from frontrow.boxoffice.payments.model.provider_intents import Intent, IntentState, ProviderRefund
from frontrow.core.clock import US_PER_S

STATES: Final = {
    "requires_payment_method": IntentState.CREATED,
    "requires_confirmation": IntentState.CREATED,
    "requires_action": IntentState.ACTION,
    "processing": IntentState.PROCESSING,
    "requires_capture": IntentState.AUTHORISED,
    "succeeded": IntentState.CAPTURED,
    "canceled": IntentState.VOID,
}


def intent_of(found: Mapping[str, Any], refunds: Sequence[Mapping[str, Any]] = ()) -> Intent:
    """A PaymentIntent with its refunds."""
    metadata = found.get("metadata") or {}
    error = found.get("last_payment_error")
    action = found.get("next_action")
    attempt = str(metadata.get("attempt", ""))
    return Intent(
        ref=found["id"],
        state=STATES[found["status"]],
        amount_minor=found["amount"],
        currency=found["currency"].upper(),
        captured_minor=found.get("amount_received") or 0,
        booking_id=metadata.get("booking", ""),
        attempt=int(attempt) if attempt.isdigit() else 0,
        client_secret=found.get("client_secret") or "",
        action_url=(action.get("redirect_to_url") or {}).get("url") or "" if action else "",
        error=error.get("decline_code") or error.get("code") or "declined" if error else "",
        failure=_failure_of(error) if error else "",
        refunds=tuple(map(refund_of, refunds)) if refunds else (),
        created_at_us=int(found.get("created") or 0) * US_PER_S,
    )


def _failure_of(error: Mapping[str, Any]) -> str:
    """The id of one failed try: its charge, else the card, else the error code."""
    card = error.get("payment_method") or ""
    return str(
        error.get("charge") or (card.get("id") if isinstance(card, Mapping) else card) or error.get("code") or ""
    )


def refund_of(found: Mapping[str, Any]) -> ProviderRefund:
    """A Refund. One that was cancelled counts as failed, one without a status as succeeded."""
    metadata = found.get("metadata") or {}
    status = found.get("status")
    failed = status in ("failed", "canceled")
    failure = str(found.get("failure_reason") or status) if failed else ""
    pending = status in ("pending", "requires_action")
    return ProviderRefund(found["id"], found["amount"], metadata.get("refund", ""), failed, pending, failure)
