"""What a page says once after a form: every form is answered by a redirect, so that Back, Forward and Reload show a
page and never ask to send a form again.

`tell` is for a few short words (what was typed, what was wrong). They are sealed in a cookie of this browser, and the
page reads them with `told`. `keep_page` is for a whole page that somebody who is known here gets as the answer: a form
of an organiser with its errors, or a secret that is shown once. Such a page is sealed in the ledger; the only key to it
is in the cookie. The address names neither: `?told=…` is a fingerprint of the cookie, so an older address shows the
plain page.
"""

import base64
import hashlib
import hmac
import logging
import re
import secrets
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from litestar import Litestar, Request, Response
from litestar.datastructures import Cookie
from litestar.routes import HTTPRoute

from frontrow.boxoffice.adapters.ledger.requests.idempotency_store import KeptAnswer
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.shared.cookie_headers import is_https, names_to_read, read_cookies
from frontrow.shared.vault import SealBroken, Vault
from frontrow.web.http.cookies import TOLD_COOKIES
from frontrow.web.platform.platform import Platform

log = logging.getLogger("frontrow.pages")

LIFE_S: Final = 600
MAX_COOKIE_CHARS: Final = 3_000  # browsers keep 4 KB with the name and the rest
MAX_TEXT_CHARS: Final = 1_000
MAX_PAGE_BYTES: Final = 4 * 1024 * 1024  # a form of an organiser with a whole plan in it
PURPOSE: Final = "told"
PARAM: Final = "told"
_WORDS: Final = "w."
_PAGE: Final = "p."
_ONCE: Final = "x-shown-once"  # from `show_once` to `keep_page`, never sent
_NOT_KEPT: Final = frozenset({"set-cookie", "content-length", "content-type", _ONCE})
Asked = Request[Any, Any, Any]


class Told(msgspec.Struct, frozen=True):
    """What `tell` was given, for the page at `path`."""

    path: str = ""
    until_us: int = 0
    status: int = 200
    says: dict[str, str | list[str]] = {}

    def text(self, name: str) -> str:
        return str(self.says.get(name, ""))

    def texts(self, name: str) -> list[str]:
        found = self.says.get(name, [])
        return [str(one) for one in found] if isinstance(found, list) else []


NOTHING: Final = Told()


class _KeptPage(msgspec.Struct, frozen=True):
    """A page as it is stored."""

    path: str
    until_us: int
    status: int
    headers: dict[str, str]
    body: bytes
    once: bool


def tell(
    request: Asked,
    address: str,
    says: Mapping[str, str | list[str]],
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response[bytes]:
    """Redirect to a page of ours that says this. Texts are cut; if all is still too much, the longest are left out.
    Whoever tells a secret removes it where it is shown (`forget_told`)."""
    platform: Platform = request.app.state.platform
    where, until_us = urlsplit(address), platform.clock() + LIFE_S * US_PER_S
    kept = {name: value[:MAX_TEXT_CHARS] if isinstance(value, str) else value for name, value in says.items()}
    text = _sealed(platform, Told(where.path, until_us, status, kept))
    while len(text) > MAX_COOKIE_CHARS and kept:
        del kept[max(kept, key=lambda name: len(msgspec.json.encode(kept[name])))]
        text = _sealed(platform, Told(where.path, until_us, status, kept))
    return _redirect(platform, address, _WORDS + text, headers)


def told(request: Asked) -> Told:
    """What this page was told to say; nothing for an old address, another page or another browser."""
    platform: Platform = request.app.state.platform
    text = _given(platform, request)
    if not text.startswith(_WORDS):
        return NOTHING
    try:
        raw = _vault(platform, b"").open(text.removeprefix(_WORDS), PURPOSE)
        found = msgspec.json.decode(zlib.decompress(base64.b64decode(raw)), type=Told)
    except (SealBroken, ValueError, zlib.error, msgspec.MsgspecError):
        return NOTHING
    return found if found.path == request.url.path and platform.clock() < found.until_us else NOTHING


def show_once(page: Response[bytes]) -> Response[bytes]:
    """The page, with a secret in it: the browser forgets it with the first look."""
    page.headers[_ONCE] = "yes"
    return page


async def keep_page(request: Asked, page: Response[bytes]) -> Response[bytes]:
    """Redirect to the page that the form is on, which then shows this page in its place: for ten minutes, also after
    Back, or once (`show_once`). While the ledger is down the page itself is the answer, so that nothing typed is lost
    and a new secret is seen."""
    platform: Platform = request.app.state.platform
    address, secret, now_us = _address_of_form(request), secrets.token_urlsafe(24), platform.clock()
    headers = {name: value for name, value in page.headers.items() if name.lower() not in _NOT_KEPT}
    status, until_us = page.status_code or 200, now_us + LIFE_S * US_PER_S
    kept = _KeptPage(urlsplit(address).path, until_us, status, headers, page.content, _ONCE in page.headers)
    body = base64.b64encode(msgspec.msgpack.encode(kept)).decode()
    name = _name_of(secret)
    if len(body) > MAX_PAGE_BYTES:  # nobody types that much: the page as it is
        return page
    sealed = _vault(platform, secret.encode()).seal(body, name)
    try:
        await platform.stores.requests.begin(name, PURPOSE, now_us, now_us)
        await platform.stores.requests.finish(name, KeptAnswer(PURPOSE, status, "text/html", "{}", sealed), now_us)
    except (Overloaded, Unavailable) as error:
        log.warning("the answer to a form could not be stored, so it is not a redirect: %s", error)
        return page
    response = _redirect(platform, address, _PAGE + secret, {})
    if "set-cookie" in page.headers:
        response.headers["set-cookie"] = page.headers["set-cookie"]
    for cookie in page.cookies:
        response.set_cookie(cookie)
    return response


async def kept_page(request: Asked) -> Response[bytes] | None:
    """Runs before every page, after its guards: the page that `keep_page` kept for this address and browser."""
    if b"told=" not in request.scope["query_string"]:
        return None
    platform: Platform = request.app.state.platform
    text = _given(platform, request)
    if not text.startswith(_PAGE):
        return None
    secret = text.removeprefix(_PAGE)
    name = _name_of(secret)
    stored = await platform.stores.requests.find(name)
    try:
        raw = _vault(platform, secret.encode()).open(stored.body if stored else "", name, most_chars=2 * MAX_PAGE_BYTES)
        found = msgspec.msgpack.decode(base64.b64decode(raw), type=_KeptPage)
    except (SealBroken, ValueError, msgspec.MsgspecError):
        return None
    if found.path != request.url.path or platform.clock() >= found.until_us:
        return None
    shown = Response(found.body, status_code=found.status, headers=found.headers, media_type="text/html")
    if found.once:
        forget_told(platform, shown)
    return shown


def forget_told(platform: Platform, response: Response[bytes]) -> None:
    """Remove the cookie: what was told is shown by no address any more."""
    response.set_cookie(_cookie(platform, "", 0))


def _given(platform: Platform, request: Asked) -> str:
    """The cookie that the address asks for; empty without one."""
    tag = request.query_params.get(PARAM, "")
    if not tag:
        return ""
    wanted = names_to_read(TOLD_COOKIES, secure=is_https(platform.settings.public_url))
    kept = read_cookies("; ".join(request.headers.getall("cookie", [])), wanted)
    return next((text for text in kept if hmac.compare_digest(_tag(text).encode(), tag.encode())), "")


def _redirect(platform: Platform, address: str, text: str, headers: dict[str, str] | None) -> Response[bytes]:
    where = urlsplit(address)
    query = [(name, value) for name, value in parse_qsl(where.query) if name not in (PARAM, "done")]
    fragment = f"#{where.fragment}" if where.fragment else ""
    location = f"{where.path}?{urlencode([*query, (PARAM, _tag(text))])}{fragment}"
    found = {"location": location, "cache-control": "no-store", **(headers or {})}
    response = Response(b"", status_code=303, headers=found, media_type="text/plain")
    response.set_cookie(_cookie(platform, text, LIFE_S))
    return response


def _cookie(platform: Platform, text: str, life_s: int) -> Cookie:
    secure = is_https(platform.settings.public_url)
    name = TOLD_COOKIES[0 if secure else 1]
    return Cookie(name, "/", text, life_s, httponly=True, samesite="lax", secure=secure)


def _address_of_form(request: Asked) -> str:
    """The page the form was on: as the browser says, if it is one of ours, else where its action begins."""
    came_from = urlsplit(request.headers.get("referer", ""))
    if came_from.netloc == request.headers.get("host", "") and _is_page(request, came_from.path):
        return f"{came_from.path}?{came_from.query}"
    path = request.url.path
    while path.count("/") > 1 and not _is_page(request, path):
        path = path.rpartition("/")[0]
    return path


def _is_page(request: Asked, path: str) -> bool:
    """Whether one of our pages answers a GET for this path."""
    return any(one.fullmatch(path) for one in _pages_of(request.app))


@lru_cache(8)
def _pages_of(app: Litestar) -> list[re.Pattern[str]]:
    """The paths of all pages of the app."""
    found = [
        route.path
        for route in app.routes
        if isinstance(route, HTTPRoute)
        and any(one.opt.get("page") and "GET" in one.http_methods for one in route.route_handlers)
    ]
    return [re.compile(re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(path))) for path in found]


def _sealed(platform: Platform, words: Told) -> str:
    packed = base64.b64encode(zlib.compress(msgspec.json.encode(words))).decode()
    return _vault(platform, b"").seal(packed, PURPOSE)


def _vault(platform: Platform, secret: bytes) -> Vault:
    return Vault([hmac.digest(platform.secrets.key(PURPOSE), secret, hashlib.sha256)])


def _name_of(secret: str) -> str:
    return f"{PURPOSE}:{hashlib.blake2b(secret.encode(), digest_size=20).hexdigest()}"


def _tag(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
