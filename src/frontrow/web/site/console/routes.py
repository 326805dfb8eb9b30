"""How a page of the console becomes a route: who is signed in, form checks, and errors as pages.

A form is accepted only from our own pages and with the session's CSRF token in its field `csrf`. It is answered by a
redirect; a form with something wrong in it is shown again with what was typed.
"""

import hmac
import logging
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from litestar import Response, get, post
from litestar.di import NamedDependency, Provide
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.params import SkipValidation

from frontrow.core.errors import Forbidden, FrontrowError, InvalidInput
from frontrow.waitingroom.console.access import OwnerNeeded, SignedInOwner
from frontrow.waitingroom.console.model.owners import Right
from frontrow.web.http.csrf import CrossSite, check_same_site
from frontrow.web.site.console.console import Asked, Console, console_of
from frontrow.web.site.console.refusals import sentence_of
from frontrow.web.site.console.render import render
from frontrow.web.site.routes import FORM_TYPE, MAX_FORM_BYTES, Form, go_to

log = logging.getLogger("frontrow.web")

HOME: Final = "/console/"
SIGN_IN: Final = "/console/sign-in"
MAX_UPLOAD_BYTES: Final = 1_000_000
FromForm = NamedDependency[SkipValidation[Form]]
FromOwner = NamedDependency[SkipValidation[SignedInOwner]]
FromConsole = NamedDependency[SkipValidation[Console]]


async def _owner(request: Asked) -> SignedInOwner:
    """Who is signed in, with the right that the page needs."""
    owner = await console_of(request).owner_in(request)
    if owner is None:
        raise OwnerNeeded("sign in first")
    owner.need(request.route_handler.opt.get("right", Right.SEE))
    return owner


async def _console(request: Asked) -> Console:
    return console_of(request)


async def _form(request: Asked) -> Form:
    """The fields of a form that one of our own pages sent. With a session, its token must be among them."""
    console = console_of(request)
    check_same_site("POST", request.headers, console.settings.public_url)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == FORM_TYPE and int(request.headers.get("content-length") or 0) > MAX_FORM_BYTES:
        raise InvalidInput("this form is too large", param="body")
    if kind not in (FORM_TYPE, "multipart/form-data"):
        raise InvalidInput("send the form as a browser does", param="content-type")
    data = await request.form()
    fields = [(name, value) for name, value in data.multi_items() if isinstance(value, str)]
    form = Form(fields, request)
    secret = console.secret_in(request)
    if secret and (owner := await console.access.find(secret)) is not None:
        given = form.one("csrf").encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(given, owner.csrf.encode()):
            raise CrossSite("this form has grown old; go back, reload and try again")
    return form


def page(path: str, *, right: Right | None = Right.SEE) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """A page (GET). `right` None: for everybody."""
    return lambda handler: _route(get, path, handler, right)


def action(
    path: str, *, right: Right | None, most_bytes: int = MAX_FORM_BYTES
) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """A page's form (POST)."""
    return lambda handler: _route(post, path, handler, right, request_max_body_size=most_bytes)


def _route(verb: Any, path: str, handler: Callable[..., Any], right: Right | None, **more: Any) -> HTTPRouteHandler:
    provided: dict[str, Any] = {"console": _console}
    if verb is post:
        provided["form"] = _form
    if right is not None:
        provided["owner"] = _owner
    route: HTTPRouteHandler = verb(
        path,
        operation_id=f"console_{handler.__name__}",
        include_in_schema=False,
        dependencies={name: Provide(load) for name, load in provided.items()},
        exception_handlers={HTTPException: _on_http_error, FrontrowError: _on_problem, Exception: _on_bug},
        opt={"right": right or Right.SEE},
        status_code=200,
        **more,
    )(handler)
    return route


def _on_problem(request: Asked, error: FrontrowError) -> Response[bytes]:
    if isinstance(error, OwnerNeeded):
        back = request.url.path if request.method == "GET" else HOME
        return go_to(f"{SIGN_IN}?back={quote(back, safe='/')}")
    headers = {"retry-after": str(max(1, int(error.retry_after_s)))} if error.retry_after_s else {}
    return _problem(request, error.http_status, sentence_of(error), headers)


def _on_http_error(request: Asked, error: HTTPException) -> Response[bytes]:
    return _problem(request, error.status_code, sentence_of(Forbidden("") if error.status_code == 413 else None), {})


def _on_bug(request: Asked, error: Exception) -> Response[bytes]:
    log.error("a page of the console failed", exc_info=error)
    return _problem(request, 500, sentence_of(None), {})


def _problem(request: Asked, status: int, text: str, headers: dict[str, str]) -> Response[bytes]:
    return render(request, "console/problem.html", None, status=status, headers=headers, problem=text)


def local_back(text: str) -> str:
    """Where to go after signing in: a page of the console."""
    plain = text.startswith(HOME) and text.isprintable() and "\\" not in text and "//" not in text
    return text if plain and len(text) < 200 and not text.startswith(SIGN_IN) else HOME


__all__ = ["HOME", "SIGN_IN", "FromConsole", "FromForm", "FromOwner", "action", "go_to", "local_back", "page"]
