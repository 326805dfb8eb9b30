"""Errors as pages: what happened, in plain words of the visitor's language, and what to do next."""

import logging
from typing import Any, Final

from litestar import Request, Response
from litestar.exceptions import HTTPException

from frontrow.boxoffice.people.model.people import NotAllowed, SecondFactorNeeded, SignInNeeded
from frontrow.core.errors import FrontrowError
from frontrow.web.http.access import Caller
from frontrow.web.http.problems import on_http_error
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render, words_for

log = logging.getLogger("frontrow.web")
Asked = Request[Any, Any, Any]

NO_RIGHT: Final = -403  # 403 for who is signed in, but may not
# status -> the page's heading and sentence
KINDS: Final = {
    401: (
        N_("Please sign in"),
        N_("This page is private. Sign in, or open it in the browser you bought with."),
    ),
    403: (
        N_("That is not possible here"),
        N_("The page you came from may be out of date. Go back, reload it and try again."),
    ),
    NO_RIGHT: (
        N_("Your role does not allow this"),
        N_("The owner of your team can change what you are allowed to do."),
    ),
    404: (
        N_("We cannot find this page"),
        N_("The address may be wrong, or the page no longer exists."),
    ),
    410: (
        N_("Your time ran out"),
        N_("The seats went back on sale. Nothing was charged."),
    ),
    429: (
        N_("Too many requests"),
        N_("Please wait a few seconds, then try again. Your place and your seats are kept."),
    ),
    500: (
        N_("Something went wrong"),
        N_("There was a problem on our side. It has been logged. Please try again in a moment."),
    ),
    503: (
        N_("Back in a moment"),
        N_("We are very busy or under maintenance. Your place and seats are kept. This page retries automatically."),
    ),
}


def problem_page(request: Asked, status: int, detail: str = "", retry_after_s: float | None = None) -> Response[bytes]:
    """The page of an error."""
    heading, sentence = KINDS.get(status, KINDS[500] if status >= 500 else KINDS[403])
    again_s = max(1, min(300, round(retry_after_s))) if retry_after_s else (5 if status == 503 else 0)
    headers, status = {"retry-after": str(again_s)} if again_s else {}, abs(status)
    if not hasattr(request.state, "caller"):
        request.state.caller = Caller()
    script = "js/again.js" if status == 503 else ""
    return render(
        request,
        "problem.html",
        script=script,
        status=status,
        headers=headers,
        heading=heading,
        sentence=sentence,
        code=status,
        detail=detail,
        again_s=again_s,
    )


def on_page_problem(request: Asked, error: FrontrowError) -> Response[bytes]:
    """Errors of our own code. A page that needs a session redirects to signing in."""
    if isinstance(error, SignInNeeded | SecondFactorNeeded):
        staff = request.url.path.startswith(("/organiser", "/door"))
        where = "/organiser/sign-in" if staff else "/sign-in"
        return Response(
            b"", status_code=303, headers={"location": f"{where}?back={request.url.path}"}, media_type="text/plain"
        )
    if isinstance(error, NotAllowed):
        return problem_page(request, NO_RIGHT)
    if error.http_status == 500:
        log.error("a page failed", exc_info=error)
    detail = error.message if words_for(request).language == "en" and error.http_status < 500 else ""
    return problem_page(request, error.http_status, detail, error.retry_after_s)


def on_page_http_error(request: Asked, error: HTTPException) -> Response[bytes]:
    """Errors of the framework."""
    return problem_page(request, error.status_code)


def on_page_bug(request: Asked, error: Exception) -> Response[bytes]:
    log.error("a page failed", exc_info=error)
    return problem_page(request, 500)


def on_any_http_error(request: Asked, error: HTTPException) -> Response[bytes]:
    """For unknown paths: a page for browsers, problem+json for programs."""
    is_api = request.url.path.startswith(("/v1/", "/static/"))
    if not is_api and "text/html" in request.headers.get("accept", ""):
        return problem_page(request, error.status_code)
    return on_http_error(request, error)
