"""Version 41: a booking says where it comes from, and when its payment was begun (ADR 0189).

Servers of earlier versions leave these columns empty (NULL) and write and read `session` alone: the id of the visit, of
the offer or of the member of staff. `read_session_column` in `programs/bookings.py` reads their rows.
"""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0041"
down_revision = "0040"

ORIGINS = """
ALTER TABLE bookings ADD COLUMN origin text;
ALTER TABLE bookings ADD COLUMN visit_id text;
ALTER TABLE bookings ADD COLUMN sold_by text;
ALTER TABLE bookings ADD COLUMN payment_begun_at_us bigint;
"""


def upgrade() -> None:
    ddl.run(ORIGINS)
