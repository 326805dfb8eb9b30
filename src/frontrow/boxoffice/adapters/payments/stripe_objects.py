"""Turns Stripe's PaymentIntent and Refund objects (plain dictionaries) into our values."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from frontrow.boxoffice.payments.model.payment_methods import ALL_METHODS
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    IntentState,
    ProviderRefund,
    TransferDetails,
)
from frontrow.core.clock import US_PER_S

OUR_IDS: Final = {"p24": "przelewy24", "customer_balance": "bank_transfer"}  # Stripe's other types have our ids
METHOD_IDS: Final = frozenset(method.id for method in ALL_METHODS)
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
    """A PaymentIntent with its refunds. A shown bank transfer is awaited money: the fan has agreed to send it."""
    metadata = found.get("metadata") or {}
    error = found.get("last_payment_error")
    action = found.get("next_action")
    attempt = str(metadata.get("attempt", ""))
    transfer = transfer_of(action.get("display_bank_transfer_instructions") or {}) if action else None
    return Intent(
        ref=found["id"],
        state=IntentState.PROCESSING if transfer else STATES[found["status"]],
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
        method=method_of(found),
        transfer=transfer,
    )


def method_of(found: Mapping[str, Any]) -> str:
    """Our id of the method that the fan chose; "" while it is not known. Cards of wallets name the wallet."""
    chosen = found.get("payment_method")
    if not chosen:
        return ""
    if isinstance(chosen, str):
        if chosen in METHOD_IDS:  # of the simulated provider
            return chosen
        types: Sequence[str] = found.get("payment_method_types") or ()
        return OUR_IDS.get(types[0], str(types[0])) if len(types) == 1 else ""
    kind = str(chosen.get("type") or "")
    wallet = ((chosen.get("card") or {}).get("wallet") or {}).get("type")
    return str(wallet) if wallet in ("apple_pay", "google_pay") else OUR_IDS.get(kind, kind)


def transfer_of(shown: Mapping[str, Any]) -> TransferDetails | None:
    """The details of a bank transfer, if it has an IBAN."""
    for address in shown.get("financial_addresses") or ():
        iban = address.get("iban")
        if iban:
            holder = iban.get("account_holder_name") or ""
            return TransferDetails(iban["iban"], shown.get("reference") or "", holder, iban.get("bic") or "")
    return None


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
