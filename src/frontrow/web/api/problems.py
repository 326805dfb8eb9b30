"""Errors over HTTP: RFC 9457 problem+json with stable codes, from one table.

`PROBLEMS` says for each code its status, its title and what to do about it; docs/errors.md is made from it, and a test
holds it against every error class that a handler can raise.
"""

import logging
from typing import Any, Final, NamedTuple

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException

from frontrow.core.errors import FrontrowError
from frontrow.web.api.problem_rows import ROWS
from frontrow.web.endpoints.messages import EndpointResponse, problem_answer

log = logging.getLogger("frontrow.web")


class Advice(NamedTuple):
    """One row of the table."""

    status: int
    title: str
    what_to_do: str


PROBLEMS: Final[dict[str, Advice]] = {
    "bad_request": Advice(400, "Bad request", "Send what the API's document describes."),
    "unauthorised": Advice(401, "Unauthorised", "Send a valid pass, session, API key or booking token."),
    "forbidden": Advice(403, "Forbidden", "Ask somebody whose role allows it."),
    "not_found": Advice(404, "Not found", "Check the address and the ids in it."),
    "method_not_allowed": Advice(405, "Method not allowed", "Use one of the methods in `Allow`."),
    "refused": Advice(409, "Refused", "Read the detail; repeating it changes nothing."),
    "body_too_large": Advice(413, "Body too large", "Send less."),
    "invalid_input": Advice(422, "Invalid input", "Correct the field named by `param`."),
    "rate_limited": Advice(429, "Too many requests", "Wait for `Retry-After`; asking more often does not help."),
    "error": Advice(500, "Our fault", "Try again later; it has been logged."),
    "overloaded": Advice(503, "Overloaded", "Try again after `Retry-After`."),
    "unavailable": Advice(503, "Unavailable", "Try again after `Retry-After`."),
    "unsupported_media_type": Advice(415, "Unsupported media type", "Send the body as application/json."),
    "sign_in_needed": Advice(401, "Sign in needed", "Sign in, or send an API key."),
    "wrong_credentials": Advice(401, "Wrong credentials", "Check the address, the password and the code."),
    "second_factor_needed": Advice(403, "Second factor needed", "Send the code, or set up the second factor first."),
    "cross_site": Advice(403, "Cross site", "Send requests from our own pages, with the session's CSRF token."),
    "not_allowed": Advice(403, "Not allowed", "Ask somebody whose role allows it."),
    "person_not_found": Advice(404, "Person not found", "Check the id; it may be gone."),
    "other_browser": Advice(409, "Other browser", "Open the link where it was asked for, or ask for a new one."),
    "already_member": Advice(409, "Already member", "Sign in with the account this address has."),
    "last_owner": Advice(409, "Last owner", "Make another member an owner first."),
    "link_spent": Advice(404, "Link spent", "Ask for a new link."),
    "seal_broken": Advice(409, "Seal broken", "Begin the set-up again."),
    "event_move_refused": Advice(409, "Event move refused", "Read the event's status; it says what is possible."),
    "fixed_once_published": Advice(409, "Fixed once published", "Make a new event, or leave this field alone."),
    "reseat_refused": Advice(409, "Reseat refused", "Choose free seats of the same price."),
    "rules_are_set": Advice(409, "Rules are set", "The waitlist's rules are set once; go by those it has."),
    "changed_meanwhile": Advice(412, "Changed meanwhile", "Read it again, then make your change with the new ETag."),
    "venue_not_found": Advice(404, "Venue not found", "Check the id."),
    "aside_not_found": Advice(404, "Aside not found", "Check the number in the list of what was put aside."),
    "too_many_endpoints": Advice(409, "Too many endpoints", "Remove a webhook of this event first."),
    "webhook_not_found": Advice(404, "Webhook not found", "Check the id; it may be removed."),
    "delivery_not_found": Advice(404, "Delivery not found", "Check the number in the list of deliveries."),
    "too_many_viewers": Advice(503, "Too many viewers", "Poll the same figures, or try again after `Retry-After`."),
    "too_many_tries": Advice(429, "Too many tries", "Wait for `Retry-After`, then try again."),
}
PROBLEMS.update({code: Advice(*row) for code, row in ROWS.items()})


def table() -> str:
    """The table as Markdown: docs/errors.md."""
    rows = sorted(PROBLEMS.items(), key=lambda one: (one[1].status, one[0]))
    lines = [f"| {row.status} | `{code}` | {row.title} | {row.what_to_do} |" for code, row in rows]
    head = (
        "# Errors\n\nEvery error is `application/problem+json` (RFC 9457) with a stable `code`. This page is made from"
        " the one table\nin `frontrow.web.api.problems`; `frontrow.web.api.problems.table()` writes it.\n\n"
        "| status | code | title | what to do |\n|---|---|---|---|\n"
    )
    return head + "\n".join(lines) + "\n"


class Problem(msgspec.Struct, omit_defaults=True):
    """The body of every error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    param: str = ""


class HttpProblem(FrontrowError):
    """What the framework refuses by itself (no such path, wrong method, a body that does not fit), in the same form."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.http_status = status  # type: ignore[misc]
        self.code = next((code for code, row in PROBLEMS.items() if row.status == status), "bad_request")  # type: ignore[misc]

    def problem(self) -> dict[str, Any]:
        return super().problem() | {"title": self.code.replace("_", " ").capitalize()}


def on_problem(request: Request[Any, Any, Any], error: FrontrowError) -> Response[bytes]:
    return response(problem_answer(error))


def on_http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """The framework's own refusals; details of a body that does not fit are told, our insides are not."""
    detail = error.detail
    extra = error.extra if isinstance(error.extra, list) else []
    problem = HttpProblem(error.status_code, detail)
    if error.status_code == 400 and extra:
        problem = HttpProblem(422, str(extra[0].get("message", detail)))
        problem.param = str(extra[0].get("key", "")) or None
    answer = response(problem_answer(problem))
    for name, value in (error.headers or {}).items():
        answer.headers[name] = value
    return answer


def on_bug(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    log.error("a handler failed", exc_info=error)
    return response(problem_answer(FrontrowError("this is our fault; it has been logged")))


def response(answer: EndpointResponse) -> Response[bytes]:
    """An `EndpointResponse` as Litestar sends it."""
    pairs = answer.headers()
    kind = next((value for name, value in pairs if name == "content-type"), "application/json")
    headers = {name: value for name, value in pairs if name != "content-type"}
    return Response(answer.body, status_code=answer.status, headers=headers, media_type=kind)
