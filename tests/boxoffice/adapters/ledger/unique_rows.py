"""What no two rows of the ledger may have in common, by the name of the index, or table and columns."""

import re
from pathlib import Path
from typing import Any, Final

from frontrow.boxoffice.adapters import ledger

SCHEMA: Final = Path(ledger.__path__[0]) / "schema.sql"
_INDEX: Final = re.compile(r"CREATE UNIQUE INDEX (\w+)")
_TABLE: Final = re.compile(r"CREATE TABLE (\w+) ?\((.*?)\)(?: WITHOUT ROWID)?;", re.DOTALL)
_COLUMN: Final = re.compile(r"(\w+)\s+text\s+NOT\s+NULL\s+UNIQUE")
_COLUMNS: Final = re.compile(r"UNIQUE\s+\(([^)]*)\)")

# name -> the table, and the values that two rows have in common
TOGETHER: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "one_active_booking_per_seat": ("booking_seats", {"event_id": "e", "seat_index": 1, "active": 1}),
    "one_fan_per_address": ("fans", {"email": "a@x.org"}),
    "one_invoice_per_sale_and_refund": ("invoices", {"booking_id": "b", "refund_id": ""}),
    "one_offer_per_booking": ("offers", {"booking_id": "b"}),
    "one_open_offer_per_entry": ("offers", {"entry_id": "e", "offer_state": "open"}),
    "one_live_payment_per_booking": ("payments", {"booking_id": "b", "payment_state": "open"}),
    "one_payment_account_per_organiser": ("payment_accounts", {"organiser_id": "o", "ended_at_us": 0}),
    "sale_signups_once": ("sale_signups", {"event_id": "e", "purpose": "notice", "email": "a@x.org"}),
    "one_account_per_address": ("staff", {"email": "a@x.org"}),
    "one_transfer_per_ticket": ("ticket_transfers", {"ticket_id": "t", "transfer_state": "sent"}),
    "one_valid_ticket_per_seat": ("tickets", {"event_id": "e", "seat_index": 1, "ticket_state": "valid"}),
    "one_entry_per_fan": ("waitlist", {"event_id": "e", "fan": "f", "entry_state": "offered"}),
    "one_waiting_entry_per_fan": ("waitlist", {"event_id": "e", "section": "", "fan": "f", "entry_state": "waiting"}),
    "api_keys (secret_hash)": ("api_keys", {"secret_hash": "s"}),
    "bookings (id)": ("bookings", {"id": "b"}),
    "deliveries (dedupe)": ("deliveries", {"dedupe": "d"}),
    "feed_addresses (secret_hash)": ("feed_addresses", {"secret_hash": "s"}),
    "invitations (secret_hash)": ("invitations", {"secret_hash": "s"}),
    "payments (idempotency_key)": ("payments", {"idempotency_key": "k"}),
    "payments (booking_id, attempt)": ("payments", {"booking_id": "b", "attempt": 1, "payment_state": "voided"}),
    "refunds (idempotency_key)": ("refunds", {"idempotency_key": "k"}),
    "returns (booking_id, seat_index)": ("returns", {"booking_id": "b", "seat_index": 1}),
    "scans (id)": ("scans", {"id": "s"}),
    "seats (plan_hash, seat_id)": ("seats", {"plan_hash": "p", "seat_id": "A-1"}),
    "sessions (secret_hash)": ("sessions", {"secret_hash": "s"}),
    "tickets (booking_id, seat_index)": ("tickets", {"booking_id": "b", "seat_index": 1, "ticket_state": "revoked"}),
    "waitlist (id)": ("waitlist", {"id": "w"}),
}
# values that columns with a CHECK take
ALLOWED: Final = {
    "account_state": "active",
    "active": 1,
    "state": "held",
    "return_state": "void",
    "purpose": "notice",
    "signup_state": "asked",
    "kind": "fan",
    "stage": "full",
    "role": "door",
    "transfer_state": "withdrawn",
}


def unique_names() -> set[str]:
    """The names of everything in the schema that must be unique besides primary keys."""
    text = SCHEMA.read_text("utf-8")
    found = set(_INDEX.findall(text))
    for table, columns in _TABLE.findall(text):
        found |= {f"{table} ({name})" for name in _COLUMN.findall(columns)}
        found |= {f"{table} ({' '.join(names.split())})" for names in _COLUMNS.findall(columns)}
    return found
