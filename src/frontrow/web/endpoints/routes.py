"""The routes of events and bookings that the fast path answers: one table for it and for the API.

The waiting room's routes are in `room.routes`. The list of events is not here: the fast path answers it without a query
only, and the API reads a dozen parameters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from frontrow.web.endpoints.bookings import ExtendBody, PayBody
from frontrow.web.endpoints.event_details import EventView
from frontrow.web.endpoints.groups import Endpoints
from frontrow.web.http.access import Access
from frontrow.web.http.bodies.bookings import BookingView
from frontrow.web.http.bodies.holds import HoldBody, HoldView
from frontrow.web.http.messages import EndpointRequest

ANY: Final = (400, 401, 403, 405, 422, 429, 500, 503)  # the errors of every route that has a caller


@dataclass(frozen=True, slots=True)
class Route:
    """One route. `path` has one parameter, which the endpoint is given. `answers` maps a status to a Struct, to a media
    type, or to None (no body); `problems` are the error statuses. With `takes_query` the fast path answers addresses
    with a query, too. `more` is for the API's document."""

    method: str
    path: str
    operation_id: str
    summary: str
    endpoint: Callable[[Endpoints], Callable[[str, EndpointRequest], Any]]
    access: Access
    answers: Mapping[int, Any]
    problems: tuple[int, ...]
    body: type[msgspec.Struct] | None = None
    takes_query: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)


GET_EVENT: Final = Route(
    "GET",
    "/v1/events/{event_id}",
    "get_event",
    "One event with its free seats",
    # Counts the address, not the person: the response is the same cached bytes for everybody. Reading the session from
    # the ledger would cost more than the request that the limit saves.
    lambda endpoints: endpoints.events.event,
    Access.PUBLIC,
    {200: EventView},
    (404, 429, 503),
)
PLACE_HOLD: Final = Route(
    "POST",
    "/v1/events/{event_id}/holds",
    "place_hold",
    "Hold seats, all or none: the named ones, or the best that fit",
    lambda endpoints: endpoints.holds.hold,
    Access.PASS,
    {201: HoldView},
    (401, 403, 404, 409, 410, 413, 422, 429, 503),
    body=HoldBody,
    more={"links": "booking"},
)
GET_SEATS: Final = Route(
    "GET",
    "/v1/events/{event_id}/seats.bin",
    "get_seats",
    "The states of all seats, two bits each (FSS1)",
    lambda endpoints: endpoints.seat_map.seats_bin,
    Access.PUBLIC,
    {200: "application/octet-stream", 304: None},
    (404, 429),
)
POLL_SEATS: Final = Route(
    "GET",
    "/v1/events/{event_id}/seats/poll",
    "poll_seats",
    "The changes since a position, for clients without a stream",
    lambda endpoints: endpoints.seat_map.poll,
    Access.PUBLIC,
    {200: "text/event-stream"},
    (404, 422, 429),
    takes_query=True,
)
STREAM_SEATS: Final = Route(
    "GET",
    "/v1/events/{event_id}/seats/stream",
    "stream_seats",
    "The changes, live (server-sent events)",
    lambda endpoints: endpoints.seat_map.stream,
    Access.PUBLIC,
    {200: "text/event-stream"},
    (404, 422, 429, 503),
    takes_query=True,
)
GET_BOOKING: Final = Route(
    "GET",
    "/v1/bookings/{booking_id}",
    "get_booking",
    "How a booking stands",
    lambda endpoints: endpoints.bookings.get_booking,
    Access.OWNER,
    {200: BookingView},
    (*ANY, 404),
)
PAY: Final = Route(
    "POST",
    "/v1/bookings/{booking_id}/pay",
    "pay",
    "Pay a held booking",
    lambda endpoints: endpoints.bookings.pay,
    Access.OWNER,
    {200: BookingView, 202: BookingView},
    (*ANY, 402, 404, 409, 410, 413, 415, 502),
    body=PayBody,
    more={"shop": True},
)
EXTEND_HOLD: Final = Route(
    "PATCH",
    "/v1/bookings/{booking_id}/hold",
    "extend_hold",
    "Extend a hold, within the event's limit, or choose other seats for it",
    lambda endpoints: endpoints.bookings.extend_hold,
    Access.OWNER,
    {200: BookingView},
    (*ANY, 404, 409, 410, 413, 415),
    body=ExtendBody,
    more={"shop": True},
)
RELEASE_HOLD: Final = Route(
    "DELETE",
    "/v1/bookings/{booking_id}/hold",
    "release_hold",
    "Release the held seats",
    lambda endpoints: endpoints.bookings.release_hold,
    Access.OWNER,
    {200: BookingView},
    (*ANY, 404, 409, 413, 415),
    more={"shop": True},
)
OF_EVENTS: Final = (GET_EVENT, PLACE_HOLD, GET_SEATS, POLL_SEATS, STREAM_SEATS)
OF_BOOKINGS: Final = (GET_BOOKING, PAY, EXTEND_HOLD, RELEASE_HOLD)
