"""Version 36: the organisers' keys for wallets, sealed (ADR 0152)."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0036"
down_revision = "0035"

WALLET_KEYS = """
CREATE TABLE wallet_keys (
  organiser_id text NOT NULL, wallet text NOT NULL, account text NOT NULL, holder text NOT NULL,
  expires_at_us bigint NOT NULL, sealed text NOT NULL, changed_at_us bigint NOT NULL,
  PRIMARY KEY (organiser_id, wallet)
);
"""


def upgrade() -> None:
    ddl.run(WALLET_KEYS)
