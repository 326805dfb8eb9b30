"""Version 46: organisers have accounts of their own, and the platform keeps a fee (ADR 0215).

Servers of earlier versions begin payments for the server's own account only: until they are gone, give no organiser an
account.
"""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0046"
down_revision = "0045"

ACCOUNTS = """
CREATE TABLE payment_accounts (
  provider text NOT NULL, account text NOT NULL, organiser_id text NOT NULL,
  account_state text NOT NULL CHECK (account_state IN ('onboarding', 'active', 'restricted', 'closed')),
  reason text NOT NULL DEFAULT '', fee_basis_points bigint NOT NULL CHECK (fee_basis_points >= 0),
  made_at_us bigint NOT NULL, changed_at_us bigint NOT NULL, ended_at_us bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (provider, account)
);
CREATE UNIQUE INDEX one_payment_account_per_organiser ON payment_accounts (organiser_id) WHERE ended_at_us = 0;
ALTER TABLE payments ADD COLUMN fee_minor bigint NOT NULL DEFAULT 0;
"""


def upgrade() -> None:
    ddl.run(ACCOUNTS)
