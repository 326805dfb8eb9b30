"""Version 16: who wants to hear when a sale opens, and who registered for a presale."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0016"
down_revision = "0014"

SIGNUPS = """
CREATE TABLE sale_signups (
  id text PRIMARY KEY, event_id text NOT NULL, purpose text NOT NULL CHECK (purpose IN ('notice', 'presale')),
  email text NOT NULL, locale text NOT NULL,
  signup_state text NOT NULL CHECK (signup_state IN ('asked', 'confirmed', 'sent', 'chosen', 'passed_over')),
  code_number bigint NOT NULL, created_at_us bigint NOT NULL, confirmed_at_us bigint NOT NULL,
  changed_at_us bigint NOT NULL
);
CREATE UNIQUE INDEX sale_signups_once ON sale_signups (event_id, purpose, email);
CREATE INDEX sale_signups_waiting ON sale_signups (purpose, event_id, id) WHERE signup_state = 'confirmed';
CREATE INDEX sale_signups_of_address ON sale_signups (email);
CREATE INDEX sale_signups_asked ON sale_signups (created_at_us) WHERE signup_state = 'asked';
CREATE TABLE presales (
  event_id text PRIMARY KEY, opens_at_us bigint NOT NULL, closes_at_us bigint NOT NULL, codes bigint NOT NULL,
  draw_order text NOT NULL CHECK (draw_order IN ('lottery', 'first_come')), lane text NOT NULL, seed text NOT NULL,
  beacon text NOT NULL, batches text NOT NULL, last_rank text NOT NULL,
  presale_state text NOT NULL CHECK (presale_state IN ('open', 'drawing', 'drawn')),
  created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL
);
CREATE INDEX presales_drawing ON presales (event_id) WHERE presale_state = 'drawing';
"""


def upgrade() -> None:
    ddl.run(SIGNUPS)
