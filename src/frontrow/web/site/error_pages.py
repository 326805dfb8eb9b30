"""Errors as pages: what happened, in plain words of the visitor's language, and what to do next.

What is refused before any page is rendered (rate limited, overloaded, too late, unknown room) is a small page of its
own (`problem_notice`). Programs get problem+json as ever.
"""

import logging
from typing import Any, Final

from litestar import Request, Response
from litestar.exceptions import HTTPException

from frontrow.boxoffice.people.model.people import NotAllowed, SecondFactorNeeded, SignInNeeded
from frontrow.core.errors import FrontrowError
from frontrow.shared.cookie_headers import read_cookie
from frontrow.web.http.cookies import LANGUAGE_COOKIES
from frontrow.web.http.messages import NO_STORE, EndpointRequest, EndpointResponse
from frontrow.web.http.overflow_page import ForPeople, Notices
from frontrow.web.http.problems import on_http_error
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_, Words, best_language, words_of
from frontrow.web.site.render import render

log = logging.getLogger("frontrow.web")
Asked = Request[Any, Any, Any]

NO_RIGHT: Final = -403  # 403 for who is signed in, but may not
LATER: Final = (429, 503)  # the same request works a moment later
BUSY_AGAIN_S: Final = 5
LEAST_AGAIN_S: Final = 5
MOST_AGAIN_S: Final = 300
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
        N_("One moment, please"),
        N_(
            "Many requests come from your connection right now. Your place and your seats are kept. This page retries automatically."  # noqa: E501
        ),
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
# code -> heading and sentence, where the status says too little
CODES: Final = {
    "booking_not_found": (
        N_("This booking is not open in this browser"),
        N_("Open the link in your email, or sign in."),
    ),
    "link_spent": (N_("This link no longer works"), N_("It was used already, or it is too old. Request a new one.")),
    "too_many_tries": (N_("Too many tries"), N_("Please wait a few minutes, then try again.")),
}
# a form that was refused: sending it again by itself could surprise, so the page goes back to it
FORM_REFUSED: Final = N_(
    "Nothing was sent, because too much is going on right now. Your place and your seats are kept. You get back to the form automatically; then try again."  # noqa: E501
)
HOME: Final = N_("See all events")


def texts_of(status: int, code: str, *, is_form: bool) -> tuple[str, str]:
    """The heading and the sentence for a refusal. No words of the error itself: they are for programs."""
    heading, sentence = CODES.get(code) or KINDS.get(status, KINDS[500] if status >= 500 else KINDS[403])
    return heading, FORM_REFUSED if is_form and status in LATER and code not in CODES else sentence


def problem_page(request: Asked, status: int, code: str = "", retry_after_s: float | None = None) -> Response[bytes]:
    """The page of an error. What works a moment later is tried again automatically."""
    is_form = request.method == "POST"
    heading, sentence = texts_of(status, code, is_form=is_form)
    again_s = (
        max(1, min(MOST_AGAIN_S, -int(-retry_after_s // 1)))
        if retry_after_s
        else (BUSY_AGAIN_S if status == 503 else 0)
    )
    headers, status = {"retry-after": str(again_s)} if again_s else {}, abs(status)
    if not hasattr(request.state, "caller"):
        platform: Platform = request.app.state.platform
        request.state.caller = platform.callers.visitor(request.headers)
    retries = again_s if status in LATER and code not in CODES else 0
    return render(
        request,
        "problem.html",
        script="js/again.js" if retries else "",
        status=status,
        headers=headers,
        heading=heading,
        sentence=sentence,
        code=status,
        retries_s=retries,
        is_form=is_form,
        ways=_ways_on(request, status, code, retries=bool(retries)),
    )


def _ways_on(request: Asked, status: int, code: str, *, retries: bool) -> list[tuple[str, str]]:
    """Where to go from here: addresses and what their buttons say, the best first."""
    path = request.url.path
    if code == "booking_not_found" or status == 401:
        return [(f"/sign-in?back={path if request.method == 'GET' else '/tickets'}", N_("Sign in")), ("/", HOME)]
    if code == "link_spent":
        return [("/sign-in", N_("Sign in")), ("/", HOME)]
    if retries and request.method == "GET":
        return [(path + (f"?{request.url.query}" if request.url.query else ""), N_("Try again"))]
    parts = path.split("/")
    if status in (409, 410, 500, 502, *LATER) and len(parts) > 2 and parts[1] in ("checkout", "bookings"):
        return [("/".join(parts[:3]), N_("Back to your booking")), ("/", HOME)]
    if path.startswith("/organiser"):
        return [("/organiser", N_("To the overview"))]
    return [("/", HOME)]


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
    return problem_page(request, error.http_status, error.code, error.retry_after_s)


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


def words_in(ask: EndpointRequest) -> Words:
    """The words of the visitor's language."""
    chosen = read_cookie((ask.header(b"cookie") or b"").decode("latin-1"), LANGUAGE_COOKIES)
    return words_of(best_language(chosen, accepted(ask)))


def accepted(ask: EndpointRequest) -> str:
    return (ask.header(b"accept-language") or b"")[:200].decode("latin-1")


def wants_page(method: str, ask: EndpointRequest) -> bool:
    """Whether a browser is about to show the answer to somebody."""
    return method in ("GET", "POST") and b"text/html" in (ask.header(b"accept") or b"")


def notices_for_people(notices: Notices) -> ForPeople:
    """The page for a refusal of the request middleware or the room; called before any handler runs."""

    def page(method: str, ask: EndpointRequest, error: FrontrowError) -> EndpointResponse | None:
        if not wants_page(method, ask):
            return None
        return problem_notice(notices, ask, error, is_form=method == "POST")

    return page


def problem_notice(notices: Notices, ask: EndpointRequest, error: FrontrowError, *, is_form: bool) -> EndpointResponse:
    """The page of an error. A temporary one reloads automatically; the answer to a form goes back to it instead."""
    status, words = error.http_status, words_in(ask)
    heading, sentence = texts_of(status, error.code, is_form=is_form)
    after_s = _whole_s(error.retry_after_s)
    head = NO_STORE + (b"retry-after: %d\r\n" % after_s if after_s else b"")
    texts = {"heading": heading, "text": sentence, "home": HOME}
    # Spread the reloads, so that not everyone comes back in the same instant.
    refresh_s = max(LEAST_AGAIN_S, after_s) if status in LATER else 0
    return notices.answer(status, words, texts, refresh_s=refresh_s, goes_back=is_form, head=head)


def _whole_s(retry_after_s: float | None) -> int:
    """The pause in whole seconds, for a header; 0 if there is none."""
    return max(1, min(MOST_AGAIN_S, -int(-retry_after_s // 1))) if retry_after_s else 0
