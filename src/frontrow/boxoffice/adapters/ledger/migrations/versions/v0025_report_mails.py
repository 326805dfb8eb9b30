"""Version 25: reports by mail, and the secret addresses of members' feeds (ADR 0155)."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0025"
down_revision = "0023"

TABLES = """
CREATE TABLE report_mails (
  staff_id text NOT NULL, event_id text NOT NULL, frequency text NOT NULL CHECK (frequency IN ('daily', 'weekly')),
  locale text NOT NULL, next_at_us bigint NOT NULL, created_at_us bigint NOT NULL, PRIMARY KEY (staff_id, event_id)
);
CREATE INDEX report_mails_by_time ON report_mails (next_at_us);
CREATE TABLE feed_addresses (
  staff_id text PRIMARY KEY, secret_hash text NOT NULL UNIQUE, created_at_us bigint NOT NULL
);
"""


def upgrade() -> None:
    ddl.run(TABLES)
