"""Version 23: tickets can be transferred to somebody else. A ticket names the transfer by which its holder got it."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0023"
down_revision = "0022"

TRANSFERS = """
CREATE TABLE ticket_transfers (
  id text PRIMARY KEY, booking_id text NOT NULL, event_id text NOT NULL, seat_index bigint NOT NULL,
  ticket_id text NOT NULL, fan text NOT NULL, email text NOT NULL, locale text NOT NULL,
  transfer_state text NOT NULL CHECK (transfer_state IN ('sent', 'accepted', 'withdrawn')),
  created_at_us bigint NOT NULL, expires_at_us bigint NOT NULL, from_transfer text NOT NULL,
  new_ticket_id text NOT NULL, name text NOT NULL, changed_at_us bigint NOT NULL
);
CREATE UNIQUE INDEX one_transfer_per_ticket ON ticket_transfers (ticket_id) WHERE transfer_state = 'sent';
CREATE INDEX ticket_transfers_of_booking ON ticket_transfers (booking_id);
CREATE INDEX ticket_transfers_of_address ON ticket_transfers (email);
ALTER TABLE tickets ADD COLUMN transfer_id text NOT NULL DEFAULT '';
"""


def upgrade() -> None:
    ddl.run(TRANSFERS)
