"""Version 45: what providers said of objects that cannot be read there (ADR 0214).

Servers of earlier versions do not know the table, and have no provider that needs it.
"""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0045"
down_revision = "0044"

# `name` says what the note is about; a note is kept once. `their_ref`: the provider's own name for a payment.
NOTES = """
CREATE TABLE provider_notes (
  provider text NOT NULL, ref text NOT NULL, name text NOT NULL, account text NOT NULL DEFAULT '',
  their_ref text NOT NULL DEFAULT '', body text NOT NULL, at_us bigint NOT NULL,
  PRIMARY KEY (provider, ref, name)
);
CREATE INDEX provider_notes_by_their_ref ON provider_notes (provider, their_ref) WHERE their_ref <> '';
CREATE INDEX provider_objects_made ON provider_notes (provider, account, at_us, ref) WHERE name = 'made';
"""


def upgrade() -> None:
    ddl.run(NOTES)
