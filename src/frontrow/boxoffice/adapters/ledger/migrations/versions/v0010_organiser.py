"""Version 10: what organisers change and see: their venues and changes, cancellations, lists of bookings."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0010"
down_revision = "0009"

# bookings_of_event only ever grows at its end, and none of its columns changes: 0090 has what it costs a hold.
CATALOGUE = """
ALTER TABLE venues ADD COLUMN organiser_id text NOT NULL DEFAULT 'org_default';
CREATE INDEX venues_of_organiser ON venues (organiser_id, id);
CREATE INDEX bookings_of_event ON bookings (event_id, fence);
CREATE INDEX contacts_by_email ON contacts (email) WHERE email <> '';
CREATE INDEX webhook_endpoints_of_organiser ON webhook_endpoints (organiser, id);
CREATE INDEX webhook_deliveries ON deliveries (lane, number) WHERE kind = 'webhook';
"""

CHANGES = """
CREATE TABLE changes (
  number :serial,
  organiser_id text NOT NULL, event_id text NOT NULL, actor text NOT NULL, act text NOT NULL, detail text NOT NULL,
  at_us bigint NOT NULL
);
CREATE INDEX changes_of_organiser ON changes (organiser_id, number);
CREATE TABLE cancellations (
  event_id text PRIMARY KEY, job_state text NOT NULL CHECK (job_state IN ('running', 'done')),
  refunded bigint NOT NULL, released bigint NOT NULL, stopped bigint NOT NULL, failed bigint NOT NULL,
  next_at_us bigint NOT NULL, started_at_us bigint NOT NULL, changed_at_us bigint NOT NULL
);
CREATE INDEX cancellations_due ON cancellations (next_at_us) WHERE job_state = 'running';
"""


def upgrade() -> None:
    for text in (CATALOGUE, CHANGES):
        ddl.run(text)
    ddl.append_only("changes")
