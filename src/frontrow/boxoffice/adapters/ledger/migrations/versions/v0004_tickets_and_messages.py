"""Version 4: signed ticket codes, scans, people's preferences, messages to them, and webhooks of organisers."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0004"
down_revision = "0003"

TICKETS = """
ALTER TABLE tickets ADD COLUMN code text NOT NULL DEFAULT '';
CREATE INDEX tickets_revoked ON tickets (event_id, changed_at_us, id) WHERE ticket_state = 'revoked';
CREATE TABLE scans (
  number :serial,
  id text NOT NULL UNIQUE, event_id text NOT NULL, ticket_id text NOT NULL, gate text NOT NULL, at_us bigint NOT NULL
);
CREATE INDEX scans_of_ticket ON scans (ticket_id);
CREATE INDEX scans_of_event ON scans (event_id, ticket_id);
"""

MESSAGES = """
CREATE TABLE contacts (
  fan text PRIMARY KEY, locale text NOT NULL, email text NOT NULL, phone text NOT NULL, channels text NOT NULL,
  changed_at_us bigint NOT NULL
);
CREATE TABLE push_subscriptions (
  endpoint text PRIMARY KEY, fan text NOT NULL, document text NOT NULL, created_at_us bigint NOT NULL
);
CREATE INDEX push_subscriptions_of_fan ON push_subscriptions (fan);
CREATE TABLE deliveries (
  number :serial,
  kind text NOT NULL, lane text NOT NULL, dedupe text NOT NULL UNIQUE, body text NOT NULL,
  delivery_state text NOT NULL, attempts bigint NOT NULL, created_at_us bigint NOT NULL, next_at_us bigint NOT NULL,
  leased_until_us bigint NOT NULL DEFAULT 0, last_error text NOT NULL DEFAULT '', changed_at_us bigint NOT NULL
);
CREATE INDEX deliveries_due ON deliveries (kind, next_at_us) WHERE delivery_state = 'waiting';
CREATE TABLE in_app_messages (
  id text PRIMARY KEY, fan text NOT NULL, subject text NOT NULL, body text NOT NULL, created_at_us bigint NOT NULL,
  read_at_us bigint
);
CREATE INDEX in_app_messages_of_fan ON in_app_messages (fan, created_at_us);
CREATE TABLE webhook_endpoints (
  id text PRIMARY KEY, organiser text NOT NULL, event_id text NOT NULL, url text NOT NULL, secret text NOT NULL,
  facts text NOT NULL, active smallint NOT NULL CHECK (active IN (0, 1)), changed_at_us bigint NOT NULL
);
CREATE INDEX webhook_endpoints_of_event ON webhook_endpoints (event_id) WHERE active = 1;
"""


def upgrade() -> None:
    for text in (TICKETS, MESSAGES):
        ddl.run(text)
