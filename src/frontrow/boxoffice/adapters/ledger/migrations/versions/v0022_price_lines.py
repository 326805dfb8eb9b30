"""Version 22: a booking stores the lines of its price, as they were when the seats were picked (ADR 0146)."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    ddl.run("ALTER TABLE bookings ADD COLUMN price_lines text NOT NULL DEFAULT '';")
