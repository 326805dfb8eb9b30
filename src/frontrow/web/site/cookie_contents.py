"""What a browser keeps for the pages: its bookings, opened links, language, and the details filled in while waiting.

Names and how a cookie is set are in `http.cookies`; this module reads and writes their contents. Scripts cannot
read these cookies. Name and email address are kept only to fill the form in again; card numbers are never kept.
"""

import base64
from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.datastructures import Cookie

from frontrow.boxoffice.checkout.purchases import keeps_visit, kept_until_s
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.people.model.people import SubjectKind
from frontrow.core.errors import FrontrowError
from frontrow.shared.cookie_headers import cookie_line, is_https
from frontrow.waitingroom.protect.guard import PASS_COOKIES
from frontrow.web.http.access import MAX_BOOKING_TOKENS, Caller, booking_token, presented
from frontrow.web.http.cookies import (
    BOOKINGS_COOKIES,
    LANGUAGE_COOKIES,
    LINKS_COOKIES,
    READY_COOKIES,
    TOLD_COOKIES,
    removed_cookie,
)
from frontrow.web.platform.platform import Platform
from frontrow.web.site.routes import MAX_LINKS, kept_bookings, kept_links, kept_texts

YEAR_S: Final = 365 * 86_400
DAY_S: Final = 86_400
MAX_READY_CHARS: Final = 1_000
Asked = Request[Any, Any, Any]


class Ready(msgspec.Struct, frozen=True):
    """The details filled in while waiting."""

    name: str = ""
    email: str = ""


def cookie(platform: Platform, names: tuple[str, str], value: str, life_s: int) -> str:
    """A `Set-Cookie` value that scripts cannot read."""
    return cookie_line(names, value, life_s, secure=is_https(platform.settings.public_url))


async def remember_booking(platform: Platform, request: Asked, booking: Booking) -> dict[str, str]:
    """The header that adds a booking to those of this browser; empty if it is already there.

    A booking that the fan's session gives access to is not added, so that signing out closes it.
    """
    token = booking_token(platform.secrets, booking.id)
    tokens, caller = kept_bookings(platform, request), request.state.caller
    if token in tokens:
        return {}
    if caller.role == SubjectKind.FAN and await platform.people.fans.owns_booking(caller.id, booking):
        return {}
    kept = "~".join([token, *tokens][:MAX_BOOKING_TOKENS])
    return {"set-cookie": cookie(platform, BOOKINGS_COOKIES, kept, YEAR_S)}


async def keep_visit(platform: Platform, request: Asked, booking: Booking, response: Response[bytes]) -> None:
    """Extend the visit of a live hold: a pass that would expire before the hold is replaced."""
    if not keeps_visit(booking, platform.clock()):
        return
    for text in presented(request.headers, secure=is_https(platform.settings.public_url)).passes:
        try:
            if platform.room.service.visits.read_pass(text, booking.event_id).id != booking.visit_id:
                continue
            longer = await platform.room.service.visits.keep_pass(
                text, kept_until_s(booking.hold_expires_at_us), booking.id
            )
        except FrontrowError:  # not ours, ended, or the store is away: the page says what that means
            continue
        if longer is not None:
            secure = is_https(platform.settings.public_url)
            name = PASS_COOKIES[0 if secure else 1]
            response.set_cookie(Cookie(name, "/", longer.pass_jwt, DAY_S, httponly=True, samesite="lax", secure=secure))
        return


def forget_person(caller: Caller, response: Response[bytes]) -> None:
    """Remove everything of a person who signs out from this browser: session, bookings, links, details, own pass.

    A place in a waiting room stays: it may be older than the sign-in.
    """
    response.set_cookie(removed_cookie())
    visit = caller.shop_pass or caller.past_pass
    own_pass = PASS_COOKIES if visit is not None and visit.fan == caller.id else ()
    for name in (*BOOKINGS_COOKIES, *LINKS_COOKIES, *READY_COOKIES, *TOLD_COOKIES, *own_pass):
        secure = name.startswith("__Host-")
        response.set_cookie(Cookie(name, "/", "", 0, httponly=True, samesite="lax", secure=secure))


def remember_link(platform: Platform, request: Asked, text: str) -> dict[str, str]:
    """The header that adds a message's link to those this browser has opened."""
    others = [one for one in kept_links(platform, request) if one != text]
    kept = "~".join([text, *others][:MAX_LINKS])
    return {"set-cookie": cookie(platform, LINKS_COOKIES, kept, YEAR_S)}


def pass_cookie(platform: Platform, text: str) -> str:
    return cookie(platform, PASS_COOKIES, text, DAY_S)


def language_cookie(platform: Platform, language: str) -> str:
    return cookie(platform, LANGUAGE_COOKIES, language, YEAR_S)


def ready_of(platform: Platform, request: Asked) -> Ready:
    """The details filled in earlier in this browser."""
    text = next(iter(kept_texts(platform, request, READY_COOKIES)), "")[:MAX_READY_CHARS]
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=Ready)
    except (ValueError, msgspec.MsgspecError):
        return Ready()


def ready_cookie(platform: Platform, ready: Ready) -> str:
    text = base64.urlsafe_b64encode(msgspec.json.encode(ready)).decode()
    return cookie(platform, READY_COOKIES, text, DAY_S)
