"""Version 1: the catalogue, bookings with their seats, idempotency keys, the outbox and the audit log."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0001"
down_revision = None

CATALOGUE = """
CREATE TABLE plans (
  hash text PRIMARY KEY, name text NOT NULL, seat_count bigint NOT NULL, document text NOT NULL,
  created_at_us bigint NOT NULL
);
CREATE TABLE seats (
  plan_hash text NOT NULL, seat_index bigint NOT NULL, seat_id text NOT NULL, tier text NOT NULL, flags bigint NOT NULL,
  PRIMARY KEY (plan_hash, seat_index), UNIQUE (plan_hash, seat_id)
);
CREATE TABLE venues (
  id text PRIMARY KEY, name text NOT NULL, plan_hash text NOT NULL, city text NOT NULL, country text NOT NULL,
  time_zone text NOT NULL, changed_at_us bigint NOT NULL
);
CREATE TABLE events (
  id text PRIMARY KEY, venue_id text NOT NULL, plan_hash text NOT NULL, name text NOT NULL,
  event_state text NOT NULL CHECK (event_state IN ('draft', 'on_sale', 'sold_out', 'completed', 'cancelled')),
  currency text NOT NULL, starts_at_us bigint NOT NULL, sale_starts_at_us bigint NOT NULL,
  sale_ends_at_us bigint NOT NULL, max_per_person bigint NOT NULL, document text NOT NULL,
  created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL
);
CREATE INDEX events_by_start ON events (starts_at_us, id);
CREATE TABLE price_tiers (
  event_id text NOT NULL, key text NOT NULL, name text NOT NULL, price_minor bigint NOT NULL, currency text NOT NULL,
  PRIMARY KEY (event_id, key)
);
"""

# No foreign key from booking_seats to bookings: the seats are taken before the booking gets its fence, in one
# transaction; `frontrow ledger verify` looks for orphans.
BOOKINGS = """
CREATE TABLE bookings (
  fence :serial,
  id text NOT NULL UNIQUE, event_id text NOT NULL, fan text NOT NULL,
  state text NOT NULL CHECK (state IN ('held', 'paying', 'confirmed', 'expired', 'cancelled', 'refunded')),
  seat_count bigint NOT NULL, seats text NOT NULL, amount_minor bigint NOT NULL, currency text NOT NULL,
  session text NOT NULL, created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL,
  hold_expires_at_us bigint NOT NULL, confirmed_at_us bigint
);
CREATE INDEX active_bookings_of_fan ON bookings (event_id, fan) WHERE state IN ('held', 'paying', 'confirmed');
CREATE INDEX holds_by_end ON bookings (hold_expires_at_us) WHERE state IN ('held', 'paying');
CREATE TABLE booking_seats (
  booking_id text NOT NULL, seat_index bigint NOT NULL, event_id text NOT NULL, price_minor bigint NOT NULL,
  active smallint NOT NULL CHECK (active IN (0, 1)),
  PRIMARY KEY (booking_id, seat_index)
);
CREATE UNIQUE INDEX one_active_booking_per_seat ON booking_seats (event_id, seat_index) WHERE active = 1;
CREATE TABLE idempotency_keys (
  scope text NOT NULL, key text NOT NULL, request_hash text NOT NULL, booking_id text NOT NULL,
  created_at_us bigint NOT NULL, PRIMARY KEY (scope, key)
);
"""

FACTS = """
CREATE TABLE outbox (
  number :serial,
  fact text NOT NULL, body text NOT NULL, event_id text NOT NULL, booking_id text NOT NULL, at_us bigint NOT NULL,
  leased_until_us bigint NOT NULL DEFAULT 0, published_at_us bigint
);
CREATE INDEX facts_unpublished ON outbox (number) WHERE published_at_us IS NULL;
CREATE TABLE audit_log (
  chain text NOT NULL, seq bigint NOT NULL, at_us bigint NOT NULL, body text NOT NULL, prev_hash text NOT NULL,
  hash text NOT NULL, PRIMARY KEY (chain, seq)
);
CREATE TABLE audit_heads (chain text PRIMARY KEY, seq bigint NOT NULL, hash text NOT NULL);
"""


def upgrade() -> None:
    for text in (CATALOGUE, BOOKINGS, FACTS):
        ddl.run(text)
    ddl.append_only("audit_log")
