"""Version 26: tickets are scanned at the exit too, where an event lets people come back."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0026"
down_revision = "0025"

EXITS = """
ALTER TABLE scans ADD COLUMN way text NOT NULL DEFAULT 'in';
ALTER TABLE tickets ADD COLUMN left_at_us bigint;
"""


def upgrade() -> None:
    ddl.run(EXITS)
