"""Version 19: sellers and tax rates as they were, so that a receipt shows the seller as of the sale.

What stands today is taken as having been so from the beginning. An event's rate gets its first rows when it changes.
"""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0019"
down_revision = "0018"

HISTORY = """
CREATE TABLE seller_history (
  organiser_id text NOT NULL, since_us bigint NOT NULL, name text NOT NULL, address text NOT NULL, tax_id text NOT NULL,
  tax_basis_points bigint NOT NULL, PRIMARY KEY (organiser_id, since_us)
);
INSERT INTO seller_history (organiser_id, since_us, name, address, tax_id, tax_basis_points)
  SELECT organiser_id, 0, name, address, tax_id, tax_basis_points FROM sellers;
CREATE TABLE tax_rate_history (
  event_id text NOT NULL, since_us bigint NOT NULL, tax_basis_points bigint NOT NULL, PRIMARY KEY (event_id, since_us)
);
"""


def upgrade() -> None:
    ddl.run(HISTORY)
