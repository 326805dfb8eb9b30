"""The endpoints of one server, in groups. The fast path and the framework call the same ones."""

from dataclasses import dataclass

from frontrow.web.endpoints.bookings import BookingEndpoints
from frontrow.web.endpoints.event_details import EventViews
from frontrow.web.endpoints.event_list import EventLists
from frontrow.web.endpoints.holds import HoldEndpoints
from frontrow.web.endpoints.room.room_endpoints import RoomEndpoints
from frontrow.web.endpoints.seat_map import SeatMapEndpoints


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """Every endpoint that the fast path answers too."""

    room: RoomEndpoints
    holds: HoldEndpoints
    seat_map: SeatMapEndpoints
    events: EventViews
    event_list: EventLists
    bookings: BookingEndpoints
