"""Version 42: add-ons are redeemed at the gate (ADR 0199).

Servers of earlier versions do not know the table. They may refund an add-on that was redeemed; nothing else of theirs
depends on it.
"""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0042"
down_revision = "0041"

# `refused`: made offline, and not possible: it is kept for the organiser and counts for nothing
REDEMPTIONS = """
CREATE TABLE add_on_redemptions (
  id text PRIMARY KEY, event_id text NOT NULL, booking_id text NOT NULL, add_on text NOT NULL,
  quantity bigint NOT NULL CHECK (quantity >= 1), gate text NOT NULL, made_by text NOT NULL, at_us bigint NOT NULL,
  refused text NOT NULL DEFAULT '' CHECK (refused IN ('', 'used_up', 'not_bought')), undone_at_us bigint
);
CREATE INDEX redemptions_of_booking ON add_on_redemptions (booking_id);
CREATE INDEX redemptions_of_event ON add_on_redemptions (event_id, booking_id);
"""


def upgrade() -> None:
    ddl.run(REDEMPTIONS)
