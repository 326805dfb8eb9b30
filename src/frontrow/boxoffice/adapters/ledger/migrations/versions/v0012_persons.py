"""Version 12: the person of a place names its event; contacts have a name, and their addresses one form.

Until now `place:<lane>.<epoch>.<position>` was the same person in every event (ADR 0112). Every row with an event gets
the event's name. A contact goes to the one event whose bookings had begun when it was written, because only the owner
of a booking could write it. If there were several, nobody can tell whose it is, and it is dropped. Messages name their
booking. People of places never had devices. Purchases are found by the contact's address, so the aliases go.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from frontrow.boxoffice.adapters.ledger.migrations import ddl
from frontrow.boxoffice.people.model.email_addresses import canonical_email
from frontrow.shared.guest_identity import with_event

revision = "0012"
down_revision = "0011"
contracts = True  # servers of earlier versions would go on making the old names

CHUNK = 2_000
OLD = "fan LIKE 'place:%' AND fan NOT LIKE 'place:%:%'"

CONTACTS = """
ALTER TABLE contacts ADD COLUMN name text NOT NULL DEFAULT '';
ALTER TABLE contacts ADD COLUMN folded_name text NOT NULL DEFAULT '';
CREATE TABLE name_tails (
  event_id text NOT NULL, tail :bytewise NOT NULL, fan text NOT NULL, PRIMARY KEY (event_id, tail, fan)
);
CREATE INDEX name_tails_of_fan ON name_tails (fan);
"""

# Who wrote what is asked of the names as they were, so this comes first.
WRITERS = """
CREATE TABLE place_writers AS
  SELECT fan, event_id, min(created_at_us) AS since_us FROM bookings
  WHERE fan LIKE 'place:%' AND fan NOT LIKE 'place:%:%' GROUP BY fan, event_id;
CREATE INDEX place_writers_of ON place_writers (fan);
"""

NAMED = """
UPDATE bookings SET fan = 'place:' || event_id || ':' || substr(fan, 7)
  WHERE fan LIKE 'place:%' AND fan NOT LIKE 'place:%:%';
UPDATE waitlist SET fan = 'place:' || event_id || ':' || substr(fan, 7)
  WHERE fan LIKE 'place:%' AND fan NOT LIKE 'place:%:%';
UPDATE offers SET fan = 'place:' || event_id || ':' || substr(fan, 7)
  WHERE fan LIKE 'place:%' AND fan NOT LIKE 'place:%:%';
UPDATE returns SET fan = 'place:' || event_id || ':' || substr(fan, 7)
  WHERE fan LIKE 'place:%' AND fan NOT LIKE 'place:%:%';
UPDATE idempotency_keys SET scope = (SELECT b.fan FROM bookings AS b WHERE b.id = idempotency_keys.booking_id)
  WHERE scope LIKE 'place:%' AND scope NOT LIKE 'place:%:%'
  AND EXISTS (SELECT 1 FROM bookings AS b WHERE b.id = idempotency_keys.booking_id);
DELETE FROM idempotency_keys WHERE scope LIKE 'place:%' AND scope NOT LIKE 'place:%:%';
"""

SEPARATED = """
INSERT INTO contacts (fan, locale, email, phone, channels, changed_at_us)
  SELECT 'place:' || min(w.event_id) || ':' || substr(c.fan, 7), c.locale, c.email, c.phone, c.channels, c.changed_at_us
  FROM contacts AS c JOIN place_writers AS w ON w.fan = c.fan AND w.since_us <= c.changed_at_us
  GROUP BY c.fan, c.locale, c.email, c.phone, c.channels, c.changed_at_us HAVING count(*) = 1;
DELETE FROM contacts WHERE fan LIKE 'place:%' AND fan NOT LIKE 'place:%:%';
DELETE FROM push_subscriptions WHERE fan LIKE 'place:%' AND fan NOT LIKE 'place:%:%';
DROP TABLE place_writers;
DROP TABLE fan_aliases;
"""


def upgrade() -> None:
    for text in (CONTACTS, WRITERS, NAMED, SEPARATED):
        ddl.run(text)
    _separate_messages()
    _canonicalise_addresses()


def _separate_messages() -> None:
    """A message is called `<kind>-<booking or event>-<number>`: it belongs to that event, or is dropped."""
    find_event = sa.text(
        "SELECT event_id FROM bookings WHERE id = :about UNION SELECT id FROM events WHERE id = :about"
    )
    rename = sa.text("UPDATE in_app_messages SET fan = :fan WHERE id = :id")
    for message_id, fan in _pages("in_app_messages", "id", "fan", OLD):
        about = message_id.partition("-")[2].rpartition("-")[0]
        event = op.get_bind().execute(find_event, {"about": about}).scalar()
        if event is not None:
            op.get_bind().execute(rename, {"id": message_id, "fan": with_event(fan, event)})
    ddl.run("DELETE FROM in_app_messages WHERE fan LIKE 'place:%' AND fan NOT LIKE 'place:%:%';")


def _canonicalise_addresses() -> None:
    change = sa.text("UPDATE contacts SET email = :email WHERE fan = :fan")
    for fan, email in _pages("contacts", "fan", "email", "email <> ''"):
        if canonical_email(email) != email:
            op.get_bind().execute(change, {"fan": fan, "email": canonical_email(email)})


def _pages(table: str, key: str, column: str, which: str) -> Iterator[tuple[Any, ...]]:
    """The rows in the order of their key, some at a time."""
    page = sa.text(f"SELECT {key}, {column} FROM {table} WHERE {key} > :after AND {which} ORDER BY {key} LIMIT {CHUNK}")  # noqa: S608
    after = ""
    while rows := op.get_bind().execute(page, {"after": after}).all():  # ends with the table
        yield from [tuple(row) for row in rows]
        after = rows[-1][0]
