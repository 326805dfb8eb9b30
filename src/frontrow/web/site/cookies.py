"""The small things a browser keeps for the pages: the bookings it made, and what was filled in while waiting.

Booking tokens live in a cookie that scripts cannot read. What was filled in (name, e-mail) is only there to be
filled in again; card numbers are never kept.
"""

import base64
from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.datastructures import Cookie

from frontrow.boxoffice.checkout.purchases import held_now, kept_until_s
from frontrow.boxoffice.model.bookings import Booking
from frontrow.boxoffice.model.people import SubjectKind
from frontrow.core.cookies import cookie_line, cookie_names, is_https
from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.protect.guard import PASS_COOKIES
from frontrow.web.api.access import MAX_BOOKING_TOKENS, Caller, booking_token, presented
from frontrow.web.api.sign_in_bodies import gone_cookie
from frontrow.web.platform.platform import Platform
from frontrow.web.site.render import LANGUAGE_COOKIES
from frontrow.web.site.routes import BOOKINGS_COOKIES, LINKS_COOKIES, MAX_LINKS, kept_bookings, kept_links, kept_texts

READY_COOKIES: Final = cookie_names("ready")
YEAR_S: Final = 365 * 86_400
DAY_S: Final = 86_400
MAX_READY_CHARS: Final = 1_000
Asked = Request[Any, Any, Any]


class Ready(msgspec.Struct, frozen=True):
    """What somebody filled in before the clock started."""

    name: str = ""
    email: str = ""


def cookie(platform: Platform, names: tuple[str, str], value: str, life_s: int) -> str:
    """A cookie for the server's eyes only."""
    return cookie_line(names, value, life_s, secure=is_https(platform.settings.public_url))


async def remember_booking(platform: Platform, request: Asked, booking: Booking) -> dict[str, str]:
    """The header that adds a booking to those of this browser; nothing if it is there already.

    A booking that the fan's session opens is not added: it must be closed when the session ends.
    """
    token = booking_token(platform.secrets, booking.id)
    known, caller = kept_bookings(platform, request), request.state.caller
    if token in known:
        return {}
    if caller.role == SubjectKind.FAN and await platform.people.fans.owns_booking(caller.id, booking):
        return {}
    kept = "~".join([token, *known][:MAX_BOOKING_TOKENS])
    return {"set-cookie": cookie(platform, BOOKINGS_COOKIES, kept, YEAR_S)}


async def keep_visit(platform: Platform, request: Asked, booking: Booking, response: Response[bytes]) -> None:
    """A live hold keeps the visit it belongs to: a pass that would run out before is replaced in the browser."""
    if not held_now(booking, platform.clock()):
        return
    for text in presented(request.headers, secure=is_https(platform.settings.public_url)).passes:
        try:
            if platform.room.service.read_pass(text, booking.event_id).id != booking.session:
                continue
            longer = await platform.room.service.keep_pass(text, kept_until_s(booking), booking.id)
        except FrontrowError:  # not ours, ended, or the store is away: the page says what that means
            continue
        if longer is not None:
            secure = is_https(platform.settings.public_url)
            name = PASS_COOKIES[0 if secure else 1]
            response.set_cookie(Cookie(name, "/", longer.pass_jwt, DAY_S, httponly=True, samesite="lax", secure=secure))
        return


def forget_person(caller: Caller, response: Response[bytes]) -> None:
    """Take everything of the person who signs out from this browser: session, bookings, links, details, own pass.

    A place in a line stays: it may have been taken before signing in.
    """
    response.set_cookie(gone_cookie())
    visit = caller.shop_pass or caller.past_pass
    own_pass = PASS_COOKIES if visit is not None and visit.fan == caller.id else ()
    for name in (*BOOKINGS_COOKIES, *LINKS_COOKIES, *READY_COOKIES, *own_pass):
        secure = name.startswith("__Host-")
        response.set_cookie(Cookie(name, "/", "", 0, httponly=True, samesite="lax", secure=secure))


def remember_link(platform: Platform, request: Asked, text: str) -> dict[str, str]:
    """The header that adds a message's link to those this browser has opened."""
    known = [one for one in kept_links(platform, request) if one != text]
    kept = "~".join([text, *known][:MAX_LINKS])
    return {"set-cookie": cookie(platform, LINKS_COOKIES, kept, YEAR_S)}


def pass_cookie(platform: Platform, text: str) -> str:
    return cookie(platform, PASS_COOKIES, text, DAY_S)


def language_cookie(platform: Platform, language: str) -> str:
    return cookie(platform, LANGUAGE_COOKIES, language, YEAR_S)


def ready_of(platform: Platform, request: Asked) -> Ready:
    """What this browser filled in earlier."""
    text = next(iter(kept_texts(platform, request, READY_COOKIES)), "")[:MAX_READY_CHARS]
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=Ready)
    except (ValueError, msgspec.MsgspecError):
        return Ready()


def ready_cookie(platform: Platform, ready: Ready) -> str:
    text = base64.urlsafe_b64encode(msgspec.json.encode(ready)).decode()
    return cookie(platform, READY_COOKIES, text, DAY_S)
