"""Version 39: messages of the fan's page that are written when somebody reads them (ADR 0171)."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0039"
down_revision = "0038"

NOTICES = "ALTER TABLE in_app_messages ADD COLUMN notice text NOT NULL DEFAULT '';"


def upgrade() -> None:
    ddl.run(NOTICES)
