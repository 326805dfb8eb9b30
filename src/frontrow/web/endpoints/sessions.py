"""Whose session a request carries: the fan that a place is taken for."""

from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie

from frontrow.boxoffice.people.model.people import SubjectKind
from frontrow.boxoffice.people.people import People
from frontrow.boxoffice.people.sessions import SESSION_PREFIX
from frontrow.web.http.cookies import SESSION_COOKIE
from frontrow.web.http.csrf import check_own_page
from frontrow.web.http.messages import EndpointRequest

MAX_COOKIE_BYTES = 16_384


def fan_of(people: People) -> Callable[[EndpointRequest], Awaitable[str]]:
    """A function that answers the id of the fan or guest who asks; empty for everybody else."""

    async def person(request: EndpointRequest) -> str:
        secret = _bearer(request) or _cookie(request)
        session = await people.sessions.find(secret) if secret else None
        return "" if session is None or session.kind is SubjectKind.STAFF else session.subject

    return person


def _bearer(request: EndpointRequest) -> str:
    given = (request.header(b"authorization") or b"").decode("latin-1")
    text = given[7:].strip() if given[:7].lower() == "bearer " else ""
    return text if text.startswith(SESSION_PREFIX) else ""


def _cookie(request: EndpointRequest) -> str:
    """The session cookie, unless another site's page made the browser send it."""
    raw = request.header(b"cookie")
    if raw is None or SESSION_COOKIE.encode() not in raw:
        return ""
    try:
        jar: SimpleCookie = SimpleCookie(raw[:MAX_COOKIE_BYTES].decode("latin-1"))
    except CookieError:
        return ""
    check_own_page(request)
    return jar[SESSION_COOKIE].value if SESSION_COOKIE in jar else ""
