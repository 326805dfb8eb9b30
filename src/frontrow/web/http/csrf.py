"""Requests that change something and come from a browser: made by our own pages, or refused.

Three locks. The body must be of a kind that another site's form cannot send (JSON said to be JSON). The browser's own
word about who made the request (`Sec-Fetch-Site`, else `Origin`) must be our site. And with a session cookie the word
that follows from the session must stand in `X-CSRF-Token`. Programs that send no cookies meet only the first.
"""

import hmac
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from frontrow.boxoffice.people.model.people import csrf_of
from frontrow.core.errors import Forbidden, InvalidInput
from frontrow.web.http.messages import EndpointRequest

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
JSON_ONLY: Final = ("application/json",)
TOKEN_HEADER: Final = "x-csrf-token"  # noqa: S105 - a header's name
OWN_SITES: Final = frozenset({"same-origin", "none"})


class HeaderLines(Protocol):
    """A request's headers by lower-case name, as the fast path and the framework have them."""

    def getall(self, key: str, default: Any) -> list[str]: ...

    def __contains__(self, key: object, /) -> bool: ...


class CrossSite(Forbidden):
    """Another site's page made this request, or the CSRF token is missing."""

    code = "cross_site"


class WrongMediaType(InvalidInput):
    code = "unsupported_media_type"
    http_status = 415


def check_media_type(method: str, headers: HeaderLines, accepted: tuple[str, ...]) -> None:
    """A body must say it is one of the accepted types; `text/plain` that holds JSON is not JSON."""
    if method in SAFE_METHODS or not _has_body(headers):
        return
    given = headers.getall("content-type", [])
    kind = given[0].partition(";")[0].strip().lower() if len(given) == 1 else ""
    if kind not in accepted:
        raise WrongMediaType(f"send the body as {' or '.join(accepted)}", param="content-type")


def _has_body(headers: HeaderLines) -> bool:
    return "transfer-encoding" in headers or headers.getall("content-length", ["0"])[0] != "0"


def check_same_site(method: str, headers: HeaderLines, public_url: str) -> None:
    """Refuse what a browser was made to send by a page of another site, signed in or not."""
    if method in SAFE_METHODS:
        return
    sites = headers.getall("sec-fetch-site", [])
    if sites:
        if any(site not in OWN_SITES for site in sites):
            raise CrossSite("this request was made by another site's page")
        return
    for origin in headers.getall("origin", []):
        if not _own_origin(origin, headers.getall("host", [""])[0], public_url):
            raise CrossSite("this request was made by another site's page")


def check_own_page(request: EndpointRequest) -> None:
    """`check_same_site` for a cookie that counts only for our own pages, whatever the method; for the fast path."""
    site = request.header(b"sec-fetch-site")
    if site is not None:
        if site not in (b"same-origin", b"none"):
            raise CrossSite("this request was made by another site's page")
        return
    origin = request.header(b"origin")
    if origin is not None and origin.partition(b"://")[2] != request.header(b"host"):
        raise CrossSite("this request was made by another site's page")


def _own_origin(origin: str, host: str, public_url: str) -> bool:
    public = urlsplit(public_url)
    return origin == f"{public.scheme}://{public.netloc}" or (bool(host) and origin.partition("://")[2] == host)


def check_token(method: str, headers: HeaderLines, session_secret: str) -> None:
    """With a session cookie: the token of that very session."""
    if method in SAFE_METHODS:
        return
    given = headers.getall(TOKEN_HEADER, [])
    wanted = csrf_of(session_secret)
    if len(given) != 1 or not hmac.compare_digest(given[0].encode("utf-8", "surrogatepass"), wanted.encode()):
        raise CrossSite("send the session's CSRF token in X-CSRF-Token (GET /v1/auth/session tells it)")
