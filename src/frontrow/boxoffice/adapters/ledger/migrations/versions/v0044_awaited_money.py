"""Version 44: a payment says since when its money is awaited, and which ways of paying its form offers (ADR 0211).

A payment whose money is awaited has the state `action` and an `agreed_at_us`. Servers of earlier versions read it as
`action`: they look for the money, and leave the new columns alone.
"""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0044"
down_revision = "0043"

AWAITED = """
ALTER TABLE payments ADD COLUMN agreed_at_us bigint NOT NULL DEFAULT 0;
ALTER TABLE payments ADD COLUMN offered text NOT NULL DEFAULT '';
"""


def upgrade() -> None:
    ddl.run(AWAITED)
