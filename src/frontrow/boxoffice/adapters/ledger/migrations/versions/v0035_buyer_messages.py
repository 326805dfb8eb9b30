"""Version 35: messages from organisers to the people who have tickets."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0035"
down_revision = "0034"

# Their deliveries are counted per message, by its lanes. Other deliveries are not in that index and cost nothing more.
MESSAGES = """
CREATE TABLE buyer_messages (
  id text PRIMARY KEY, event_id text NOT NULL, made_by text NOT NULL,
  audience_kind text NOT NULL CHECK (audience_kind IN ('all', 'section', 'tier', 'booking')),
  audience_key text NOT NULL, subject text NOT NULL, body text NOT NULL,
  message_state text NOT NULL CHECK (message_state IN ('draft', 'sending', 'sent')),
  created_at_us bigint NOT NULL, recipients bigint NOT NULL DEFAULT 0, last_fence bigint NOT NULL DEFAULT 0,
  all_queued smallint NOT NULL DEFAULT 0 CHECK (all_queued IN (0, 1)), sent bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0, skipped bigint NOT NULL DEFAULT 0, next_at_us bigint NOT NULL DEFAULT 0
);
ALTER TABLE sellers ADD COLUMN contact_email text NOT NULL DEFAULT '';
CREATE INDEX buyer_messages_of_event ON buyer_messages (event_id, created_at_us);
CREATE INDEX buyer_messages_in_work ON buyer_messages (next_at_us) WHERE message_state = 'sending';
CREATE INDEX messages_to_one_booking ON buyer_messages (audience_key) WHERE audience_kind = 'booking';
CREATE INDEX deliveries_of_buyer_messages ON deliveries (lane) WHERE kind = 'buyer_message';
"""


def upgrade() -> None:
    ddl.run(MESSAGES)
