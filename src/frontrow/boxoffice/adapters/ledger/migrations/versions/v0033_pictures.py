"""Version 33: pictures of events, named by their hash."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0033"
down_revision = "0030"

PICTURES = """
CREATE TABLE pictures (
  hash text PRIMARY KEY, organiser_id text NOT NULL, body text NOT NULL, created_at_us bigint NOT NULL
);
"""


def upgrade() -> None:
    ddl.run(PICTURES)
