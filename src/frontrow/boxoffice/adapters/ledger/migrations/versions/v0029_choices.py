"""Version 29: what bookings use of codes, stocks and shared limits (ADR 0149)."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0029"
down_revision = "0026"

CHOICES = """
CREATE TABLE use_counters (counter text PRIMARY KEY, taken bigint NOT NULL);
CREATE TABLE booking_uses (
  booking_id text NOT NULL, counter text NOT NULL, quantity bigint NOT NULL CHECK (quantity > 0),
  PRIMARY KEY (booking_id, counter)
);
CREATE INDEX booking_uses_of_counter ON booking_uses (counter);
"""


def upgrade() -> None:
    ddl.run(CHOICES)
