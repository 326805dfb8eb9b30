"""Version 43: a payment names the account that has its money, and what it was paid with (ADR 0210).

Servers of earlier versions begin payments of the server's own account only, and leave `paid_with` empty.
"""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0043"
down_revision = "0042"

ACCOUNTS = """
ALTER TABLE payments ADD COLUMN account text NOT NULL DEFAULT '';
ALTER TABLE payments ADD COLUMN paid_with text NOT NULL DEFAULT '';
"""


def upgrade() -> None:
    ddl.run(ACCOUNTS)
