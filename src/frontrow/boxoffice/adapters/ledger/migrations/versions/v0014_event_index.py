"""Version 14: finding events by index, following their changes by number, and how many seats are left.

Every insert or change of an event gets the next number of the catalogue, by trigger, so that no writer can forget it.
The row of `catalogue_version` stays locked until the transaction ends: numbers are committed in their order.
"""

from typing import Any, Final

import msgspec
from alembic import op
from sqlalchemy import Connection, text

from frontrow.boxoffice.adapters.ledger.migrations import ddl
from frontrow.boxoffice.events.model.event_search import index_texts, local_us, venue_words
from frontrow.boxoffice.events.model.events import SHOW_US
from frontrow.boxoffice.seats.model.venues import Venue

revision = "0014"
down_revision = "0013"

PAGE: Final = 1_000

# `shelf` puts together what is listed together: 1 is on sale or sold out.
TABLES = """
CREATE TABLE catalogue_version (only_row bigint PRIMARY KEY CHECK (only_row = 1), version bigint NOT NULL);
INSERT INTO catalogue_version (only_row, version) VALUES (1, 0);
ALTER TABLE events ADD COLUMN change_number bigint NOT NULL DEFAULT 0;
CREATE TABLE event_listings (
  event_id text PRIMARY KEY, event_state text NOT NULL,
  shelf bigint NOT NULL GENERATED ALWAYS AS (CASE event_state
    WHEN 'draft' THEN 0 WHEN 'on_sale' THEN 1 WHEN 'sold_out' THEN 1 WHEN 'completed' THEN 2 ELSE 3 END) STORED,
  starts_at_us bigint NOT NULL, starts_local_us bigint NOT NULL, sale_starts_at_us bigint NOT NULL,
  sale_ends_at_us bigint NOT NULL, over_at_us bigint NOT NULL, currency text NOT NULL,
  min_price_minor bigint NOT NULL, max_price_minor bigint NOT NULL,
  free_seats bigint NOT NULL, counted_at_us bigint NOT NULL
):clustered;
CREATE TABLE event_words (
  word text:binary NOT NULL, event_id text NOT NULL, source text NOT NULL CHECK (source IN ('event', 'venue')),
  PRIMARY KEY (word, event_id, source)
):clustered;
"""
INDEXES = """
CREATE INDEX events_by_change ON events (change_number, id);
CREATE INDEX events_at_venue ON events (venue_id, id);
CREATE INDEX listings_by_start ON event_listings (shelf, starts_at_us, event_id);
CREATE INDEX listings_by_price ON event_listings (shelf, min_price_minor);
CREATE INDEX listings_by_currency ON event_listings (shelf, currency);
CREATE INDEX listings_by_end ON event_listings (shelf, over_at_us);
CREATE INDEX listings_by_count ON event_listings (shelf, counted_at_us);
CREATE INDEX words_of_event ON event_words (event_id, word);
"""
SQLITE_TRIGGER = """
CREATE TRIGGER events_{name} AFTER {act} ON events BEGIN
  UPDATE catalogue_version SET version = version + 1;
  UPDATE events SET change_number = (SELECT version FROM catalogue_version) WHERE id = new.id;
  UPDATE event_listings SET event_state = new.event_state WHERE event_id = new.id AND event_state <> new.event_state;
END
"""
POSTGRES_FUNCTIONS = (
    "CREATE FUNCTION count_catalogue_change() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN UPDATE catalogue_version SET version = version + 1; RETURN NULL; END $$",
    "CREATE FUNCTION number_event_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "SELECT version INTO new.change_number FROM catalogue_version; "
    "UPDATE event_listings SET event_state = new.event_state "
    "WHERE event_id = new.id AND event_state <> new.event_state; RETURN new; END $$",
)
POSTGRES_TRIGGER = """
CREATE TRIGGER events_{name}_counted BEFORE {act} ON events
  FOR EACH STATEMENT EXECUTE FUNCTION count_catalogue_change();
CREATE TRIGGER events_{name}_numbered BEFORE {act} ON events
  FOR EACH ROW EXECUTE FUNCTION number_event_change();
"""
LISTING = """
INSERT INTO event_listings (event_id, event_state, starts_at_us, starts_local_us, sale_starts_at_us, sale_ends_at_us,
  over_at_us, currency, min_price_minor, max_price_minor, free_seats, counted_at_us)
SELECT e.id, e.event_state, e.starts_at_us, :local, e.sale_starts_at_us, e.sale_ends_at_us, :over, e.currency, :low,
  :high, coalesce((SELECT p.seat_count FROM plans AS p WHERE p.hash = e.plan_hash), 0) - :withheld
  - (SELECT count(*) FROM booking_seats AS s WHERE s.event_id = e.id AND s.active = 1), 0
FROM events AS e WHERE e.id = :id
"""
WATCHED: Final = {"added": "INSERT", "changed": "UPDATE OF document, event_state"}


def upgrade() -> None:
    postgres = ddl.dialect() == "postgresql"
    tables = TABLES.replace(":binary", ' COLLATE "C"' if postgres else "")
    ddl.run(tables.replace(":clustered", "" if postgres else " WITHOUT ROWID"))
    _fill(op.get_bind())
    ddl.run(INDEXES)
    for statement in POSTGRES_FUNCTIONS if postgres else ():
        op.execute(statement)
    for name, act in WATCHED.items():
        if postgres:
            ddl.run(POSTGRES_TRIGGER.format(name=name, act=act))
        else:
            op.execute(SQLITE_TRIGGER.format(name=name, act=act))


def _fill(connection: Connection) -> None:
    """Index the events that are there already, a page at a time."""
    query = text("SELECT id, name, plan_hash, city, country, time_zone FROM venues")
    venues = {row[0]: Venue(*row) for row in connection.execute(query)}
    after = ""
    while True:  # ends with the last page
        query = text("SELECT id, venue_id, document FROM events WHERE id > :after ORDER BY id LIMIT :limit")
        page = list(connection.execute(query, {"after": after, "limit": PAGE}))
        for row in page:
            _index(connection, row[0], msgspec.json.decode(row[2]), venues.get(row[1]))
        if len(page) < PAGE:
            return
        after = page[-1][0]


def _index(connection: Connection, event_id: str, event: dict[str, Any], venue: Venue | None) -> None:
    prices = [tier["price"]["minor"] for tier in event.get("tiers", ())]
    starts_at_us = event["starts_at_us"]
    columns = {
        "id": event_id,
        "local": local_us(starts_at_us, venue.time_zone if venue else "UTC"),
        "over": max(event.get("ends_at_us") or starts_at_us + SHOW_US, event["sale_ends_at_us"]),
        "low": min(prices, default=-1),
        "high": max(prices, default=-1),
        "withheld": len(event.get("withheld", ())),
    }
    connection.execute(text(LISTING), columns)
    own = index_texts((event.get("name", ""), event.get("description", "")))
    words = [{"word": word, "id": event_id, "source": "event"} for word in own]
    words += [{"word": word, "id": event_id, "source": "venue"} for word in (venue_words(venue) if venue else ())]
    if words:
        connection.execute(text("INSERT INTO event_words (word, event_id, source) VALUES (:word, :id, :source)"), words)
