"""Version 48: disputes of payments (ADR 0218).

Servers of earlier versions do not know the table: they refund what is disputed, and their gates let it in. A gate that
asks an earlier server hears nothing of it.
"""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0048"
down_revision = "0047"

DISPUTES = """
CREATE TABLE disputes (
  provider text NOT NULL, ref text NOT NULL, payment_ref text NOT NULL, payment_id text NOT NULL,
  booking_id text NOT NULL, event_id text NOT NULL, amount_minor bigint NOT NULL, currency text NOT NULL,
  dispute_state text NOT NULL CHECK (dispute_state IN ('open', 'won', 'lost', 'closed')), reason text NOT NULL,
  answer_by_us bigint NOT NULL, opened_at_us bigint NOT NULL, changed_at_us bigint NOT NULL,
  PRIMARY KEY (provider, ref)
);
CREATE INDEX disputes_of_booking ON disputes (booking_id);
CREATE INDEX disputes_of_event ON disputes (event_id, opened_at_us);
"""


def upgrade() -> None:
    ddl.run(DISPUTES)
