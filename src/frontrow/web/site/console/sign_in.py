"""Owners sign in and out; a one-time link sets a password. What a link brings stands behind `#`, where no server sees
it; a script, or the person, puts it into the form."""

from typing import Any

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.core.errors import FrontrowError, NotFound
from frontrow.shared.cookie_headers import cookie_line
from frontrow.waitingroom.console.access import SignedInOwner
from frontrow.web.http.cookies import LANGUAGE_COOKIES
from frontrow.web.site.console.console import Asked, console_of
from frontrow.web.site.console.refusals import sentence_of
from frontrow.web.site.console.render import render
from frontrow.web.site.console.routes import (
    HOME,
    SIGN_IN,
    FromConsole,
    FromForm,
    action,
    go_to,
    local_back,
    page,
)
from frontrow.web.site.languages import LANGUAGES

BEGIN = "/console/begin"
MOST_PASSWORD_CHARS = 1_024
YEAR_S = 365 * 86_400


@page(SIGN_IN, right=None)
async def sign_in_page(request: Asked, console: FromConsole) -> Response[bytes]:
    """Email address and password."""
    if await console.owner_in(request) is not None:
        return go_to(HOME)
    back = local_back(request.query_params.get("back", ""))
    first = not await console.access.owners()
    return render(
        request, "console/sign-in.html", None, back=back, email="", first=first, allowed=console.may_sign_in(request)
    )


@action(SIGN_IN, right=None)
async def sign_in(request: Asked, console: FromConsole, form: FromForm) -> Response[bytes]:
    """Start a session."""
    back, email = local_back(form.one("back")), form.one("email", 254)
    if not console.may_sign_in(request):
        return go_to(SIGN_IN)
    try:
        password = form.secret("password", MOST_PASSWORD_CHARS)
        signed_in = await console.access.sign_in(email, password, console.address_in(request))
    except FrontrowError as error:
        if error.http_status >= 500:
            raise
        return render(
            request,
            "console/sign-in.html",
            None,
            status=error.http_status,
            back=back,
            email=email,
            first=False,
            allowed=True,
            problem=sentence_of(error),
        )
    return _entered(request, signed_in, back)


def _entered(request: Asked, signed_in: SignedInOwner, path: str) -> Response[bytes]:
    return go_to(path, {"set-cookie": console_of(request).session_cookie(signed_in.secret)})


@page(BEGIN, right=None)
async def begin_page(request: Asked, console: FromConsole) -> Response[bytes]:
    """Where a one-time link leads."""
    return _begin(request, allowed=console.may_sign_in(request))


def _begin(request: Asked, *, status: int = 200, allowed: bool = True, **typed: Any) -> Response[bytes]:
    given = {"link": "", "email": "", "name": "", "field": "", "problem": ""} | typed
    return render(
        request, "console/begin.html", None, status=status, script="js/console/begin.js", allowed=allowed, **given
    )


@action(BEGIN, right=None)
async def begin(request: Asked, console: FromConsole, form: FromForm) -> Response[bytes]:
    """Set a password by the link, and sign in."""
    if not console.may_sign_in(request):
        return go_to(BEGIN)
    link, email, name = form.one("link", 400), form.one("email", 254), form.one("name", 200)
    try:
        password = form.secret("password", MOST_PASSWORD_CHARS)
        signed_in = await console.access.use_link(link, email, name, password, console.address_in(request))
    except FrontrowError as error:
        if error.http_status >= 500:
            raise
        field = "link" if error.code == "link_spent" else error.param or ""
        return _begin(
            request,
            status=error.http_status,
            link=link,
            email=email,
            name=name,
            field=field,
            problem=sentence_of(error),
        )
    return _entered(request, signed_in, HOME)


@action("/console/sign-out", right=None)
async def sign_out(request: Asked, console: FromConsole, form: FromForm) -> Response[bytes]:
    """End this session."""
    await console.access.sign_out(console.secret_in(request))
    return go_to(SIGN_IN, {"set-cookie": console.session_cookie("", 0)})


@get("/console/language/{language:str}", operation_id="console_language", include_in_schema=False)
async def choose_language(request: Asked, language: FromPath[str]) -> Response[bytes]:
    """Remember a language and go back."""
    if language not in LANGUAGES:
        raise NotFound("there is no such language")
    secure = console_of(request).settings.secure
    cookie = cookie_line(LANGUAGE_COOKIES, language, YEAR_S, secure=secure)
    back = request.query_params.get("back", "")
    before = (SIGN_IN, BEGIN)  # pages without an owner
    return go_to(back if back in before else local_back(back), {"set-cookie": cookie})


CONSOLE_ROUTES: list[HTTPRouteHandler] = [sign_in_page, sign_in, begin_page, begin, sign_out, choose_language]
