"""A visitor's place and pass as requests carry them: as a bearer token, in a header or in a cookie."""

from frontrow.core.errors import Unauthorised
from frontrow.shared.cookie_headers import cookie_names, names_to_read, read_cookie
from frontrow.waitingroom.protect.guard import PASS_COOKIES, pass_from
from frontrow.web.http.messages import EndpointRequest


def joined_at_cookies(event: str) -> tuple[str, str]:
    """The names of the cookie that says where the window was when this browser joined."""
    return cookie_names("from", event)


def place_cookies(event: str) -> tuple[str, str]:
    """The names of the cookie with this browser's place."""
    return cookie_names("place", event)


def place_of(event: str, request: EndpointRequest, *, secure: bool) -> str:
    """The place of this request: the bearer token, or the page's cookie. `secure`: the site uses https, so only cookies
    bound to the host count."""
    for name, given in request.headers:
        if len(name) == 13 and name.lower() == b"authorization":
            if not given.startswith(b"Bearer ") and given[:7].lower() != b"bearer ":
                raise Unauthorised("send the place as a bearer token")
            return given[7:].decode("latin-1")
    value = cookie_of(request, place_cookies(event), secure=secure)
    if value:
        return value
    raise Unauthorised("send the place you got from join as a bearer token")


def keeps_place(event: str, request: EndpointRequest, *, secure: bool) -> bool:
    """Whether this browser has a place in the event's room."""
    return bool(cookie_of(request, place_cookies(event), secure=secure))


def cookie_of(request: EndpointRequest, names: tuple[str, str], *, secure: bool) -> str:
    """The value of a cookie by its names; empty without one."""
    cookie = request.header(b"cookie")
    return read_cookie(cookie.decode("latin-1"), names_to_read(names, secure=secure)) if cookie is not None else ""


def pass_of(request: EndpointRequest, *, secure: bool) -> str:
    """The pass of this request, from wherever it may be sent."""
    headers = [request.header(name) for name in (b"authorization", b"frontrow-pass", b"cookie")]
    bearer, header, cookie = (value.decode("latin-1") if value is not None else None for value in headers)
    text = pass_from(bearer, header, cookie, secure=secure)
    if not text:
        raise Unauthorised(f"send the pass as a bearer token or in the cookie {PASS_COOKIES[0 if secure else 1]}")
    return text
