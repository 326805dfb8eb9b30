"""Version 9: answers kept under their Idempotency-Key."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0009"
down_revision = "0006"

REQUESTS = """
CREATE TABLE requests (
  name text PRIMARY KEY, asked text NOT NULL, status bigint NOT NULL, kind text NOT NULL, headers text NOT NULL,
  body text NOT NULL, created_at_us bigint NOT NULL, lease_until_us bigint NOT NULL
);
CREATE INDEX requests_by_age ON requests (created_at_us);
"""


def upgrade() -> None:
    ddl.run(REQUESTS)
