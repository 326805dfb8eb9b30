"""A booking at either door: look at it, pay, hold it longer, give it back. An `Ask` in, an `Answer` out, no framework.

What is allowed is decided by `boxoffice.services.purchases`, for these doors and for the pages alike.

Each call does what the framework's guards do for other routes, by the same functions and in the same order: the limit
per address, who asks and by what right (`access.identified`), the key, the size, the body. Whose booking it is is
decided when it is loaded; somebody else's does not exist.
"""

import functools
import hashlib
import logging
from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import msgspec

from frontrow.boxoffice.checkout.checkout import CheckoutState
from frontrow.boxoffice.model.bookings import Booking
from frontrow.boxoffice.model.person_names import MAX_NAME_CHARS
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError
from frontrow.core.guest_identity import is_reserved
from frontrow.web.api.access import Caller, identified, need_visit, own_booking
from frontrow.web.api.booking_bodies import BookingView, booking_view, declined, looked_at
from frontrow.web.endpoints.messages import (
    JSON,
    Answer,
    Ask,
    AskHeaders,
    encode_json,
    idempotency_key,
    json_answer,
    problem_answer,
)
from frontrow.web.endpoints.room_bodies import check_size, decode_body
from frontrow.web.endpoints.room_context import Result
from frontrow.web.platform.platform import Platform

OWN_ONLY: Final = b"cache-control: private, no-cache\r\n"
Fence = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Email = Annotated[
    str, msgspec.Meta(max_length=254, pattern=r"^[^@\s]{1,64}@[^@\s]{1,189}$", examples=["fan@example.org"])
]
Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME_CHARS, examples=["Ada Lovelace"])]
Call = Callable[[Platform, Caller, str, Ask], Awaitable[Answer]]
Endpoint = Callable[[Platform, str, Ask], Result]

log = logging.getLogger("frontrow.web")


class PayBody(msgspec.Struct, forbid_unknown_fields=True):
    """How to pay. Without a `method` the payment is only opened, for the provider's own form."""

    method: Annotated[str, msgspec.Meta(max_length=200, examples=["pm_card_visa"])] = ""
    email: Email | None = None
    name: Name = ""
    locale: Annotated[str, msgspec.Meta(max_length=10, pattern=r"^[A-Za-z-]{2,10}$")] = "en"
    fence: Fence | None = None


class ExtendBody(msgspec.Struct, forbid_unknown_fields=True):
    """Asks for a later end. `fence`, if given, must be the hold's."""

    extend: Annotated[bool, msgspec.Meta(description="must be true", examples=[True])]
    fence: Fence | None = None


_decode_pay = msgspec.json.Decoder(PayBody).decode
_decode_extend = msgspec.json.Decoder(ExtendBody).decode


def ip_of(platform: Platform, ask: Ask) -> str:
    """The caller's address as limits count it."""
    limiter = platform.limiter
    if limiter.trusts_nobody:
        return limiter.ip_of(ask.peer)
    return limiter.ip_of(ask.peer, [value.decode("latin-1") for value in ask.all(b"x-forwarded-for")])


def at_both_doors(method: str) -> Callable[[Call], Endpoint]:
    """Make an endpoint of a call: it is checked as every request is, and whatever it raises becomes its answer."""

    def made(call: Call) -> Endpoint:
        async def answered(platform: Platform, booking_id: str, ask: Ask) -> Answer:
            try:
                caller = await identified(platform, method, AskHeaders(ask))
                if method == "POST":
                    idempotency_key(ask)
                check_size(ask)
                return await call(platform, caller, booking_id, ask)
            except FrontrowError as error:
                return problem_answer(error)
            except Exception:
                log.exception("a handler failed")
                return problem_answer(FrontrowError("this is our fault; it has been logged"))

        @functools.wraps(call)
        def endpoint(platform: Platform, booking_id: str, ask: Ask) -> Result:
            try:
                platform.limiter.count_ip(ip_of(platform, ask))
            except FrontrowError as error:
                return problem_answer(error)
            return answered(platform, booking_id, ask)

        return endpoint

    return made


@at_both_doors("GET")
async def get_booking(platform: Platform, caller: Caller, booking_id: str, ask: Ask) -> Answer:
    """How it stands; 304 for who knows it already."""
    view = await looked_at(platform, await own_booking(platform, caller, booking_id))
    body = encode_json(view)
    tag = b'"' + hashlib.blake2s(body, digest_size=9).hexdigest().encode() + b'"'
    head = OWN_ONLY + b"etag: " + tag + b"\r\n"
    given = ask.header(b"if-none-match")
    if given is not None and tag in given:
        return Answer(304, head)
    return Answer(200, JSON + head, body)


@at_both_doors("POST")
async def pay(platform: Platform, caller: Caller, booking_id: str, ask: Ask) -> Answer:
    """From a hold to a sold booking; 202 while the provider is away and the seats are kept."""
    body = decode_body(_decode_pay, ask.body)
    booking = await own_booking(platform, caller, booking_id)
    visit = need_visit(platform, caller, booking, body.fence)
    if body.email or body.name or not is_reserved(booking.fan):
        await platform.people.fans.keep_buyer(booking, name=body.name, email=body.email or "", locale=body.locale)
    if body.method or booking.amount_minor == 0:
        outcome = await platform.purchases.pay(booking, visit, body.method)
    else:
        outcome = await platform.purchases.begin(booking, visit)
    refusal = declined(outcome, tried=bool(body.method))
    if refusal is not None:
        raise refusal
    view = await booking_view(platform, outcome.booking, outcome)
    if outcome.state is not CheckoutState.RETRYING:
        return json_answer(200, view)
    wait_s = max(1, -(-(outcome.retry_at_us - platform.clock()) // US_PER_S)) if outcome.retry_at_us else 1
    return json_answer(202, view, b"retry-after: %d\r\n" % wait_s)


@at_both_doors("PATCH")
async def extend_hold(platform: Platform, caller: Caller, booking_id: str, ask: Ask) -> Answer:
    """A later end, within the event's bound."""
    body = decode_body(_decode_extend, ask.body)
    booking = await own_booking(platform, caller, booking_id)
    visit = need_visit(platform, caller, booking, body.fence)
    if body.extend:
        booking = await platform.purchases.extend(booking, visit)
    return await _shown(platform, booking)


@at_both_doors("DELETE")
async def release_hold(platform: Platform, caller: Caller, booking_id: str, ask: Ask) -> Answer:
    """The held seats go back."""
    booking = await own_booking(platform, caller, booking_id)
    visit = need_visit(platform, caller, booking)
    return await _shown(platform, await platform.purchases.release(booking, visit))


async def _shown(platform: Platform, booking: Booking) -> Answer:
    view: BookingView = await booking_view(platform, booking)
    return json_answer(200, view)
