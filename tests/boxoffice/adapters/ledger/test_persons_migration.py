"""Version 12 of the ledger: people of places are separated by event, and no contact goes to a stranger (ADR 0112)."""

from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.facts.model import BookingConfirmed, decode_fact, encode_fact
from tests.boxoffice.adapters.ledger.raw_sql import insert_rows, read_pairs
from tests.boxoffice.conftest import opened

A, B, C = "evt_a", "evt_b", "evt_c"
FIRST, SECOND, THIRD, FOURTH = (f"place:0.1.{position}" for position in (1, 2, 3, 4))


def booking(name: str, event: str, fan: str, at_us: int, state: str = "confirmed") -> tuple[str, tuple[Any, ...]]:
    columns = (
        "id, event_id, fan, state, seat_count, seats, amount_minor, currency, session, created_at_us, changed_at_us,"
        " hold_expires_at_us"
    )
    values = (name, event, fan, state, 1, "[1]", 5000, "EUR", "", at_us, at_us, at_us + 9)
    return f"INSERT INTO bookings ({columns}) VALUES (%s{', %s' * 11})", values


def contact(fan: str, email: str, at_us: int) -> tuple[str, tuple[Any, ...]]:
    insert = (
        "INSERT INTO contacts (fan, locale, email, phone, channels, changed_at_us) VALUES (%s, 'en', %s, '', %s, %s)"
    )
    return insert, (fan, email, '["email", "in_app"]', at_us)


def message(name: str, fan: str) -> tuple[str, tuple[Any, ...]]:
    insert = "INSERT INTO in_app_messages (id, fan, subject, body, created_at_us) VALUES (%s, %s, 'Hello', '', 5)"
    return insert, (name, fan)


OLD_ROWS = [
    # The first of A wrote the contact; the first of B only came later and was shown it.
    booking("bkg_a1", A, FIRST, 10),
    contact(FIRST, "Ada@Example.ORG", 20),
    booking("bkg_b1", B, FIRST, 30),
    message("confirmed-bkg_a1-7", FIRST),
    message("confirmed-bkg_b1-8", FIRST),
    message("expired-bkg_gone-9", FIRST),
    message(f"offer-{C}-10", "fan_1"),
    # Both had begun when the contact was written: nobody can tell whose it is.
    booking("bkg_a2", A, SECOND, 10),
    booking("bkg_b2", B, SECOND, 11),
    contact(SECOND, "eve@example.org", 20),
    # Only one event at all; a hold that came to nothing counts as well.
    booking("bkg_c3", C, THIRD, 10, "expired"),
    contact(THIRD, "carl@example.org", 20),
    # No booking: nobody of today can have written it.
    contact(FOURTH, "dora@example.org", 20),
    booking("bkg_f", A, "fan_1", 10),
    contact("fan_1", "fan@example.org", 20),
    (
        "INSERT INTO waitlist (id, event_id, fan, seat_count, entry_state, created_at_us, changed_at_us)"
        " VALUES ('wle_1', %s, %s, 2, 'waiting', 5, 5)",
        (B, FIRST),
    ),
    (
        "INSERT INTO offers (id, entry_id, event_id, fan, booking_id, offer_state, expires_at_us, created_at_us,"
        " changed_at_us) VALUES ('off_1', 'wle_1', %s, %s, 'bkg_b1', 'open', 9, 5, 5)",
        (B, FIRST),
    ),
    (
        "INSERT INTO returns (id, booking_id, event_id, fan, fence, seat_index, price_minor, currency, return_state,"
        " created_at_us, changed_at_us) VALUES ('rtn_1', 'bkg_a1', %s, %s, 1, 1, 5000, 'EUR', 'listed', 5, 5)",
        (A, FIRST),
    ),
    ("INSERT INTO idempotency_keys VALUES (%s, 'key-1', 'h', 'bkg_b1', 5)", (FIRST,)),
    ("INSERT INTO idempotency_keys VALUES (%s, 'key-2', 'h', 'bkg_gone', 5)", (FIRST,)),
    ("INSERT INTO fan_aliases VALUES (%s, 'fan_1')", (FIRST,)),
    ("INSERT INTO push_subscriptions VALUES ('https://push.example/1', %s, '{}', 5)", (FIRST,)),
]


@pytest.fixture(params=["sqlite", "postgres"])
def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger of version 11 with two events that share their people, brought to the newest version."""
    sqlite = f"sqlite:///{tmp_path / 'old.db'}"
    url = sqlite if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    migrate(url, "0011")
    insert_rows(url, OLD_ROWS)
    migrate(url)
    return url


def test_everything_with_an_event_gets_the_events_name(upgraded: str) -> None:
    assert read_pairs(upgraded, "SELECT id, fan FROM bookings") == {
        "bkg_a1": "place:evt_a:0.1.1",
        "bkg_b1": "place:evt_b:0.1.1",
        "bkg_a2": "place:evt_a:0.1.2",
        "bkg_b2": "place:evt_b:0.1.2",
        "bkg_c3": "place:evt_c:0.1.3",
        "bkg_f": "fan_1",
    }
    for table, fan in (("waitlist", "place:evt_b:0.1.1"), ("offers", "place:evt_b:0.1.1")):
        assert list(read_pairs(upgraded, f"SELECT id, fan FROM {table}").values()) == [fan]
    assert read_pairs(upgraded, "SELECT id, fan FROM returns") == {"rtn_1": "place:evt_a:0.1.1"}
    assert read_pairs(upgraded, "SELECT key, scope FROM idempotency_keys") == {"key-1": "place:evt_b:0.1.1"}


def test_a_contact_goes_to_the_one_event_that_can_have_written_it_or_to_nobody(upgraded: str) -> None:
    assert read_pairs(upgraded, "SELECT fan, email FROM contacts") == {
        "place:evt_a:0.1.1": "ada@example.org",
        "place:evt_c:0.1.3": "carl@example.org",
        "fan_1": "fan@example.org",
    }
    assert read_pairs(upgraded, "SELECT endpoint, fan FROM push_subscriptions") == {}


def test_a_message_goes_to_the_event_of_its_booking_or_to_nobody(upgraded: str) -> None:
    assert read_pairs(upgraded, "SELECT id, fan FROM in_app_messages") == {
        "confirmed-bkg_a1-7": "place:evt_a:0.1.1",
        "confirmed-bkg_b1-8": "place:evt_b:0.1.1",
        f"offer-{C}-10": "fan_1",
    }


async def test_an_upgraded_ledger_gives_an_address_only_what_was_bought_with_it(upgraded: str) -> None:
    async def bought(ledger: SqlLedger, email: str) -> list[str]:
        return [one.id for one in await ledger.people.purchases_of_address(email)]

    async with opened(upgraded) as ledger:
        assert await bought(ledger, "ada@example.org") == ["bkg_a1"]
        assert await bought(ledger, "eve@example.org") == await bought(ledger, "dora@example.org") == []


def test_a_fact_on_its_way_reaches_the_person_of_its_event() -> None:
    fact = BookingConfirmed("bkg_b1", B, FIRST, 1, (1,), 5)
    assert decode_fact(encode_fact(fact)).fan == "place:evt_b:0.1.1"
    named = BookingConfirmed("bkg_b1", B, "fan_1", 1, (1,), 5)
    assert decode_fact(encode_fact(named)) == named
