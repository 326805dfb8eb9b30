"""Responses that replace the application's: 429 (limit used up), 503 (cannot count), 400 (the client is not named).

Under attack most responses are these, so they are byte templates. Rule names are letters, digits and `_.-` (`Rule`
checks it), so they need no escaping.
"""

import json
from typing import Any

from frontrow.core.errors import ConfigError, FrontrowError
from frontrow.limits.http.headers import QUOTA_EXCEEDED, REDUCED_CAPACITY, Field, problem, retry_s, whole
from frontrow.limits.quota import Decision

Response = tuple[int, list[Field], bytes]

_TYPE = (b"content-type", b"application/problem+json")
_RULE, _LIMIT, _RETRY = "@rule@", "@limit@", "@retry@"


def _template(status: int, kind: str, title: str, detail: str) -> bytes:
    body = problem(status, kind, title, detail, {"violated-policies": [_RULE]}).replace(b"%", b"%%")
    return (
        body.replace(_RULE.encode(), b"%(rule)b")
        .replace(_LIMIT.encode(), b"%(limit)d")
        .replace(b"@retry@", b"%(retry)d")
    )


_USED_UP = _template(
    429, QUOTA_EXCEEDED, "Too many requests", f"The limit of {_LIMIT} ({_RULE}) is used up; try again in {_RETRY} s."
)
_UNCOUNTED = _template(
    503,
    REDUCED_CAPACITY,
    "Temporarily reduced capacity",
    f"Requests under {_RULE} cannot be counted; retry in {_RETRY} s.",
)


def refusal_response(decision: Decision, fields: list[Field]) -> Response:
    """429 with the time to retry; 503 if the store was down and the rule fails closed."""
    down = decision.source == "closed"
    wait_s = retry_s(decision)
    about = {b"rule": decision.rule.encode(), b"limit": decision.limit, b"retry": wait_s}
    body: bytes = (_UNCOUNTED if down else _USED_UP) % about
    head = [_TYPE, (b"content-length", whole(len(body))), (b"retry-after", whole(wait_s))]
    return 503 if down else 429, head + fields, body


def missing_client_response(error: FrontrowError) -> Response:
    """400: a rule counts by an id that this request does not have."""
    body = problem(
        error.http_status, f"urn:frontrow:{error.code}", error.title(), error.message, {"param": error.param}
    )
    return error.http_status, [_TYPE, (b"content-length", whole(len(body)))], body


def own_response(made: Any, response: Response) -> Response:
    """`response` with the body that `on_refused` made: an object for JSON, a text, or (content type, text).

    None keeps the standard body. Status and headers stay.
    """
    if made is None:
        return response
    kind, body = made if isinstance(made, tuple) and len(made) == 2 else ("", made)
    if isinstance(body, dict | list) and not kind:
        kind, body = "application/json", json.dumps(body)
    if isinstance(body, str):
        kind, body = kind or "text/plain; charset=utf-8", body.encode()
    if not kind or not isinstance(body, bytes):
        forms = 'a dict, a text, ("text/html", text) or a response of your framework'
        raise ConfigError(f"on_refused returned {made!r:.80}; return {forms}", param="on_refused")
    status, fields, _ = response
    return status, [(b"content-type", kind.encode("latin-1")), (b"content-length", whole(len(body))), *fields[2:]], body
