"""Version 11: the platform's keys, sealed with its secret key, so that every server on this ledger has the same; and
where a fan waits, for whoever wants to be forgotten."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0011"
down_revision = "0010"

KEYS = """
CREATE TABLE platform_keys (name text PRIMARY KEY, sealed text NOT NULL, changed_at_us bigint NOT NULL);
"""


WAITING = """
CREATE INDEX waitlist_of_fan ON waitlist (fan);
"""


def upgrade() -> None:
    ddl.run(KEYS)
    ddl.run(WAITING)
