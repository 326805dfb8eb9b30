"""Tickets and transfers as values: who is inside, what a sheet shows, and until when a transfer is open."""

from dataclasses import replace as replace_sheet
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.seats.model.venues import AREA_ROW
from frontrow.boxoffice.tickets.model.ticket_transfers import (
    TicketTransferred,
    Transfer,
    TransferNotFound,
    TransferState,
)
from frontrow.boxoffice.tickets.model.tickets import (
    TICKET_ID_BYTES,
    Ticket,
    TicketRevoked,
    TicketScanned,
    TicketState,
    ticket_id,
    ticket_id_bytes,
)
from tests.boxoffice.tickets.samples import issued, sheet

TICKET = Ticket("tkt_1", "bkg_1", "evt_1", 3, TicketState.VALID, "code", 5, 5)
SHEET = sheet(issued(1)[0])
WORDS = {"section": "Section", "row": "Row", "seat": "Seat", "standing_place": "Place"}


def test_a_ticket_is_inside_from_its_admission_until_it_leaves() -> None:
    assert not TICKET.inside
    assert replace(TICKET, scanned_at_us=0).inside
    assert not replace(TICKET, scanned_at_us=7, left_at_us=9).inside


def test_a_ticket_whose_row_names_a_transfer_was_handed_over() -> None:
    assert not TICKET.handed_over
    assert replace(TICKET, booking_id="trf_1").handed_over


def test_a_ticket_id_follows_from_the_secret_booking_fence_and_seat() -> None:
    one = ticket_id_bytes(b"secret", "bkg_1", 1, 2)
    assert len(one) == TICKET_ID_BYTES == 16
    assert one == ticket_id_bytes(b"secret", "bkg_1", 1, 2)
    others = {
        ticket_id_bytes(b"other", "bkg_1", 1, 2),
        ticket_id_bytes(b"secret", "bkg_2", 1, 2),
        ticket_id_bytes(b"secret", "bkg_1", 2, 2),
        ticket_id_bytes(b"secret", "bkg_1", 1, 3),
    }
    assert len(others | {one}) == 5
    assert ticket_id(bytes(16)) == "tkt_" + 26 * "0"
    assert ticket_id(bytes(15) + b"\1") == "tkt_" + 25 * "0" + "1"


def test_refusals_name_their_ticket() -> None:
    scanned = TicketScanned("bkg_1", [4, 3])
    assert (scanned.booking_id, scanned.seats, scanned.about) == ("bkg_1", (4, 3), {"booking": "bkg_1"})
    assert TicketRevoked("tkt_1").about == {"ticket": "tkt_1"}
    assert TransferNotFound("t" * 99).about == {"transfer": "t" * 60}
    assert TicketTransferred("bkg_1").about == {"booking": "bkg_1"}


def test_a_transfer_is_open_until_its_end() -> None:
    sent = Transfer("trf_1", "b", "e", 1, "tkt_1", "f", "a@x.org", "en", TransferState.SENT, 0, 100)
    assert (sent.open(99), sent.open(100)) == (True, False)
    for state in (TransferState.ACCEPTED, TransferState.WITHDRAWN):
        assert not replace(sent, state=state).open(99)


@pytest.mark.parametrize(
    ("venue", "city", "place"), [("Hall", "Vienna", "Hall, Vienna"), ("Hall", "", "Hall"), ("", "", "")]
)
def test_a_sheet_says_where(venue: str, city: str, place: str) -> None:
    assert replace_sheet(SHEET, venue_name=venue, city=city).place == place


def test_a_sheet_names_the_seat_as_the_organiser_does() -> None:
    plain = replace_sheet(SHEET, seat="B-3-7", named=None)
    assert plain.parts == ("B", "3", "7")
    named = replace_sheet(plain, named=("Balcony", "C", "12"))
    assert named.parts == ("Balcony", "C", "12")
    assert named.seat_words(WORDS) == [("Section", "Balcony"), ("Row", "C"), ("Seat", "12")]
    assert replace_sheet(plain, named=("Balcony", "", "12")).seat_words(WORDS) == [
        ("Section", "Balcony"),
        ("Seat", "12"),
    ]
    standing = replace_sheet(plain, named=("Floor", AREA_ROW, "44"))
    assert standing.seat_words(WORDS) == [("Section", "Floor"), ("Place", "44")]
    assert "Balcony" in named.seat_text()
    assert named.seat_text("de") != named.seat_text("en")


def test_a_show_without_an_end_lasts_three_hours() -> None:
    begins = replace_sheet(SHEET, time_zone="UTC", starts_at_us=3_600_000_000, ends_at_us=0)
    assert begins.starts_at == datetime(1970, 1, 1, 1, tzinfo=UTC)
    assert begins.ends_at == datetime(1970, 1, 1, 4, tzinfo=UTC)
    ends = replace_sheet(begins, ends_at_us=2 * 3_600_000_000, time_zone="Europe/Vienna")
    assert ends.ends_at.isoformat() == "1970-01-01T03:00:00+01:00"
