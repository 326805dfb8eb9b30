"""How a page becomes a route: access, form checks, and errors as pages instead of problem+json.

`page` is for GET, `action` for forms (POST). A form is accepted only from our own site and, with a session, with that
session's CSRF token in its field `csrf`. An action takes the fields as `form`; reading them checks the token.

Every action is answered by a redirect (`go_to`, or `told.tell` with something to say). An action of somebody who is
known here may return a page: it is kept, and the page with the form shows it after the redirect.
"""

import asyncio
import functools
import hmac
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
from litestar import Request, Response, get, post
from litestar.di import NamedDependency, Provide
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.params import SkipValidation

from frontrow.boxoffice.people.model.people import SignInNeeded, csrf_of
from frontrow.core.errors import Forbidden, FrontrowError, InvalidInput
from frontrow.shared.cookie_headers import is_https, names_to_read, read_cookies
from frontrow.web.http.access import (
    BOOKING_PREFIX,
    MAX_BOOKING_TOKENS,
    Access,
    Caller,
    Connection,
    booking_of_token,
    caller_in,
    need_permission,
    presented,
)
from frontrow.web.http.cookies import BOOKINGS_COOKIES, LINKS_COOKIES
from frontrow.web.http.csrf import check_media_type, check_same_site
from frontrow.web.platform.access_check import check_access, choose_reads
from frontrow.web.platform.platform import Platform
from frontrow.web.site.error_pages import on_page_bug, on_page_http_error, on_page_problem
from frontrow.web.site.form_answers import keep_page, kept_page

FORM_TYPE: Final = "application/x-www-form-urlencoded"
MAX_LINKS: Final = 12
MAX_FIELDS: Final = 400
MAX_FORM_BYTES: Final = 64 * 1024


class Form:
    """The fields of an accepted form."""

    def __init__(self, fields: list[tuple[str, str]], request: Request[Any, Any, Any] | None = None) -> None:
        self._fields, self.request = fields, request

    def one(self, name: str, most_chars: int = 300) -> str:
        """The first value of a field, without spaces around it; empty when there is none."""
        return next((value.strip()[:most_chars] for key, value in self._fields if key == name), "")

    def secret(self, name: str, most_chars: int = 300) -> str:
        """The first value of a field exactly as it was typed; for passwords, which have a form of their own."""
        return next((value[:most_chars] for key, value in self._fields if key == name), "")

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return [value.strip() for key, value in self._fields if key == name]

    def first(self) -> dict[str, str]:
        """Every field with its first value as it was typed, to be shown again."""
        return dict(reversed(self._fields))

    def number(self, name: str, low: int, high: int, default: int) -> int:
        """A whole number inside bounds, else the default."""
        text = self.one(name, 12)
        return max(low, min(high, int(text))) if text.isascii() and text.isdigit() else default


FromForm = NamedDependency[SkipValidation[Form]]
ERRORS: Final = {HTTPException: on_page_http_error, FrontrowError: on_page_problem, Exception: on_page_bug}


def kept_bookings(platform: Platform, connection: Connection) -> list[str]:
    """The tokens of the bookings this browser made, newest first."""
    kept = kept_texts(platform, connection, BOOKINGS_COOKIES)
    return list(dict.fromkeys(token for text in kept for token in text.split("~") if token))


def kept_texts(platform: Platform, connection: Connection, names: tuple[str, str]) -> list[str]:
    """The values of these cookies; over https only under the `__Host-` name."""
    wanted = names_to_read(names, secure=is_https(platform.settings.public_url))
    return read_cookies("; ".join(connection.headers.getall("cookie", [])), wanted)


def kept_links(platform: Platform, connection: Connection) -> list[str]:
    """The links of messages that were opened in this browser, newest first."""
    kept = kept_texts(platform, connection, LINKS_COOKIES)
    return list(dict.fromkeys(token for text in kept for token in text.split("~") if token))


async def page_caller(platform: Platform, connection: Connection) -> Caller:
    """The visitor of a page, by cookies alone: session, pass, and the bookings of this browser."""
    given = presented(connection.headers, secure=is_https(platform.settings.public_url))
    session = await platform.people.sessions.find(given.session_cookie) if given.session_cookie else None
    visitor = platform.callers.visitor(connection.headers)
    tokens = kept_bookings(platform, connection)[:MAX_BOOKING_TOKENS]
    mine = {
        found
        for token in tokens
        if token.startswith(BOOKING_PREFIX) and (found := booking_of_token(platform.secrets, token)) is not None
    }
    caller = caller_in(session) if session is not None else Caller()
    proven = platform.callers.with_pass(caller, visitor.shop_pass or visitor.past_pass, mine)
    return msgspec.structs.replace(proven, links=opened_links(platform, connection))


def opened_links(platform: Platform, connection: Connection) -> frozenset[tuple[str, str]]:
    """What the links opened in this browser still allow: (purpose, subject) each."""
    links = [
        link
        for text in kept_links(platform, connection)[:MAX_LINKS]
        if (link := platform.messaging.links.read(text)) is not None
    ]
    return frozenset((link.purpose.value, link.subject) for link in links if not link.ended(platform.clock()))


async def page_guard(connection: Connection, handler: BaseRouteHandler) -> None:
    """Identifies the visitor. Forms must come from our own pages; staff pages need a permission."""
    platform: Platform = connection.app.state.platform
    method = str(connection.scope.get("method", "GET"))
    check_same_site(method, connection.headers, platform.settings.public_url)
    check_media_type(method, connection.headers, (FORM_TYPE,))
    access: Access = handler.opt["access"]
    if access.kind == "staff" and method == "GET":
        await check_access(connection, handler)
        return
    caller = await page_caller(platform, connection)
    connection.state.caller = caller
    await choose_reads(platform, caller, method)
    if caller.shop_pass is not None and not handler.opt["inside_page"]:
        platform.room.service.visits.hear(caller.shop_pass.id)  # whoever moves on inside the site is there
    if caller.person and not handler.opt["inside_page"]:
        platform.server.limiter.count_person(caller.person)
    if access.kind == "fan" and caller.kind != "fan":
        raise SignInNeeded("sign in first")
    if access.kind == "staff":
        need_permission(caller, access.permission)


async def read_form(request: Request[Any, Any, Any]) -> Form:
    """The fields of a form, after its CSRF token was checked."""
    body = await request.body()
    if len(body) > request.route_handler.opt.get("most_bytes", MAX_FORM_BYTES):
        raise InvalidInput("this form is too large", param="body")
    try:
        fields = await asyncio.to_thread(_fields, body) if len(body) > MAX_FORM_BYTES else _fields(body)
    except ValueError:
        raise InvalidInput("this form cannot be read", param="body") from None
    form = Form(fields, request)
    secret = presented(request.headers, secure=True).session_cookie
    caller: Caller = request.state.caller
    if caller.session is not None:
        given = form.one("csrf").encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(given, csrf_of(secret).encode()):
            raise Forbidden("this form has grown old; go back, reload and try again")
    return form


def _fields(body: bytes) -> list[tuple[str, str]]:
    return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)


def page(
    path: str, name: str, access: Access = Access.PUBLIC, *, inside_page: bool = False
) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """A route for a page (GET). After a form it may be a page that was kept as the answer.

    `inside_page`: another page shows it, a picture for example. A page may have many of them, so they count against the
    limit of the address only, not of the person.
    """
    return functools.partial(_route, get, path, name, access, inside_page=inside_page)


def action(
    path: str,
    name: str,
    access: Access = Access.PUBLIC,
    *,
    most_bytes: int = MAX_FORM_BYTES,
    loads: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """A route for a page's form (POST); the handler takes `form`, and by its name whatever `loads` loads for it."""

    def route(handler: Callable[..., Any]) -> HTTPRouteHandler:
        answering = handler if access.kind == "public" else _answer_by_redirect(handler)
        return _route(post, path, name, access, answering, most_bytes=most_bytes, loads=loads)

    return route


def _answer_by_redirect(handler: Callable[..., Any]) -> Callable[..., Any]:
    """The handler; a page that it returns is kept and shown by the page with the form."""

    @functools.wraps(handler)
    async def answer(**given: Any) -> Any:
        response = await handler(**given)
        if isinstance(response, Response) and response.media_type == "text/html":
            return await keep_page(given["form"].request, response)
        return response

    return answer


async def _show_kept_page(request: Request[Any, Any, Any]) -> Response[bytes] | None:
    """The page that a form has left for this request, if there is one."""
    return await kept_page(request)


def _route(
    verb: Any,
    path: str,
    name: str,
    access: Access,
    handler: Callable[..., Any],
    *,
    most_bytes: int = MAX_FORM_BYTES,
    loads: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
    inside_page: bool = False,
) -> HTTPRouteHandler:
    provided = {"form": read_form, **loads} if verb is post else {}
    more: dict[str, Any] = {"request_max_body_size": most_bytes} if most_bytes > MAX_FORM_BYTES else {}
    if verb is get:
        more["before_request"] = _show_kept_page
    route: HTTPRouteHandler = verb(
        path,
        operation_id=f"page_{name}",
        include_in_schema=False,
        guards=[page_guard],
        dependencies={key: Provide(load) for key, load in provided.items()},
        exception_handlers=ERRORS,
        opt={
            "access": access,
            "page": True,
            "idempotency": "own",
            "most_bytes": most_bytes,
            "inside_page": inside_page,
        },
        status_code=200,
        **more,
    )(handler)
    return route


def go_to(path: str, headers: dict[str, str] | None = None) -> Response[bytes]:
    """Redirects after a form, so that a reload does not send it again."""
    found = {"location": path, "cache-control": "no-store", **(headers or {})}
    return Response(b"", status_code=303, headers=found, media_type="text/plain")
