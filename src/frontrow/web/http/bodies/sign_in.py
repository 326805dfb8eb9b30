"""Request and response bodies of signing in."""

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from litestar import Request, Response

from frontrow.boxoffice.people.model.email_addresses import EMAIL_PATTERN
from frontrow.boxoffice.people.model.people import Session, csrf_of
from frontrow.boxoffice.people.sessions import SignedIn
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput
from frontrow.shared.local_time import time_text
from frontrow.web.http.access import caller_in, presented
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.http.cookies import session_cookie

LOCALE_PATTERN: Final = r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$"
_LOCALE: Final = re.compile(LOCALE_PATTERN, re.ASCII)

Email = Annotated[str, msgspec.Meta(max_length=254, pattern=EMAIL_PATTERN, examples=["ada@example.org"])]
Locale = Annotated[str, msgspec.Meta(max_length=35, pattern=LOCALE_PATTERN, examples=["de-AT"])]
Name = Annotated[str, msgspec.Meta(max_length=200, pattern=r"\w", examples=["Ada"])]
Code = Annotated[str, msgspec.Meta(max_length=40, examples=["123456"])]
Password = Annotated[str, msgspec.Meta(max_length=1_024)]
Secret = Annotated[str, msgspec.Meta(max_length=100)]
Deliver = Literal["cookie", "bearer"]


class SessionView(msgspec.Struct):
    """A session as its owner sees it. `session` is returned once, and only to programs that request a bearer."""

    kind: Annotated[str, msgspec.Meta(examples=["fan"])]
    id: str = ""
    role: str = ""
    organiser: str = ""
    permissions: list[str] = []
    stage: Annotated[str, msgspec.Meta(examples=["full"])] = ""
    ends_at: Time | None = None
    csrf: str = ""
    session: str = ""


def session_view(session: Session | None, *, csrf: str = "", secret: str = "") -> SessionView:
    if session is None:
        return SessionView("nobody")
    caller = caller_in(session)
    return SessionView(
        caller.kind,
        caller.id,
        caller.role,
        caller.organiser_id,
        sorted(caller.permissions),
        session.stage.value,
        time_text(session.ends_at_us),
        csrf,
        secret,
    )


def signed_in(created: SignedIn, session: Session, deliver: Deliver, status: int = 200) -> Response[SessionView]:
    """The new session: in a cookie for browsers, in the body for programs."""
    if deliver == "bearer":
        return private(Response(session_view(session, secret=created.secret), status_code=status))
    life_s = max(0, session.ends_at_us - session.created_at_us) // US_PER_S
    cookies = [session_cookie(created.secret, life_s)]
    return private(Response(session_view(session, csrf=created.csrf), status_code=status, cookies=cookies))


def private(response: Response[Any]) -> Response[Any]:
    response.headers["cache-control"] = "no-store"
    return response


def own_csrf(request: Request[Any, Any, Any]) -> str:
    """The CSRF token of the cookie's session; programs with a bearer need none."""
    secret = presented(request.headers, secure=True).session_cookie
    return csrf_of(secret) if secret else ""


def agent_of(request: Request[Any, Any, Any]) -> str:
    return request.headers.get("user-agent", "")


def checked_locale(locale: str) -> str:
    if not _LOCALE.fullmatch(locale):
        raise InvalidInput("a locale is a language tag such as de or en-GB", param="locale")
    return locale.replace("_", "-")
