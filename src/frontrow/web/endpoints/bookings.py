"""The calls about one booking, for both doors: read it, pay it, extend its hold, release it.

Each function turns an `EndpointRequest` into an `EndpointResponse` and knows no framework. The rules live in
`boxoffice.checkout.purchases`, for both doors and for the pages.

Each call makes the same checks as the framework's guards, in the same order: the limit per address, who the caller is
(`access.identified`), the idempotency key, the size, the body. Loading the booking checks its owner; a booking of
somebody else is not found.
"""

import functools
import hashlib
import logging
from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import msgspec

from frontrow.boxoffice.checkout.checkout import CheckoutResult, CheckoutState
from frontrow.boxoffice.checkout.priority import NoPriority, check_priority
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.holds.model.requested_seats import MAX_SEATS_PER_REQUEST
from frontrow.boxoffice.people.model.person_names import MAX_NAME_CHARS
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.shared.guest_identity import is_reserved
from frontrow.web.api.access import Caller, identified, need_visit, own_booking
from frontrow.web.api.booking_bodies import BookingView, booking_view, declined, read_booking_view
from frontrow.web.endpoints.messages import (
    JSON,
    EndpointRequest,
    EndpointResponse,
    RequestHeaders,
    encode_json,
    idempotency_key,
    json_answer,
    problem_answer,
)
from frontrow.web.endpoints.room_bodies import check_size, decode_body
from frontrow.web.endpoints.room_context import Result
from frontrow.web.endpoints.seats import BestWish, SeatName
from frontrow.web.platform.platform import Platform

OWN_ONLY: Final = b"cache-control: private, no-cache\r\n"
Fence = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Email = Annotated[
    str, msgspec.Meta(max_length=254, pattern=r"^[^@\s]{1,64}@[^@\s]{1,189}$", examples=["fan@example.org"])
]
Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME_CHARS, examples=["Ada Lovelace"])]
Call = Callable[[Platform, Caller, str, EndpointRequest], Awaitable[EndpointResponse]]
Endpoint = Callable[[Platform, str, EndpointRequest], Result]

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


def ip_of(platform: Platform, request: EndpointRequest) -> str:
    """The caller's address as limits count it."""
    limiter = platform.server.limiter
    if limiter.trusts_nobody:
        return limiter.ip_of(request.peer)
    return limiter.ip_of(request.peer, [value.decode("latin-1") for value in request.all(b"x-forwarded-for")])


def at_both_doors(method: str) -> Callable[[Call], Endpoint]:
    """Make an endpoint of a call: check the request as every other, and turn what the call raises into a response."""

    def decorate(call: Call) -> Endpoint:
        async def answered(platform: Platform, booking_id: str, request: EndpointRequest) -> EndpointResponse:
            try:
                caller = await identified(platform, method, RequestHeaders(request))
                if method == "POST":
                    idempotency_key(request)
                check_size(request)
                return await call(platform, caller, booking_id, request)
            except FrontrowError as error:
                return problem_answer(error)
            except Exception:
                log.exception("a handler failed")
                return problem_answer(FrontrowError("this is our fault; it has been logged"))

        @functools.wraps(call)
        def endpoint(platform: Platform, booking_id: str, request: EndpointRequest) -> Result:
            try:
                platform.server.limiter.count_ip(ip_of(platform, request))
            except FrontrowError as error:
                return problem_answer(error)
            return answered(platform, booking_id, request)

        return endpoint

    return decorate


@at_both_doors("GET")
async def get_booking(
    platform: Platform, caller: Caller, booking_id: str, request: EndpointRequest
) -> EndpointResponse:
    """GET booking: its state, or 304 if the client has it."""
    view = await read_booking_view(platform, await own_booking(platform, caller, booking_id))
    body = encode_json(view)
    tag = b'"' + hashlib.blake2s(body, digest_size=9).hexdigest().encode() + b'"'
    head = OWN_ONLY + b"etag: " + tag + b"\r\n"
    given = request.header(b"if-none-match")
    if given is not None and tag in given:
        return EndpointResponse(304, head)
    return EndpointResponse(200, JSON + head, body)


@at_both_doors("POST")
async def pay(platform: Platform, caller: Caller, booking_id: str, request: EndpointRequest) -> EndpointResponse:
    """POST pay: turn a hold into a sold booking; 202 while the provider is away and the seats are kept."""
    body = decode_body(_decode_pay, request.body)
    booking = await own_booking(platform, caller, booking_id)
    if booking.state is BookingState.CONFIRMED and body.fence in (None, booking.fence):
        # Asked again, perhaps because the answer got lost. The visit has ended with the purchase, so no pass is needed.
        paid = CheckoutResult(CheckoutState.CONFIRMED, booking)
        return json_answer(200, await booking_view(platform, booking, paid))
    visit = need_visit(platform, caller, booking, body.fence)
    if body.email or body.name or not is_reserved(booking.fan):
        await platform.people.fans.keep_buyer(booking, name=body.name, email=body.email or "", locale=body.locale)
    if body.method or booking.amount_minor == 0:
        outcome = await platform.box_office.purchases.pay(booking, visit, body.method)
    else:
        outcome = await platform.box_office.purchases.begin(booking, visit)
    refusal = declined(outcome, tried=bool(body.method))
    if refusal is not None:
        raise refusal
    view = await booking_view(platform, outcome.booking, outcome)
    if outcome.state is not CheckoutState.RETRYING:
        return json_answer(200, view)
    wait_s = max(1, -(-(outcome.retry_at_us - platform.clock()) // US_PER_S)) if outcome.retry_at_us else 1
    return json_answer(202, view, b"retry-after: %d\r\n" % wait_s)


@at_both_doors("PATCH")
async def extend_hold(
    platform: Platform, caller: Caller, booking_id: str, request: EndpointRequest
) -> EndpointResponse:
    """PATCH hold: extend it, within the event's bound, or choose other seats."""
    body = decode_body(_decode_extend, request.body)
    booking = await own_booking(platform, caller, booking_id)
    if sum((body.extend is not None, bool(body.seats), body.best is not None)) != 1:
        raise InvalidInput("ask for one change: `extend`, `seats` or `best`", param="extend")
    visit = need_visit(platform, caller, booking, body.fence)
    purchases = platform.box_office.purchases
    if body.extend:
        booking = await purchases.extend(booking, visit)
    elif body.extend is None:
        await purchases.change(booking, visit, body.seats, body.best.wish() if body.best else None)
        booking = await own_booking(platform, caller, booking_id)
    return await _shown(platform, booking)


@at_both_doors("DELETE")
async def release_hold(
    platform: Platform, caller: Caller, booking_id: str, request: EndpointRequest
) -> EndpointResponse:
    """DELETE hold: release its seats."""
    booking = await own_booking(platform, caller, booking_id)
    visit = need_visit(platform, caller, booking)
    return await _shown(platform, await platform.box_office.purchases.release(booking, visit))


async def _shown(platform: Platform, booking: Booking) -> EndpointResponse:
    view: BookingView = await booking_view(platform, booking)
    return json_answer(200, view)


async def make_priority_pass(platform: Platform, booking: Booking) -> tuple[str, int]:
    """The one pass of a booking that gives priority (B8), and when it ends. Asked for again it is the same."""
    now_us = platform.clock()
    check_priority(booking, await platform.ledger.payments.payments_of(booking.id), now_us)
    first_us = await platform.ledger.messages.first_seen("priority", booking.id, now_us)
    text, expires_s = platform.room.passes.beside_the_line(booking.event_id, booking.fan, booking.id, first_us)
    if platform.clock() >= expires_s * US_PER_S:
        raise NoPriority("the pass was fetched and has run out; join the waiting room", booking=booking.id)
    return text, expires_s
