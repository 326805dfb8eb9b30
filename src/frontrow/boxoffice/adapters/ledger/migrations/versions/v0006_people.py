"""Version 6: organisers and their staff, fans, sessions, one-time links and API keys; every event has an organiser."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0006"
down_revision = "0005"

# Events from before belong to org_default. Only hashes of sessions, keys and links are kept. The index over purchases
# leaves holds out: holding seats costs nothing more than before.
EVENTS = """
ALTER TABLE events ADD COLUMN organiser_id text NOT NULL DEFAULT 'org_default';
CREATE INDEX events_of_organiser ON events (organiser_id, starts_at_us, id);
"""

STAFF = """
CREATE TABLE organisers (id text PRIMARY KEY, name text NOT NULL, created_at_us bigint NOT NULL);
INSERT INTO organisers (id, name, created_at_us) VALUES ('org_default', 'Frontrow', 0);
CREATE TABLE staff (
  id text PRIMARY KEY, organiser_id text NOT NULL, email text NOT NULL, name text NOT NULL,
  role text NOT NULL CHECK (role IN ('owner', 'manager', 'box_office', 'door', 'read_only')),
  password_hash text NOT NULL, totp_sealed text NOT NULL, totp_step bigint NOT NULL,
  created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL
);
CREATE UNIQUE INDEX one_account_per_address ON staff (email);
CREATE INDEX staff_of_organiser ON staff (organiser_id, id);
CREATE TABLE recovery_codes (staff_id text NOT NULL, code_hash text NOT NULL, PRIMARY KEY (staff_id, code_hash));
CREATE TABLE invitations (
  id text PRIMARY KEY, secret_hash text NOT NULL UNIQUE, organiser_id text NOT NULL, email text NOT NULL,
  role text NOT NULL, made_by text NOT NULL, staff_id text NOT NULL, created_at_us bigint NOT NULL,
  ends_at_us bigint NOT NULL, used_at_us bigint NOT NULL
);
CREATE INDEX invitations_of_organiser ON invitations (organiser_id, created_at_us);
CREATE TABLE api_keys (
  id text PRIMARY KEY, secret_hash text NOT NULL UNIQUE, organiser_id text NOT NULL, name text NOT NULL,
  scopes text NOT NULL, made_by text NOT NULL, created_at_us bigint NOT NULL, ends_at_us bigint NOT NULL,
  used_at_us bigint NOT NULL
);
CREATE INDEX api_keys_of_organiser ON api_keys (organiser_id, id);
"""

FANS = """
CREATE TABLE fans (
  id text PRIMARY KEY, email text NOT NULL, created_at_us bigint NOT NULL, erased_at_us bigint NOT NULL
);
CREATE UNIQUE INDEX one_fan_per_address ON fans (email) WHERE email <> '';
CREATE TABLE fan_aliases (alias text PRIMARY KEY, fan text NOT NULL);
CREATE INDEX fan_aliases_of ON fan_aliases (fan);
CREATE TABLE magic_links (
  secret_hash text PRIMARY KEY, browser_hash text NOT NULL, email text NOT NULL, created_at_us bigint NOT NULL,
  ends_at_us bigint NOT NULL, used_at_us bigint NOT NULL
);
CREATE INDEX magic_links_by_end ON magic_links (ends_at_us);
CREATE INDEX magic_links_of_address ON magic_links (email);
CREATE TABLE sessions (
  id text PRIMARY KEY, secret_hash text NOT NULL UNIQUE,
  kind text NOT NULL CHECK (kind IN ('fan', 'guest', 'staff')), subject text NOT NULL,
  stage text NOT NULL CHECK (stage IN ('full', 'totp', 'enrol')), created_at_us bigint NOT NULL,
  seen_at_us bigint NOT NULL, ends_at_us bigint NOT NULL, idle_us bigint NOT NULL, agent text NOT NULL
);
CREATE INDEX sessions_of_subject ON sessions (subject, created_at_us);
CREATE INDEX sessions_by_end ON sessions (ends_at_us);
CREATE INDEX purchases_of_fan ON bookings (fan, created_at_us) WHERE state IN ('confirmed', 'cancelled', 'refunded');
"""


def upgrade() -> None:
    for text in (EVENTS, STAFF, FANS):
        ddl.run(text)
