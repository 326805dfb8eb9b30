"""Every cookie of the platform's API and pages: its name and how it is set.

Cookies that prove a person (session, sign-in request) exist only over TLS. Cookies that pages keep for a browser have
a second name for plain http; see `shared.cookie_headers`. The waiting room's cookies (place, pass) belong to the room.
"""

from typing import Final

from litestar.datastructures import Cookie

from frontrow.shared.cookie_headers import cookie_names

SESSION_COOKIE: Final = "__Host-frontrow-session"
SIGN_IN_COOKIE: Final = "__Host-frontrow-ask"
LANGUAGE_COOKIES: Final = cookie_names("lang")
BOOKINGS_COOKIES: Final = cookie_names("bookings")
LINKS_COOKIES: Final = cookie_names("links")
READY_COOKIES: Final = cookie_names("ready")
TOLD_COOKIES: Final = cookie_names("told")


def session_cookie(secret: str, life_s: int) -> Cookie:
    """The session of a signed-in person."""
    return _host_cookie(SESSION_COOKIE, secret, life_s)


def sign_in_cookie(request_secret: str, life_s: int) -> Cookie:
    """Marks the browser that requested a sign-in link. `Lax`, because the link is opened from a mail program."""
    return _host_cookie(SIGN_IN_COOKIE, request_secret, life_s)


def removed_cookie(name: str = SESSION_COOKIE) -> Cookie:
    """Removes a cookie from the browser."""
    return _host_cookie(name, "", 0)


def _host_cookie(name: str, value: str, life_s: int) -> Cookie:
    """`__Host-`: for this host only, over TLS only, hidden from scripts, not sent with other sites' requests."""
    return Cookie(name, value=value, path="/", max_age=life_s, secure=True, httponly=True, samesite="lax")


def cookie_header(cookie: Cookie) -> str:
    """The value of a `Set-Cookie` header."""
    return cookie.to_header(header="")
