"""Version 3: payments and refunds know their version, their next look and their calls; one live payment a booking."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0003"
down_revision = "0002"

PAYMENTS = """
ALTER TABLE payments ADD COLUMN method text NOT NULL DEFAULT '';
ALTER TABLE payments ADD COLUMN reason text NOT NULL DEFAULT '';
ALTER TABLE payments ADD COLUMN call bigint NOT NULL DEFAULT 1;
ALTER TABLE payments ADD COLUMN tries bigint NOT NULL DEFAULT 0;
ALTER TABLE payments ADD COLUMN retry_at_us bigint NOT NULL DEFAULT 0;
ALTER TABLE payments ADD COLUMN version bigint NOT NULL DEFAULT 1;
CREATE UNIQUE INDEX one_live_payment_per_booking ON payments (booking_id)
  WHERE payment_state NOT IN ('voided', 'declined', 'lapsed');
CREATE INDEX payments_due ON payments (retry_at_us) WHERE retry_at_us > 0;
CREATE INDEX payments_by_ref ON payments (provider_ref);
"""

REFUNDS = """
ALTER TABLE refunds ADD COLUMN number bigint NOT NULL DEFAULT 1;
ALTER TABLE refunds ADD COLUMN fee_minor bigint NOT NULL DEFAULT 0;
ALTER TABLE refunds ADD COLUMN call bigint NOT NULL DEFAULT 1;
ALTER TABLE refunds ADD COLUMN tries bigint NOT NULL DEFAULT 0;
ALTER TABLE refunds ADD COLUMN retry_at_us bigint NOT NULL DEFAULT 0;
ALTER TABLE refunds ADD COLUMN version bigint NOT NULL DEFAULT 1;
CREATE INDEX refunds_due ON refunds (retry_at_us) WHERE retry_at_us > 0;
CREATE INDEX live_bookings_of_event ON bookings (event_id, id) WHERE state IN ('held', 'paying', 'confirmed');
"""


def upgrade() -> None:
    for text in (PAYMENTS, REFUNDS):
        ddl.run(text)
