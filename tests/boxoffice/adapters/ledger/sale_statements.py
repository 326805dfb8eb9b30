"""Which statements are about a sale, and which of those may look into several events, with the reason."""

import re
from typing import Final

from frontrow.boxoffice.adapters.ledger.engine.statements import Statement

TABLES: Final = (
    "bookings", "booking_seats", "payments", "refunds", "tickets", "scans", "waitlist", "waitlist_rules", "offers",
    "returns", "ticket_transfers", "add_on_redemptions", "booking_uses", "outbox", "idempotency_keys", "invoices",
)  # fmt: skip
ACROSS: Final = {
    "jobs look for work that is due in any event": (
        "due_facts", "due_holds", "due_offers", "due_payments", "due_refunds", "due_work", "facts_published",
        "claim_facts", "claimed_facts", "missed_facts", "payments_page", "purge_facts", "put_off_payments",
        "resold_returns", "returns_in_state",
    ),
    "a person's own list, whatever the events": (
        "entries_in_line", "events_bought", "forget_messages_to", "forget_transfers_to", "purchases_of",
        "purchases_of_address", "transfers_received", "transfers_to_address",
    ),
    "an organiser's invoices and limits over several dates": (
        "bought_elsewhere", "invoice_by_number", "invoices_page", "live_uses", "uses_of_counter",
    ),
    "an organiser's money at each of its accounts": ("money_refunded_by_account", "money_taken_by_account"),
    "the provider names a payment by its own number": ("payment_by_ref",),
    "idempotency keys belong to a person": ("forget_keys", "keys_page", "known_keys"),
    "operators look at the whole ledger": (
        "bookings_out_of_step", "bookings_without_event", "ledger_counts", "operating_figures",
        "seats_out_of_step", "seats_sold_twice",
    ),
}  # fmt: skip

# Asked by a number alone, or about all events of an organiser: every partition is looked into, by its index.
ANYWHERE: Final = {"payments_by_id", "ticket_by_id", "failed_refunds"}


def is_of_sale(statement: Statement) -> bool:
    return any(re.search(rf"\b(FROM|JOIN|INTO|UPDATE)\s+{table}\b", statement.text) for table in TABLES)
