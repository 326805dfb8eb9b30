"""Authentication and authorisation: what a request proves (`Caller`) and what a route requires (`Access`).

A request may carry several proofs at once: a pass (shop calls), a session (cookie or bearer), an API key, booking
tokens. `caller_of` reads them all; `check_access` compares them with the route's `opt["access"]`. Every route has one,
or the app does not start. What belongs to somebody else answers 404.
"""

import base64
import hashlib
import hmac
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from frontrow.boxoffice.events.model.events import Event, EventNotFound
from frontrow.boxoffice.holds.model.bookings import HOLD_STATES, Booking, BookingNotFound
from frontrow.boxoffice.holds.model.hold_values import ShopPass
from frontrow.boxoffice.messages.mail_links import LinkPurpose
from frontrow.boxoffice.people.model.people import (
    NotAllowed,
    SecondFactorNeeded,
    Session,
    SignInNeeded,
    Stage,
    SubjectKind,
)
from frontrow.boxoffice.people.model.roles import PERMISSIONS
from frontrow.boxoffice.people.sessions import KEY_PREFIX, SESSION_PREFIX
from frontrow.boxoffice.request_reads import request_reads
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import ConfigError, FrontrowError, Unauthorised
from frontrow.shared.cookies import is_https, names_to_read, read_cookie, read_cookies
from frontrow.waitingroom.credentials.passes import MAX_PASS_CHARS
from frontrow.waitingroom.protect.guard import PASS_COOKIES
from frontrow.web.endpoints.cookies import SESSION_COOKIE
from frontrow.web.platform.platform import Platform, Secrets
from frontrow.web.server.csrf import (
    JSON_ONLY,
    SAFE_METHODS,
    HeaderLines,
    check_media_type,
    check_same_site,
    check_token,
)

BOOKING_PREFIX: Final = "frb_"
MAX_BOOKING_TOKENS: Final = 20
MAC_BYTES: Final = 16
Connection = ASGIConnection[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Access:
    """What a route requires. PASS: a pass for the event in the path. OWNER: ownership of what the path names. FAN: the
    session of a fan or a guest. SESSION: any session, also one that waits for its second factor."""

    kind: str
    permission: str = ""

    PUBLIC: ClassVar["Access"]
    PASS: ClassVar["Access"]
    OWNER: ClassVar["Access"]
    FAN: ClassVar["Access"]
    SESSION: ClassVar["Access"]

    @staticmethod
    def staff(permission: str) -> "Access":
        """A member of the organiser's team, or an API key, with this permission."""
        if permission not in PERMISSIONS:
            raise ConfigError(f"{permission!r} is not a permission; they are listed in boxoffice/people/model/roles.py")
        return Access("staff", permission)


Access.PUBLIC, Access.PASS, Access.SESSION = Access("public"), Access("pass"), Access("session")
Access.OWNER, Access.FAN = Access("owner"), Access("fan")


class Caller(msgspec.Struct, frozen=True):
    """Everything a request proved about its sender."""

    kind: str = "nobody"  # nobody, fan, staff or key
    id: str = ""
    organiser_id: str = ""
    role: str = ""  # of staff; "fan" or "guest" of fans
    permissions: frozenset[str] = frozenset()
    session_id: str = ""
    shop_pass: ShopPass | None = None
    past_pass: ShopPass | None = None  # genuine but expired: valid only for the live hold it was used for
    bookings: frozenset[str] = frozenset()  # ids of bookings whose token was presented
    session: Session | None = None
    links: frozenset[tuple[str, str]] = frozenset()  # (purpose, subject) of opened mail links; pages only

    def owns(self, booking: Booking) -> bool:
        """Whether the booking is this caller's: by its token, by the session, or by the pass it was made with."""
        if booking.id in self.bookings:
            return True
        if self.kind == "fan" and self.id == booking.fan:
            return True
        visit, past = self.shop_pass, self.past_pass
        if visit is not None:
            return visit.event_id == booking.event_id and visit.fan == booking.fan
        return past is not None and past.id == booking.visit_id and booking.state in HOLD_STATES

    @property
    def person(self) -> str:
        """Who sends these requests, for limits and idempotency. Empty when only the address is known."""
        if self.id:
            return self.id
        if self.shop_pass is not None:
            return self.shop_pass.fan
        return min(self.bookings, default="")


class Presented(msgspec.Struct, frozen=True):
    """All proofs in a request, not yet checked."""

    tokens: tuple[str, ...] = ()  # bearer and header values
    passes: tuple[str, ...] = ()  # in cookies
    session_cookie: str = ""


def booking_token(secrets: Secrets, booking_id: str) -> str:
    """The token of one booking. Whoever presents it may see and change that booking."""
    mac = hmac.digest(secrets.key("booking"), booking_id.encode(), hashlib.sha256)[:MAC_BYTES]
    return f"{BOOKING_PREFIX}{booking_id.removeprefix('bkg_')}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def booking_of_token(secrets: Secrets, token: str) -> str | None:
    """The booking of a genuine token."""
    name, _, _ = token.removeprefix(BOOKING_PREFIX).partition(".")
    booking_id = f"bkg_{name}"
    genuine = booking_token(secrets, booking_id) if name.isascii() else ""
    return booking_id if hmac.compare_digest(genuine.encode(), token.encode("utf-8", "surrogatepass")) else None


def presented(headers: HeaderLines, *, secure: bool) -> Presented:
    """The proofs in a request. `secure`: the site uses https, so only cookies bound to the host count."""
    names = names_to_read(PASS_COOKIES, secure=secure)
    tokens = [value[7:].strip() for value in headers.getall("authorization", []) if value[:7].lower() == "bearer "]
    tokens += [value.strip() for value in headers.getall("frontrow-pass", [])]
    for value in headers.getall("frontrow-booking", []):
        tokens += [part.strip() for part in value.split(",")[:MAX_BOOKING_TOKENS]]
    passes: list[str] = []
    session = ""
    for value in headers.getall("cookie", []):
        passes += read_cookies(value, names)
        session = read_cookie(value, (SESSION_COOKIE,)) or session
    return Presented(tuple(tokens), tuple(passes), session)


async def caller_of(platform: Platform, method: str, headers: HeaderLines) -> Caller:
    """What the request proves. A bad proof is ignored here, not an error."""
    given = presented(headers, secure=is_https(platform.settings.public_url))
    bookings, passes = [], []
    for token in given.tokens:
        if token.startswith(BOOKING_PREFIX):
            found = booking_of_token(platform.secrets, token)
            if found is not None:
                bookings.append(found)
        elif token and not token.startswith((SESSION_PREFIX, KEY_PREFIX)):
            passes.append(token)
    text = next(iter((*passes, *given.passes)), None)
    visit = read_pass(platform, text) if text else None
    caller = await _identify(platform, method, headers, given)
    return with_pass(platform, caller, visit, bookings)


async def _identify(platform: Platform, method: str, headers: HeaderLines, given: Presented) -> Caller:
    """The session or API key: from the bearer header, else from the cookie (which needs its CSRF token)."""
    bearers = [token for token in given.tokens if token.startswith((SESSION_PREFIX, KEY_PREFIX))]
    if len(bearers) > 1:
        raise Unauthorised("send one session or one API key, not several")
    if bearers and bearers[0].startswith(KEY_PREFIX):
        key = await platform.people.sessions.find_key(bearers[0])
        if key is None:
            return Caller()
        return Caller("key", key.id, key.organiser_id, permissions=key.permissions(platform.clock()))
    secret = bearers[0] if bearers else given.session_cookie
    session = await platform.people.sessions.find(secret) if secret else None
    if session is None:
        return Caller()
    if not bearers:
        check_token(method, headers, secret)
    return caller_in(session)


def caller_in(session: Session) -> Caller:
    """The caller of a session. A member who has not given the second factor has the session but no rights."""
    if session.kind is not SubjectKind.STAFF:
        return Caller("fan", session.subject, role=session.kind.value, session_id=session.id, session=session)
    if session.stage is not Stage.FULL:
        return Caller(session_id=session.id, session=session)
    role = session.role.value if session.role is not None else ""
    return Caller(
        "staff", session.subject, session.organiser_id, role, session.permissions(), session.id, session=session
    )


def method_of(connection: Connection) -> str:
    return str(connection.scope.get("method", "GET"))


def client_ip(platform: Platform, connection: Connection) -> str:
    """The caller's address for limits. `X-Forwarded-For` is read only from trusted proxies."""
    peer = connection.scope.get("client")
    forwarded = connection.headers.getall("x-forwarded-for", [])
    return platform.server.limiter.ip_of(peer[0] if peer else "", forwarded)


def with_pass(platform: Platform, caller: Caller, visit: ShopPass | None, bookings: Collection[str]) -> Caller:
    """The caller with the pass and the booking tokens that came along."""
    ran_out = visit is not None and platform.clock() >= visit.expires_at_us
    good, past = (None, visit) if ran_out else (visit, None)
    return msgspec.structs.replace(caller, shop_pass=good, past_pass=past, bookings=frozenset(bookings))


def read_pass(platform: Platform, text: str) -> ShopPass | None:
    """The pass, if it is genuine and its visit has not ended. It may have expired: `with_pass` checks that. Handlers
    that need a pass use `need_pass` or `need_visit`, which say what is wrong."""
    if len(text) > MAX_PASS_CHARS:
        return None
    try:
        visit = platform.room.service.visits.read_pass(text)
    except FrontrowError:  # not ours, or its visit ended
        return None
    return ShopPass(visit.event, visit.person, visit.expires_s * US_PER_S, visit.id, bool(visit.place.epoch))


def need_pass(platform: Platform, caller: Caller, event_id: str) -> ShopPass:
    """The caller's pass for this event, or 401 (B17). Counts as a sign of life of the visitor."""
    visit = caller.shop_pass
    if visit is None or visit.event_id != event_id:
        raise Unauthorised("a pass for this event is needed; join its waiting room", event=event_id)
    platform.room.service.visits.hear(visit.id)
    return visit


def need_visit(platform: Platform, caller: Caller, booking: Booking, fence: int | None = None) -> ShopPass:
    """The caller's visit for acting on this booking, or 401 (`Purchases.need_visit`). Counts as a sign of life."""
    visit = platform.box_office.purchases.need_visit(booking, caller.shop_pass or caller.past_pass, fence)
    platform.room.service.visits.hear(visit.id)
    return visit


async def own_booking(platform: Platform, caller: Caller, booking_id: str) -> Booking:
    """The booking, if it is the caller's. Another person's booking answers 404."""
    booking = await platform.ledger.booking(booking_id)
    if booking is None or not await is_own(platform, caller, booking):
        raise BookingNotFound(booking_id)
    return booking


async def seen_booking(platform: Platform, caller: Caller, booking_id: str) -> Booking:
    """The booking, if the caller may look at it: as its owner, or by a link from a message about it."""
    purposes = (LinkPurpose.BOOKING.value, LinkPurpose.PRIORITY.value)
    if any((purpose, booking_id) in caller.links for purpose in purposes):
        booking = await platform.ledger.booking(booking_id)
        if booking is not None:
            return booking
    return await own_booking(platform, caller, booking_id)


async def is_own(platform: Platform, caller: Caller, booking: Booking) -> bool:
    """Whether the caller may change the booking, not only look at it."""
    if caller.owns(booking):
        return True
    return caller.kind == "fan" and await platform.people.fans.owns_booking(caller.id, booking)


async def own_event(platform: Platform, caller: Caller, event_id: str) -> Event:
    """The event, if it belongs to the caller's organiser. Any other event answers 404."""
    event = await platform.ledger.catalogue.event(event_id)
    if not caller.organiser_id or event.organiser_id != caller.organiser_id:
        raise EventNotFound(f"there is no event {event_id[:60]}", event=event_id[:60])
    return event


async def zone_of(platform: Platform, event: Event) -> str:
    """The time zone of the event's venue."""
    venue = await platform.ledger.catalogue.venue(event.venue_id)
    return (venue.time_zone if venue else "") or "UTC"


async def own_event_booking(
    platform: Platform, caller: Caller, event_id: str, booking_id: str
) -> tuple[Event, Booking]:
    """An event of the caller's organiser and one of its bookings; any other booking answers 404."""
    event = await own_event(platform, caller, event_id)
    booking = await platform.ledger.booking(booking_id)
    if booking is None or booking.event_id != event.id:
        raise BookingNotFound(booking_id[:60])
    return event, booking


async def identified(
    platform: Platform, method: str, headers: HeaderLines, accepts: tuple[str, ...] = JSON_ONLY
) -> Caller:
    """The caller, after the checks that every request must pass at either door: it comes from our own pages or a
    program, its body has the right media type, and the person is within the limit."""
    check_same_site(method, headers, platform.settings.public_url)
    check_media_type(method, headers, accepts)
    caller = await caller_of(platform, method, headers)
    if caller.person:
        platform.server.limiter.count_person(caller.person)
    return caller


async def choose_reads(platform: Platform, caller: Caller, method: str) -> None:
    """Organisers who change something, or just have, read the newest; everybody else may read from a replica."""
    changes, reads = platform.server.changes, request_reads.get()
    if changes is None or reads is None or not caller.organiser_id:
        return
    reads.needs_newest = method not in SAFE_METHODS or await changes.has(caller.organiser_id)
    reads.organiser_id = caller.organiser_id if method not in SAFE_METHODS else ""


async def check_access(connection: Connection, handler: BaseRouteHandler) -> None:
    """The guard of every route: reads the caller, compares with the route, keeps the caller for the handler."""
    platform: Platform = connection.app.state.platform
    method = method_of(connection)
    if method == "OPTIONS":  # the framework's own: lists the methods of a path, nothing else
        return
    access: Access = handler.opt["access"]
    caller = await identified(platform, method, connection.headers, handler.opt.get("accepts", JSON_ONLY))
    connection.state.caller = caller
    await choose_reads(platform, caller, method)
    match access.kind:
        case "public" | "owner":  # the handler loads the object and checks its owner
            return
        case "pass":
            need_pass(platform, caller, connection.path_params["event_id"])
        case "session":
            if caller.session is None:
                raise SignInNeeded("sign in first")
        case "fan":
            if caller.kind != "fan":
                raise SignInNeeded("sign in first")
        case "staff":
            need_permission(caller, access.permission)
        case _:  # an unknown kind allows nothing
            raise NotAllowed("this route is closed")


def need_permission(caller: Caller, permission: str) -> None:
    """None if the caller may do this, else the error: not signed in, second factor missing, or no permission."""
    if caller.kind not in ("staff", "key"):
        if caller.session is not None and caller.session.kind is SubjectKind.STAFF:
            raise SecondFactorNeeded("finish signing in: the second factor is missing", stage=caller.session.stage)
        raise SignInNeeded("sign in as a member of the team, or send an API key")
    if permission not in caller.permissions:
        raise NotAllowed(f"the permission {permission} is needed", permission=permission)
