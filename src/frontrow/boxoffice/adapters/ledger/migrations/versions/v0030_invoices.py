"""Version 30: invoices and credit notes, numbered without gaps per organiser; a seller's prefix and fees (ADR 0147)."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0030"
down_revision = "0029"

INVOICES = """
CREATE TABLE invoices (
  organiser_id text NOT NULL, number bigint NOT NULL, booking_id text NOT NULL, refund_id text NOT NULL,
  issued_at_us bigint NOT NULL, document text NOT NULL, PRIMARY KEY (organiser_id, number)
);
CREATE UNIQUE INDEX one_invoice_per_sale_and_refund ON invoices (booking_id, refund_id);
CREATE TABLE invoice_numbers (organiser_id text PRIMARY KEY, last_number bigint NOT NULL);
ALTER TABLE sellers ADD COLUMN invoice_prefix text NOT NULL DEFAULT '';
ALTER TABLE sellers ADD COLUMN fees text NOT NULL DEFAULT '';
"""


def upgrade() -> None:
    ddl.run(INVOICES)
    ddl.append_only("invoices")
