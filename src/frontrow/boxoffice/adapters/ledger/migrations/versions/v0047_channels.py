"""Version 47: proven phone numbers, codes that prove them, and addresses that get no more messages (ADR 0217).

Servers of earlier versions leave the new column alone: a number that they change is not proven. They still write to
blocked addresses and send SMS to numbers that nobody has proven, so they should not be the ones that run the jobs.
"""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0047"
down_revision = "0046"

# `address_digest`: of the channel and the address, so that the list outlives the erasure of a person
CHANNELS = """
ALTER TABLE contacts ADD COLUMN proven_phone text NOT NULL DEFAULT '';
CREATE TABLE phone_codes (
  fan text PRIMARY KEY, phone text NOT NULL, digest text NOT NULL, tries bigint NOT NULL,
  ends_at_us bigint NOT NULL
);
CREATE TABLE blocked_addresses (
  channel text NOT NULL, address_digest text NOT NULL, reason text NOT NULL, detail text NOT NULL,
  since_us bigint NOT NULL, PRIMARY KEY (channel, address_digest)
);
"""


def upgrade() -> None:
    ddl.run(CHANNELS)
