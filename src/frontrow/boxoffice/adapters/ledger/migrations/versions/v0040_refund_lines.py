"""Version 40: a refund stores the lines that it consists of (ADR 0180)."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    ddl.run("ALTER TABLE refunds ADD COLUMN refund_lines text NOT NULL DEFAULT '';")
