"""Version 34: the primary's heartbeat, by which a read replica shows how far behind it is."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0034"
down_revision = "0033"

HEARTBEAT = """
CREATE TABLE ledger_heartbeat (id integer PRIMARY KEY CHECK (id = 1), beat_us bigint NOT NULL);
INSERT INTO ledger_heartbeat (id, beat_us) VALUES (1, 0);
"""


def upgrade() -> None:
    ddl.run(HEARTBEAT)
