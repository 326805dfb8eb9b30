"""Who is asking, and whether they may: what a request proves (`Caller`) and what a route asks for (`Access`).

A request may carry several proofs at once: a pass (shop calls), a session, an API key, booking tokens. `caller_of`
reads them all; `check_access` compares them with the route's `opt["access"]`. Every route has one, or the app does not
start.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any, ClassVar, Final

import msgspec
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from frontrow.boxoffice.model.attempts import ShopPass
from frontrow.boxoffice.model.bookings import Booking, BookingNotFound
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import Forbidden, FrontrowError, Unauthorised
from frontrow.waitingroom.passes import MAX_PASS_CHARS
from frontrow.web.platform import Platform, Secrets

PASS_COOKIES: Final = ("__Host-frontrow-pass", "frontrow_pass")
SESSION_COOKIE: Final = "__Host-frontrow-session"
BOOKING_PREFIX: Final = "frb_"
MAX_BOOKING_TOKENS: Final = 20
MAC_BYTES: Final = 16
Connection = ASGIConnection[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Access:
    """What a route asks for. PASS: a pass for the event in the path. OWNER: of what the path names. FAN: a session."""

    kind: str
    permission: str = ""

    PUBLIC: ClassVar["Access"]
    PASS: ClassVar["Access"]
    OWNER: ClassVar["Access"]
    FAN: ClassVar["Access"]

    @staticmethod
    def staff(permission: str) -> "Access":
        """A member of the organiser's team, or an API key, with this permission."""
        return Access("staff", permission)


Access.PUBLIC, Access.PASS = Access("public"), Access("pass")
Access.OWNER, Access.FAN = Access("owner"), Access("fan")


class Caller(msgspec.Struct, frozen=True):
    """Everything a request proved about whoever sent it."""

    kind: str = "nobody"  # nobody, fan, staff or key
    id: str = ""
    organiser_id: str = ""
    role: str = ""
    permissions: frozenset[str] = frozenset()
    session_id: str = ""
    shop_pass: ShopPass | None = None
    bookings: frozenset[str] = frozenset()  # ids of bookings whose token was presented

    def owns(self, booking: Booking) -> bool:
        """Whether the booking is this caller's: by its token, by the session, or by the pass it was made with."""
        if booking.id in self.bookings:
            return True
        if self.kind == "fan" and self.id == booking.fan:
            return True
        visit = self.shop_pass
        return visit is not None and visit.event_id == booking.event_id and visit.fan == booking.fan

    @property
    def person(self) -> str:
        """Whose requests these are, for limits and idempotency; empty: only the address is known."""
        if self.id:
            return self.id
        if self.shop_pass is not None:
            return self.shop_pass.fan
        return min(self.bookings, default="")


def booking_token(secrets: Secrets, booking_id: str) -> str:
    """The capability of one booking: whoever shows it may see and change that booking."""
    mac = hmac.new(secrets.key("booking"), booking_id.encode(), hashlib.sha256).digest()[:MAC_BYTES]
    return f"{BOOKING_PREFIX}{booking_id.removeprefix('bkg_')}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def booking_of_token(secrets: Secrets, token: str) -> str | None:
    """The booking a genuine token stands for."""
    name, _, _ = token.removeprefix(BOOKING_PREFIX).partition(".")
    booking_id = f"bkg_{name}"
    genuine = booking_token(secrets, booking_id) if name.isascii() else ""
    return booking_id if hmac.compare_digest(genuine.encode(), token.encode("utf-8", "surrogatepass")) else None


def presented(headers: Any) -> tuple[list[str], list[str]]:
    """(bearer and header tokens, passes in cookies) that came with a request."""
    tokens = [value[7:].strip() for value in headers.getall("authorization", []) if value[:7].lower() == "bearer "]
    tokens += [value.strip() for value in headers.getall("frontrow-pass", [])]
    for value in headers.getall("frontrow-booking", []):
        tokens += [part.strip() for part in value.split(",")[:MAX_BOOKING_TOKENS]]
    cookies: list[str] = []
    for value in headers.getall("cookie", []):
        try:
            jar: SimpleCookie = SimpleCookie(value[:16_384])
        except CookieError:
            continue
        cookies += [jar[name].value for name in PASS_COOKIES if name in jar]
    return tokens, cookies


async def caller_of(platform: Platform, connection: Connection) -> Caller:
    """What the request proves. A bad pass is an error only where a pass is asked for."""
    tokens, cookies = presented(connection.headers)
    bookings = {
        found
        for token in tokens
        if token.startswith(BOOKING_PREFIX) and (found := booking_of_token(platform.secrets, token)) is not None
    }
    given = next((t for t in tokens if not t.startswith(("frb_", "frs_", "frk_"))), None) or next(iter(cookies), None)
    visit = read_pass(platform, given) if given else None
    return Caller(shop_pass=visit, bookings=frozenset(bookings))


def read_pass(platform: Platform, text: str) -> ShopPass | None:
    """The pass, if it is a good one; who needs one says why not by `need_pass`."""
    if len(text) > MAX_PASS_CHARS:
        return None
    try:
        visit = platform.room.check_pass(text)
    except FrontrowError:  # not ours, run out, or given back
        return None
    return ShopPass(visit.event, visit.person, visit.expires_s * US_PER_S, visit.id)


def need_pass(caller: Caller, event_id: str) -> ShopPass:
    """The caller's pass for this event, or 401 (B17)."""
    visit = caller.shop_pass
    if visit is None or visit.event_id != event_id:
        raise Unauthorised("a pass for this event is needed; join its waiting room", event=event_id)
    return visit


async def own_booking(platform: Platform, caller: Caller, booking_id: str) -> Booking:
    """The booking, if it is the caller's; somebody else's does not exist for them."""
    booking = await platform.ledger.booking(booking_id)
    if booking is None or not caller.owns(booking):
        raise BookingNotFound(booking_id)
    return booking


async def check_access(connection: Connection, handler: BaseRouteHandler) -> None:
    """The guard of every route: reads the caller, compares with the route, keeps the caller for the handler."""
    platform: Platform = connection.app.state.platform
    access: Access = handler.opt["access"]
    caller = await caller_of(platform, connection)
    connection.state.caller = caller
    if caller.person:
        platform.limiter.knock_person(caller.person)
    match access.kind:
        case "public" | "owner":  # owners are checked against the thing itself, which the handler loads
            return
        case "pass":
            need_pass(caller, connection.path_params["event_id"])
        case "fan":
            if caller.kind != "fan":
                raise Unauthorised("sign in first")
        case _:
            if caller.kind not in ("staff", "key"):
                raise Unauthorised("sign in as a member of the team, or send an API key")
            if access.permission not in caller.permissions:
                raise Forbidden(f"{access.permission} is needed here")
