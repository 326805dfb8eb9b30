"""The calls about one booking: read it, pay it, extend its hold, release it.

Each method turns an `EndpointRequest` into an `EndpointResponse` and knows no framework. The rules are in
`boxoffice.checkout.purchases`, for the API and for the pages.

Each call makes the same checks as the framework's guards, in the same order: the limit per visit or address, who the
caller is (`Callers.identify`), the idempotency key, the size, the body. Loading the booking checks its owner; a booking
of somebody else is not found.
"""

import functools
import hashlib
import logging
from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import msgspec

from frontrow.boxoffice.checkout.checkout import CheckoutResult, CheckoutState
from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.holds.model.requested_seats import MAX_SEATS_PER_REQUEST
from frontrow.boxoffice.people.model.person_names import MAX_NAME_CHARS
from frontrow.boxoffice.people.people import People
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.shared.guest_identity import is_reserved
from frontrow.web.endpoints.booking_views import BookingViews
from frontrow.web.endpoints.callers import Callers, OwnBookings
from frontrow.web.http.access import Caller
from frontrow.web.http.bodies.bookings import BookingView, declined
from frontrow.web.http.bodies.holds import BestWish, SeatName
from frontrow.web.http.messages import (
    JSON,
    EndpointRequest,
    EndpointResponse,
    RequestHeaders,
    Result,
    encode_json,
    idempotency_key,
    json_answer,
    problem_answer,
)
from frontrow.web.http.request_bodies import check_size, decode_body

OWN_ONLY: Final = b"cache-control: private, no-cache\r\n"
Fence = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Email = Annotated[
    str, msgspec.Meta(max_length=254, pattern=r"^[^@\s]{1,64}@[^@\s]{1,189}$", examples=["fan@example.org"])
]
Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME_CHARS, examples=["Ada Lovelace"])]
Call = Callable[["BookingEndpoints", Caller, str, EndpointRequest], Awaitable[EndpointResponse]]
Endpoint = Callable[["BookingEndpoints", str, EndpointRequest], Result]

log = logging.getLogger("frontrow.web")


class PayBody(msgspec.Struct, forbid_unknown_fields=True):
    """How to pay. Without a `method` the payment is only opened, for the provider's own form."""

    method: Annotated[str, msgspec.Meta(max_length=200, examples=["pm_card_visa"])] = ""
    email: Email | None = None
    name: Name = ""
    locale: Annotated[str, msgspec.Meta(max_length=10, pattern=r"^[A-Za-z-]{2,10}$")] = "en"
    fence: Fence | None = None


class ExtendBody(msgspec.Struct, forbid_unknown_fields=True):
    """Asks for a later end, or for other seats instead of those held. `fence`, if given, must be the hold's."""

    extend: Annotated[bool, msgspec.Meta(description="true for a later end", examples=[True])] | None = None
    fence: Fence | None = None
    seats: Annotated[list[SeatName], msgspec.Meta(max_length=MAX_SEATS_PER_REQUEST)] = []
    best: BestWish | None = None


_decode_pay = msgspec.json.Decoder(PayBody).decode
_decode_extend = msgspec.json.Decoder(ExtendBody).decode


def checked(method: str) -> Callable[[Call], Endpoint]:
    """Make an endpoint of a call: check the request as every other, and turn what the call raises into a response."""

    def decorate(call: Call) -> Endpoint:
        async def answered(self: "BookingEndpoints", booking_id: str, request: EndpointRequest) -> EndpointResponse:
            try:
                caller = await self.callers.identify(method, RequestHeaders(request))
                if method == "POST":
                    idempotency_key(request)
                check_size(request)
                return await call(self, caller, booking_id, request)
            except FrontrowError as error:
                return problem_answer(error)
            except Exception:
                log.exception("a handler failed")
                return problem_answer(FrontrowError("this is our fault; it has been logged"))

        @functools.wraps(call)
        def endpoint(self: "BookingEndpoints", booking_id: str, request: EndpointRequest) -> Result:
            try:
                self.count(request)
            except FrontrowError as error:
                return problem_answer(error)
            return answered(self, booking_id, request)

        return endpoint

    return decorate


class BookingEndpoints:
    """The calls about one booking. `views` makes their bodies, `count` counts a request by its visit or its address."""

    def __init__(
        self,
        callers: Callers,
        count: Callable[[EndpointRequest], None],
        own: OwnBookings,
        views: BookingViews,
        purchases: Purchases,
        people: People,
        clock: Clock,
    ) -> None:
        self.callers, self.count = callers, count
        self._own, self._views, self._purchases, self._people, self._clock = own, views, purchases, people, clock

    @checked("GET")
    async def get_booking(self, caller: Caller, booking_id: str, request: EndpointRequest) -> EndpointResponse:
        """GET booking: its state, or 304 if the client has it."""
        view = await self._views.current(await self._own.find(caller, booking_id))
        body = encode_json(view)
        tag = b'"' + hashlib.blake2s(body, digest_size=9).hexdigest().encode() + b'"'
        head = OWN_ONLY + b"etag: " + tag + b"\r\n"
        given = request.header(b"if-none-match")
        if given is not None and tag in given:
            return EndpointResponse(304, head)
        return EndpointResponse(200, JSON + head, body)

    @checked("POST")
    async def pay(self, caller: Caller, booking_id: str, request: EndpointRequest) -> EndpointResponse:
        """POST pay: turn a hold into a sold booking; 202 while the provider is away and the seats are kept."""
        body = decode_body(_decode_pay, request.body)
        booking = self._own.just_held(caller, booking_id, body.method)
        if booking is None:
            booking = await self._own.find(caller, booking_id)
        if booking.state is BookingState.CONFIRMED and body.fence in (None, booking.fence):
            # Asked again, perhaps because the answer got lost. The visit has ended with the purchase: it needs no pass.
            paid = CheckoutResult(CheckoutState.CONFIRMED, booking)
            return json_answer(200, await self._views.view(booking, paid))
        visit = self._own.need_visit(caller, booking, body.fence)
        if body.email or body.name or not is_reserved(booking.fan):
            await self._people.fans.keep_buyer(booking, name=body.name, email=body.email or "", locale=body.locale)
        if body.method or booking.amount_minor == 0:
            outcome = await self._purchases.pay(booking, visit, body.method)
        else:
            outcome = await self._purchases.begin(booking, visit)
        refusal = declined(outcome, tried=bool(body.method))
        if refusal is not None:
            raise refusal
        view = await self._views.view(outcome.booking, outcome)
        if outcome.state is not CheckoutState.RETRYING:
            return json_answer(200, view)
        wait_s = max(1, -(-(outcome.retry_at_us - self._clock()) // US_PER_S)) if outcome.retry_at_us else 1
        return json_answer(202, view, b"retry-after: %d\r\n" % wait_s)

    @checked("PATCH")
    async def extend_hold(self, caller: Caller, booking_id: str, request: EndpointRequest) -> EndpointResponse:
        """PATCH hold: extend it, within the event's bound, or choose other seats."""
        body = decode_body(_decode_extend, request.body)
        booking = await self._own.find(caller, booking_id)
        if sum((body.extend is not None, bool(body.seats), body.best is not None)) != 1:
            raise InvalidInput("ask for one change: `extend`, `seats` or `best`", param="extend")
        visit = self._own.need_visit(caller, booking, body.fence)
        if body.extend:
            booking = await self._purchases.extend(booking, visit)
        elif body.extend is None:
            await self._purchases.change(booking, visit, body.seats, body.best.wish() if body.best else None)
            booking = await self._own.find(caller, booking_id)
        return await self._shown(booking)

    @checked("DELETE")
    async def release_hold(self, caller: Caller, booking_id: str, request: EndpointRequest) -> EndpointResponse:
        """DELETE hold: release its seats."""
        booking = await self._own.find(caller, booking_id)
        visit = self._own.need_visit(caller, booking)
        return await self._shown(await self._purchases.release(booking, visit))

    async def _shown(self, booking: Booking) -> EndpointResponse:
        view: BookingView = await self._views.view(booking)
        return json_answer(200, view)
