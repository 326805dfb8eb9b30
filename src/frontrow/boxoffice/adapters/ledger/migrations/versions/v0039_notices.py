"""Version 39: messages of the fan's page that are written when somebody reads them (ADR 0171)."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0039"
down_revision = "0038"
contracts = True  # servers of earlier versions cannot show tickets that are signed when somebody looks (ADR 0172)

NOTICES = "ALTER TABLE in_app_messages ADD COLUMN notice text NOT NULL DEFAULT '';"


def upgrade() -> None:
    ddl.run(NOTICES)
