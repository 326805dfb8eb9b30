"""Version 5: the waitlist's order, wishes and counts, the history of seats, and tickets returned to the pool."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0005"
down_revision = "0004"

# One entry a fan and event, whatever its sections. The history index is over freed seats only: holding and selling
# never touch it.
WAITLIST = """
ALTER TABLE waitlist ADD COLUMN sections text NOT NULL DEFAULT '';
ALTER TABLE waitlist ADD COLUMN split_ok bigint NOT NULL DEFAULT 0;
ALTER TABLE waitlist ADD COLUMN rank bigint NOT NULL DEFAULT 0;
ALTER TABLE waitlist ADD COLUMN offers_made bigint NOT NULL DEFAULT 0;
ALTER TABLE waitlist ADD COLUMN lapses bigint NOT NULL DEFAULT 0;
DROP INDEX waitlist_in_line;
CREATE INDEX waitlist_in_line ON waitlist (event_id, rank, number) WHERE entry_state = 'waiting';
CREATE UNIQUE INDEX one_entry_per_fan ON waitlist (event_id, fan) WHERE entry_state IN ('waiting', 'offered');
CREATE UNIQUE INDEX one_offer_per_booking ON offers (booking_id);
CREATE INDEX open_offers_by_end ON offers (expires_at_us) WHERE offer_state = 'open';
CREATE INDEX offers_of_fan ON offers (event_id, fan);
CREATE TABLE waitlist_rules (
  event_id text PRIMARY KEY, wait_order text NOT NULL CHECK (wait_order IN ('fifo', 'lottery')), seed text NOT NULL,
  seed_hash text NOT NULL, created_at_us bigint NOT NULL
);
CREATE INDEX seat_history ON booking_seats (event_id, seat_index) WHERE active = 0;
"""

RETURNS = """
CREATE TABLE returns (
  id text PRIMARY KEY, booking_id text NOT NULL, event_id text NOT NULL, fan text NOT NULL, fence bigint NOT NULL,
  seat_index bigint NOT NULL, price_minor bigint NOT NULL, currency text NOT NULL,
  return_state text NOT NULL CHECK (return_state IN ('giving', 'listed', 'resold', 'refunded', 'void')),
  resold_booking_id text NOT NULL DEFAULT '', created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL,
  UNIQUE (booking_id, seat_index)
);
CREATE INDEX returns_in_work ON returns (return_state, changed_at_us)
  WHERE return_state IN ('giving', 'listed', 'resold');
"""


def upgrade() -> None:
    for text in (WAITLIST, RETURNS):
        ddl.run(text)
