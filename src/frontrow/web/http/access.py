"""Authentication and authorisation: what a request proves (`Caller`) and what a route requires (`Access`).

A request may carry several proofs at once: a pass (shop calls), a session (cookie or bearer), an API key, booking
tokens. `endpoints.callers` reads them all; `platform.access_check` compares them with the route's `opt["access"]`.
Every route has one, or the app does not start.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec
from litestar.connection import ASGIConnection

from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.holds.model.bookings import HOLD_STATES, Booking
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.people.model.people import (
    NotAllowed,
    SecondFactorNeeded,
    Session,
    SignInNeeded,
    Stage,
    SubjectKind,
)
from frontrow.boxoffice.people.model.roles import PERMISSIONS, Role
from frontrow.boxoffice.people.team import Actor
from frontrow.core.errors import ConfigError
from frontrow.shared.cookie_headers import names_to_read, read_cookie, read_cookies
from frontrow.shared.derived_keys import Secrets
from frontrow.waitingroom.protect.guard import PASS_COOKIES
from frontrow.web.http.cookies import SESSION_COOKIE
from frontrow.web.http.csrf import HeaderLines

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


def need_permission(caller: Caller, permission: str) -> None:
    """None if the caller may do this, else the error: not signed in, second factor missing, or no permission."""
    if caller.kind not in ("staff", "key"):
        if caller.session is not None and caller.session.kind is SubjectKind.STAFF:
            raise SecondFactorNeeded("finish signing in: the second factor is missing", stage=caller.session.stage)
        raise SignInNeeded("sign in as a member of the team, or send an API key")
    if permission not in caller.permissions:
        raise NotAllowed(f"the permission {permission} is needed", permission=permission)


def editor_of(caller: Caller) -> Editor:
    """The editor of a change, for the audit."""
    return Editor(caller.id, caller.organiser_id)


def actor(caller: Caller) -> Actor:
    """The signed-in member. API keys have no member."""
    if caller.kind != "staff":
        raise NotAllowed("an API key cannot change the team or make keys; sign in")
    return Actor(caller.id, caller.organiser_id, Role(caller.role))
