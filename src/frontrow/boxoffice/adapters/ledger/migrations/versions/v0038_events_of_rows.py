"""Version 38: payments, refunds and uses name their event, so that they can be partitioned by it (ADR 0169).

Rows from before, and rows of programs of the version before, have an empty event: it is their booking's. Nothing is
filled in here, because that would lock every payment while others sell. `frontrow ledger partition` fills it in.
"""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0038"
down_revision = "0037"

EVENTS = """
ALTER TABLE payments ADD COLUMN event_id text NOT NULL DEFAULT '';
ALTER TABLE refunds ADD COLUMN event_id text NOT NULL DEFAULT '';
ALTER TABLE booking_uses ADD COLUMN event_id text NOT NULL DEFAULT '';
"""


def upgrade() -> None:
    ddl.run(EVENTS)
