"""Version 17: a payment counts the cards that were declined and remembers the last failure it has seen."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0017"
down_revision = "0012"

PAYMENTS = """
ALTER TABLE payments ADD COLUMN declines bigint NOT NULL DEFAULT 0;
ALTER TABLE payments ADD COLUMN failure text NOT NULL DEFAULT '';
"""


def upgrade() -> None:
    ddl.run(PAYMENTS)
