"""Version 15: who sells, as receipts say it: name, address, tax number and tax rate of an organiser."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0015"
down_revision = "0016"

SELLERS = """
CREATE TABLE sellers (
  organiser_id text PRIMARY KEY, name text NOT NULL, address text NOT NULL, tax_id text NOT NULL,
  tax_basis_points integer NOT NULL CHECK (tax_basis_points BETWEEN 0 AND 5000), changed_at_us bigint NOT NULL
);
"""


def upgrade() -> None:
    ddl.run(SELLERS)
