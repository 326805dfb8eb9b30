"""Bookings, keys and gates for the tests of tickets."""

from typing import Any

from frontrow.boxoffice.gate.gate_bundle import make_bundle
from frontrow.boxoffice.gate.gate_check import Gate, ScanLog
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.tickets.model.tickets import NewTicket, Sheet
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer

NOW = 1_700_000_000_000_000
EVENT = "evt_tickets"
KEYS = TicketKeys(b"k" * 32)
OTHER_KEYS = TicketKeys(b"o" * 32)


def booking(*seats: int, number: int = 1, event: str = EVENT, fence: int = 0) -> Booking:
    return Booking(
        f"bkg_{number:026d}",
        event,
        "fan_1",
        BookingState.PAYING,
        fence or number,
        seats,
        5000,
        "EUR",
        "",
        NOW,
        NOW,
        NOW,
    )


def issued(*seats: int, keys: TicketKeys = KEYS, rotating: bool = False, **more: Any) -> tuple[NewTicket, ...]:
    return Issuer(keys, rotating=rotating).issue(booking(*seats, **more))


def gate(name: str = "north", revoked: tuple[str, ...] = (), log: ScanLog | None = None, **more: Any) -> Gate:
    seats = tuple(f"A-1-{n}" for n in range(1, 11))
    keys, reentry = more.get("keys", KEYS), more.get("reentry", False)
    return Gate(make_bundle(keys, EVENT, "Aurora", revoked, NOW, seats, reentry=reentry), name, log)


def sheet(ticket: NewTicket, **changes: Any) -> Sheet:
    values: dict[str, Any] = {
        "ticket_id": ticket.id,
        "code": ticket.code,
        "seat": "A-1-7",
        "event_id": EVENT,
        "event_name": "Aurora – Zażółć & <Björk>",
        "venue_name": "Waldbühne",
        "city": "Berlin",
        "time_zone": "Europe/Berlin",
        "starts_at_us": NOW,
        "ends_at_us": 0,
        "booking_id": "bkg_1",
        "issued_at_us": NOW,
    }
    return Sheet(**(values | changes))
