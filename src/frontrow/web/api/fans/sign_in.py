"""Sign-in and sign-out: fans by link, guests, and the caller's sessions."""

from typing import Annotated, Any

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.people.model.people import NotAllowed, Session, Stage
from frontrow.boxoffice.people.sessions import SignedIn
from frontrow.shared.local_time import time_text
from frontrow.web.http.access import Access
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.http.bodies.sign_in import (
    Code,
    Deliver,
    Email,
    Locale,
    Secret,
    SessionView,
    agent_of,
    checked_locale,
    own_csrf,
    private,
    session_view,
    signed_in,
)
from frontrow.web.http.cookies import SIGN_IN_COOKIE, removed_cookie, sign_in_cookie
from frontrow.web.platform.access_check import client_ip
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform


class LinkAsked(msgspec.Struct, forbid_unknown_fields=True):
    """Where the link is sent."""

    email: Email
    locale: Locale = "en"


class LinkSent(msgspec.Struct):
    """The response is the same for every address. `ask` is sent back with the link; browsers keep it in a cookie."""

    minutes: int
    ask: Annotated[str, msgspec.Meta(examples=["fra_…"])]


class LinkRedeemed(msgspec.Struct, forbid_unknown_fields=True):
    """The part of the mailed link after `#`, or the `code` of the mail. `ask` is needed only without cookies.
    `confirmed`: the person has seen the address and wants to sign in here, although another browser asked for the
    link."""

    link: Secret = ""
    code: Code = ""
    ask: Secret = ""
    confirmed: bool = False
    deliver: Deliver = "cookie"


class GuestAsked(msgspec.Struct, forbid_unknown_fields=True):
    """A guest may give an address for tickets."""

    email: Email | None = None
    locale: Locale = "en"
    deliver: Deliver = "cookie"


class SessionRow(msgspec.Struct):
    """One of the caller's sessions."""

    id: str
    created_at: Time
    seen_at: Time
    ends_at: Time
    agent: str
    current: bool


class SessionList(msgspec.Struct):
    sessions: list[SessionRow]


@post(
    "/v1/auth/link",
    operation_id="ask_sign_in_link",
    summary="Send a sign-in link by e-mail",
    status_code=202,
    opt={"access": Access.PUBLIC, "idempotency": "own"},
)
async def ask_link(
    request: Request[Any, Any, Any], platform: FromPlatform, data: JSONBody[LinkAsked]
) -> Response[LinkSent]:
    locale = checked_locale(data.locale)
    ask = await platform.people.fans.send_sign_in_link(data.email, client_ip(platform, request), locale)
    life_s = platform.settings.people.link_life_s
    sent = LinkSent(life_s // 60, ask)
    return private(Response(sent, status_code=202, cookies=[sign_in_cookie(ask, life_s)]))


@post(
    "/v1/auth/link/redeem",
    operation_id="redeem_sign_in_link",
    summary="Sign in with the link or the code from the e-mail",
    status_code=200,
    opt={"access": Access.PUBLIC, "problems": (404,), "idempotency": "own"},
)
async def redeem_link(
    request: Request[Any, Any, Any], platform: FromPlatform, caller: FromCaller, data: JSONBody[LinkRedeemed]
) -> Response[SessionView]:
    """A guest's earlier purchases, and bookings whose tokens are presented, become the fan's if they were bought with
    the address that the link proves."""
    ask, fans = data.ask or request.cookies.get(SIGN_IN_COOKIE, ""), platform.people.fans
    who: dict[str, Any] = {"agent": agent_of(request), "replaces": caller.session}
    if data.code:
        created = await fans.redeem_code(data.code, ask, client_ip(platform, request), **who)
    else:
        created = await fans.redeem_link(data.link, ask, confirmed=data.confirmed, **who)
    answer = signed_in(created, created.session, data.deliver)
    answer.cookies.append(removed_cookie(SIGN_IN_COOKIE))
    return answer


@post(
    "/v1/auth/guest",
    operation_id="start_guest_session",
    summary="Buy without an account",
    status_code=201,
    opt={"access": Access.PUBLIC, "idempotency": "own"},
)
async def start_guest(
    request: Request[Any, Any, Any], platform: FromPlatform, caller: FromCaller, data: JSONBody[GuestAsked]
) -> Response[SessionView]:
    if caller.kind == "staff":
        raise NotAllowed("sign out first")
    await platform.people.sign_in_limits.link_ip.count_attempt(client_ip(platform, request))
    created = await platform.people.fans.start_guest_session(
        data.email or "", checked_locale(data.locale), agent=agent_of(request), replaces=caller.session
    )
    return signed_in(created, created.session, data.deliver, 201)


@get(
    "/v1/auth/session",
    operation_id="get_session",
    summary="The person of this session, and its CSRF token",
    opt={"access": Access.PUBLIC},
)
async def get_session(request: Request[Any, Any, Any], caller: FromCaller) -> Response[SessionView]:
    csrf = own_csrf(request) if caller.session is not None else ""
    return private(Response(session_view(caller.session, csrf=csrf)))


@delete(
    "/v1/auth/session",
    operation_id="end_session",
    summary="Sign out",
    status_code=204,
    opt={"access": Access.SESSION},
)
async def end_session(platform: FromPlatform, caller: FromCaller) -> Response[None]:
    assert caller.session is not None
    await platform.people.sessions.end(caller.session.subject, caller.session.id)
    return private(Response(None, status_code=204, cookies=[removed_cookie()]))


@get(
    "/v1/auth/sessions",
    operation_id="list_sessions",
    summary="The caller's sessions",
    opt={"access": Access.SESSION},
)
async def list_sessions(platform: FromPlatform, caller: FromCaller) -> Response[SessionList]:
    session = full_session(caller.session)
    rows = [_row(one, session) for one in await platform.people.sessions.of(session.subject)]
    return private(Response(SessionList(rows)))


@delete(
    "/v1/auth/sessions/{session_id:str}",
    operation_id="revoke_session",
    summary="End another session",
    status_code=204,
    opt={"access": Access.SESSION},
)
async def revoke_session(platform: FromPlatform, caller: FromCaller, session_id: FromPath[str]) -> None:
    await platform.people.sessions.end(full_session(caller.session).subject, session_id)


def full_session(session: Session | None) -> Session:
    """The session, unless its second factor is missing."""
    if session is None or session.stage is not Stage.FULL:
        raise NotAllowed("finish signing in first")
    return session


async def read_new_session(platform: Platform, created: SignedIn) -> Session:
    """A new session with its permissions, as the next request will find it."""
    return await platform.people.sessions.find(created.secret) or created.session


def _row(one: Session, current: Session) -> SessionRow:
    created, seen, ends = time_text(one.created_at_us), time_text(one.seen_at_us), time_text(one.ends_at_us)
    return SessionRow(one.id, created, seen, ends, one.agent, one.id == current.id)


ROUTES: list[HTTPRouteHandler] = [
    ask_link,
    redeem_link,
    start_guest,
    get_session,
    end_session,
    list_sessions,
    revoke_session,
]
