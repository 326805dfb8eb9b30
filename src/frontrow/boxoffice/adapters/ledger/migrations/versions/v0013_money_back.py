"""Version 13: why a refund failed, and which refunds and returns still want work."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0013"
down_revision = "0017"

# Cancellations run once more: older versions left out what had been returned to the pool.
MONEY = """
ALTER TABLE refunds ADD COLUMN failure text NOT NULL DEFAULT '';
UPDATE refunds SET failure = reason, reason = '' WHERE refund_state = 'failed';
CREATE INDEX refunds_failed ON refunds (booking_id) WHERE refund_state = 'failed';
CREATE INDEX returns_of_event ON returns (event_id, id) WHERE return_state IN ('giving', 'listed', 'resold');
ALTER TABLE cancellations ADD COLUMN returned bigint NOT NULL DEFAULT 0;
UPDATE cancellations SET job_state = 'running', next_at_us = 0;
"""


def upgrade() -> None:
    ddl.run(MONEY)
