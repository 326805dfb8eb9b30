"""Version 21: which events are dates of the same show."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0021"
down_revision = "0020"

SERIES = """
CREATE TABLE show_dates (event_id text PRIMARY KEY, show_id text NOT NULL, starts_at_us bigint NOT NULL);
CREATE INDEX show_dates_in_order ON show_dates (show_id, starts_at_us);
"""


def upgrade() -> None:
    ddl.run(SERIES)
