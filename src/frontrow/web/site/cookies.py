"""The small things a browser keeps for the pages: the bookings it made, and what was filled in while waiting.

Booking tokens live in a cookie that scripts cannot read. What was filled in (name, e-mail) is only there to be
filled in again; card numbers are never kept.
"""

import base64
from typing import Any, Final

import msgspec
from litestar import Request

from frontrow.web.api.access import MAX_BOOKING_TOKENS, PASS_COOKIES, booking_token
from frontrow.web.platform import Platform
from frontrow.web.site.routes import BOOKINGS_COOKIE, LINKS_COOKIE, MAX_LINKS

READY_COOKIE: Final = "frontrow_ready"
YEAR_S: Final = 365 * 86_400
DAY_S: Final = 86_400
MAX_READY_CHARS: Final = 1_000
Asked = Request[Any, Any, Any]


class Ready(msgspec.Struct, frozen=True):
    """What somebody filled in before the clock started."""

    name: str = ""
    email: str = ""


def cookie(platform: Platform, name: str, value: str, life_s: int) -> str:
    """A cookie for the server's eyes only."""
    secure = "; Secure" if platform.settings.public_url.startswith("https://") else ""
    return f"{name}={value}; Path=/; Max-Age={life_s}; HttpOnly; SameSite=Lax{secure}"


def remember_booking(platform: Platform, request: Asked, booking_id: str) -> dict[str, str]:
    """The header that adds a booking to those of this browser; nothing if it is there already."""
    token = booking_token(platform.secrets, booking_id)
    known = [one for one in request.cookies.get(BOOKINGS_COOKIE, "").split("~") if one]
    if token in known:
        return {}
    kept = "~".join([token, *known][:MAX_BOOKING_TOKENS])
    return {"set-cookie": cookie(platform, BOOKINGS_COOKIE, kept, YEAR_S)}


def remember_link(platform: Platform, request: Asked, text: str) -> dict[str, str]:
    """The header that adds a message's link to those this browser has opened."""
    known = [one for one in request.cookies.get(LINKS_COOKIE, "").split("~") if one and one != text]
    kept = "~".join([text, *known][:MAX_LINKS])
    return {"set-cookie": cookie(platform, LINKS_COOKIE, kept, YEAR_S)}


def pass_cookie(platform: Platform, text: str) -> str:
    return cookie(platform, PASS_COOKIES[1], text, DAY_S)


def ready_of(request: Asked) -> Ready:
    """What this browser filled in earlier."""
    text = request.cookies.get(READY_COOKIE, "")[:MAX_READY_CHARS]
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=Ready)
    except (ValueError, msgspec.MsgspecError):
        return Ready()


def ready_cookie(platform: Platform, ready: Ready) -> str:
    text = base64.urlsafe_b64encode(msgspec.json.encode(ready)).decode()
    return cookie(platform, READY_COOKIE, text, DAY_S)
