"""Indexes: what the schema itself keeps apart. Each bug lets two rows be that may not both be."""

from tests.mutants.mutant import Mutant

VERSIONS = "boxoffice/adapters/ledger/migrations/versions"
TESTS = "tests/boxoffice/adapters/ledger/test_unique_rows.py::test_nor_on_postgres"


def not_unique(guard: str, law: str, version: str, before: str, after: str) -> Mutant:
    """The index or column without its `UNIQUE`."""
    return Mutant(f"without {guard}", law, f"{VERSIONS}/{version}.py", before, after, (TESTS,), guard)


def plain_index(guard: str, law: str, version: str) -> Mutant:
    """The index, which no longer refuses anything."""
    return not_unique(guard, law, version, f"CREATE UNIQUE INDEX {guard} ", f"CREATE INDEX {guard} ")


MUTANTS = (
    plain_index("one_active_booking_per_seat", "a seat has at most one active booking", "v0001_bookings"),
    plain_index("one_open_offer_per_entry", "an entry has one open offer", "v0002_money_and_tickets"),
    plain_index("one_valid_ticket_per_seat", "a seat has one valid ticket", "v0002_money_and_tickets"),
    plain_index("one_live_payment_per_booking", "a booking is charged once", "v0003_payment_versions"),
    plain_index("one_entry_per_fan", "a fan waits once per event", "v0005_waitlist_and_returns"),
    plain_index("one_offer_per_booking", "a hold belongs to one offer", "v0005_waitlist_and_returns"),
    plain_index("one_account_per_address", "an address has one account", "v0006_people"),
    plain_index("one_fan_per_address", "an address is one fan", "v0006_people"),
    plain_index("sale_signups_once", "an address signs up once", "v0016_signups"),
    plain_index("one_transfer_per_ticket", "a ticket is on its way to one person", "v0023_ticket_transfers"),
    plain_index("one_invoice_per_sale_and_refund", "a sale has one invoice", "v0030_invoices"),
    plain_index(
        "one_payment_account_per_organiser", "an organiser has one account for new payments", "v0046_own_accounts"
    ),
    not_unique(
        "seats (plan_hash, seat_id)",
        "a seat's name means one seat",
        "v0001_bookings",
        "PRIMARY KEY (plan_hash, seat_index), UNIQUE (plan_hash, seat_id)",
        "PRIMARY KEY (plan_hash, seat_index)",
    ),
    not_unique(
        "bookings (id)",
        "a booking's id means one booking",
        "v0001_bookings",
        "id text NOT NULL UNIQUE, event_id text NOT NULL, fan text NOT NULL,",
        "id text NOT NULL, event_id text NOT NULL, fan text NOT NULL,",
    ),
    not_unique(
        "payments (idempotency_key)",
        "the provider is asked for one payment per key",
        "v0002_money_and_tickets",
        "currency text NOT NULL, idempotency_key text NOT NULL UNIQUE, document",
        "currency text NOT NULL, idempotency_key text NOT NULL, document",
    ),
    not_unique(
        "payments (booking_id, attempt)",
        "an attempt is one payment",
        "v0002_money_and_tickets",
        "changed_at_us bigint NOT NULL,\n  UNIQUE (booking_id, attempt)",
        "changed_at_us bigint NOT NULL",
    ),
    not_unique(
        "refunds (idempotency_key)",
        "money goes back once per refund",
        "v0002_money_and_tickets",
        "reason text NOT NULL DEFAULT '', idempotency_key text NOT NULL UNIQUE,",
        "reason text NOT NULL DEFAULT '', idempotency_key text NOT NULL,",
    ),
    not_unique(
        "waitlist (id)",
        "an entry's id means one entry",
        "v0002_money_and_tickets",
        "id text NOT NULL UNIQUE, event_id text NOT NULL, fan text NOT NULL, section",
        "id text NOT NULL, event_id text NOT NULL, fan text NOT NULL, section",
    ),
    not_unique(
        "tickets (booking_id, seat_index)",
        "a booking has one ticket per seat",
        "v0002_money_and_tickets",
        "scanned_at_us bigint,\n  UNIQUE (booking_id, seat_index)",
        "scanned_at_us bigint",
    ),
    not_unique(
        "returns (booking_id, seat_index)",
        "a seat of a booking is given back once",
        "v0005_waitlist_and_returns",
        ",\n  UNIQUE (booking_id, seat_index)",
        "",
    ),
    not_unique(
        "scans (id)",
        "a scan that is reported twice is one scan",
        "v0004_tickets_and_messages",
        "id text NOT NULL UNIQUE, event_id text NOT NULL, ticket_id",
        "id text NOT NULL, event_id text NOT NULL, ticket_id",
    ),
    not_unique(
        "deliveries (dedupe)",
        "a message is put in line once",
        "v0004_tickets_and_messages",
        "dedupe text NOT NULL UNIQUE,",
        "dedupe text NOT NULL,",
    ),
    not_unique(
        "invitations (secret_hash)",
        "a secret opens one invitation",
        "v0006_people",
        "secret_hash text NOT NULL UNIQUE, organiser_id text NOT NULL, email",
        "secret_hash text NOT NULL, organiser_id text NOT NULL, email",
    ),
    not_unique(
        "api_keys (secret_hash)",
        "a secret is one API key",
        "v0006_people",
        "secret_hash text NOT NULL UNIQUE, organiser_id text NOT NULL, name",
        "secret_hash text NOT NULL, organiser_id text NOT NULL, name",
    ),
    not_unique(
        "sessions (secret_hash)",
        "a secret is one session",
        "v0006_people",
        "secret_hash text NOT NULL UNIQUE,\n",
        "secret_hash text NOT NULL,\n",
    ),
    not_unique(
        "feed_addresses (secret_hash)",
        "a secret opens one member's feed",
        "v0025_report_mails",
        "secret_hash text NOT NULL UNIQUE,",
        "secret_hash text NOT NULL,",
    ),
)
