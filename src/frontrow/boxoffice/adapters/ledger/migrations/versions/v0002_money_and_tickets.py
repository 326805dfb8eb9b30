"""Version 2: payments, refunds, waitlist, offers, tickets, the inbox and the audit of the waiting room."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0002"
down_revision = "0001"

MONEY = """
CREATE TABLE payments (
  id text PRIMARY KEY, booking_id text NOT NULL, attempt bigint NOT NULL, provider text NOT NULL,
  provider_ref text NOT NULL DEFAULT '', payment_state text NOT NULL, amount_minor bigint NOT NULL,
  currency text NOT NULL, idempotency_key text NOT NULL UNIQUE, document text NOT NULL DEFAULT '{}',
  created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL,
  UNIQUE (booking_id, attempt)
);
CREATE TABLE refunds (
  id text PRIMARY KEY, booking_id text NOT NULL, payment_id text NOT NULL, provider_ref text NOT NULL DEFAULT '',
  refund_state text NOT NULL, amount_minor bigint NOT NULL, currency text NOT NULL, seats text NOT NULL,
  reason text NOT NULL DEFAULT '', idempotency_key text NOT NULL UNIQUE,
  created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL
);
CREATE INDEX refunds_of_booking ON refunds (booking_id);
"""

WAITLIST = """
CREATE TABLE waitlist (
  number :serial,
  id text NOT NULL UNIQUE, event_id text NOT NULL, fan text NOT NULL, section text NOT NULL DEFAULT '',
  seat_count bigint NOT NULL, entry_state text NOT NULL, created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL
);
CREATE UNIQUE INDEX one_waiting_entry_per_fan ON waitlist (event_id, section, fan) WHERE entry_state = 'waiting';
CREATE INDEX waitlist_in_line ON waitlist (event_id, section, number) WHERE entry_state = 'waiting';
CREATE TABLE offers (
  id text PRIMARY KEY, entry_id text NOT NULL, event_id text NOT NULL, fan text NOT NULL, booking_id text NOT NULL,
  offer_state text NOT NULL, expires_at_us bigint NOT NULL, created_at_us bigint NOT NULL,
  changed_at_us bigint NOT NULL
);
CREATE UNIQUE INDEX one_open_offer_per_entry ON offers (entry_id) WHERE offer_state = 'open';
CREATE TABLE tickets (
  id text PRIMARY KEY, booking_id text NOT NULL, event_id text NOT NULL, seat_index bigint NOT NULL,
  ticket_state text NOT NULL, issued_at_us bigint NOT NULL, changed_at_us bigint NOT NULL, scanned_at_us bigint,
  UNIQUE (booking_id, seat_index)
);
CREATE UNIQUE INDEX one_valid_ticket_per_seat ON tickets (event_id, seat_index) WHERE ticket_state = 'valid';
"""

# queue_audit was never written. The audit of queue positions is the waiting room's own: `room_joins` and `room_claims`
# (`waitingroom.audit.sql_audit`). The table stays, so that every migrated database has the same schema.
INBOX = """
CREATE TABLE inbox (
  source text NOT NULL, message_id text NOT NULL, received_at_us bigint NOT NULL, PRIMARY KEY (source, message_id)
);
CREATE TABLE queue_audit (
  number :serial,
  event_id text NOT NULL, place bigint NOT NULL, fan text NOT NULL, act text NOT NULL, at_us bigint NOT NULL
);
CREATE INDEX queue_audit_of_event ON queue_audit (event_id, number);
"""


def upgrade() -> None:
    for text in (MONEY, WAITLIST, INBOX):
        ddl.run(text)
    ddl.append_only("queue_audit")
