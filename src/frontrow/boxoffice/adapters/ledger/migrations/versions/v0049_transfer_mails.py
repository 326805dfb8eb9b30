"""Version 49: a payment keeps where its bank transfer has to go, and when its fan was reminded (ADR 0227).

Servers of earlier versions leave both columns alone. Who chooses a transfer at one of them gets no mail about it.
"""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0049"
down_revision = "0048"

TRANSFERS = """
ALTER TABLE payments ADD COLUMN transfer_to text NOT NULL DEFAULT '';
ALTER TABLE payments ADD COLUMN reminded_at_us bigint NOT NULL DEFAULT 0;
"""


def upgrade() -> None:
    ddl.run(TRANSFERS)
