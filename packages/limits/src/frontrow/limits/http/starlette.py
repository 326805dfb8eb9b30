"""Limits for Starlette: a decorator for endpoints. As middleware, add `frontrow.limits.http.asgi.RateLimitMiddleware`.

    @limited("5/minute")
    async def send_code(request): ...

A refused request raises `RateLimited`, an `HTTPException`. Register an exception handler for it to send a body of your
own, or `problem_response` for the body that the middleware sends.
"""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, Unpack
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from frontrow.core.errors import ConfigError
from frontrow.limits.http.asgi import SCOPES, RateLimitMiddleware
from frontrow.limits.http.body_parts import BodyPart
from frontrow.limits.http.endpoints import EndpointCalls, LimitDecorator, decorate
from frontrow.limits.http.exempt import exempt
from frontrow.limits.http.headers import Field, as_text, retry_s
from frontrow.limits.http.refusal_responses import refusal_response
from frontrow.limits.http.request_limits import Charge, MissingClient, RouteOptions
from frontrow.limits.http.route_limits import LimitOptions, QuotaLike, QuotaOf, RouteLimits
from frontrow.limits.quota import Decision, Quota
from frontrow.limits.rules import RequestRule, RuleBook
from frontrow.limits.tiers import Tiers

__all__ = [
    "BodyPart",
    "Decision",
    "Quota",
    "RateLimitMiddleware",
    "RateLimited",
    "RateLimits",
    "RequestRule",
    "RuleBook",
    "Tiers",
    "exempt",
    "limited",
    "problem_response",
]

F = TypeVar("F", bound=Callable[..., Any])


async def body_of(request: HTTPConnection, max_bytes: int) -> bytes | None:
    """The body of a request that says how long it is. The endpoint can read it again."""
    length = request.headers.get("content-length", "")
    if not isinstance(request, Request) or not length.isdecimal() or int(length) > max_bytes:
        return None
    try:
        return await request.body()
    except RuntimeError:  # FastAPI has read it as a form already
        fields = [(name, value) for name, value in (await request.form()).multi_items() if isinstance(value, str)]
        return urlencode(fields).encode()


REQUESTS = SCOPES.inside(lambda request: request.scope, user=lambda request: request.scope.get("user"), body=body_of)


class RateLimited(HTTPException):
    """A limit refused this request. `decision` says which and until when. `headers` belong on the response."""

    def __init__(self, charge: Charge, fields: list[Field]) -> None:
        self.decision = charge.decision
        status, all_fields, self.body = refusal_response(charge.decision, fields)
        detail = f"The limit of {self.decision.limit} is used up; try again in {retry_s(self.decision)} s."
        super().__init__(status, detail, dict(as_text(all_fields[2:])))  # without content type and length


def problem_response(request: Request, error: Exception) -> Response:
    """An exception handler for `RateLimited` that answers as the middleware does, with RFC 9457 JSON."""
    assert isinstance(error, RateLimited)
    return Response(error.body, error.status_code, error.headers, "application/problem+json")


class RateLimits:
    """Limits of single endpoints that share a store and options: those of the middleware, without rules."""

    def __init__(self, store: Any = "memory://", **options: Unpack[RouteOptions]) -> None:
        self.routes = RouteLimits(REQUESTS, store=store, **without_own_body(options))
        self.metrics = self.routes.metrics

    def limited(self, *quotas: QuotaLike | QuotaOf, **options: Unpack[LimitOptions]) -> Callable[[F], F]:
        """Limit an endpoint. `options`: `key`, `name`, `methods`, `cost`, `statuses`, `on_missing`."""
        limit = self.routes.make(*quotas, **options)
        return LimitDecorator(lambda endpoint: decorate(endpoint, limit, CALLS), quotas)

    async def aclose(self) -> None:
        """Close the store's connections."""
        await self.routes.aclose()


def without_own_body(options: RouteOptions) -> RouteOptions:
    """Refuse `on_refused`: these frameworks have exception handlers for that."""
    if "on_refused" in options:
        raise ConfigError("for a body of your own, register an exception handler for RateLimited", param="on_refused")
    return options


def raise_refusal(request: HTTPConnection, charge: Charge, fields: list[Field]) -> NoReturn:
    """Refuse a request in the way the framework's exception handlers see it."""
    raise RateLimited(charge, fields)


def raise_nameless(request: HTTPConnection, error: MissingClient) -> NoReturn:
    """Answer 400: the request does not say who it is from."""
    raise HTTPException(error.http_status, error.message) from error


def status_of_error(error: Exception) -> int:
    """The status of the response that an exception becomes."""
    return error.status_code if isinstance(error, HTTPException) else 500


def write_fields(request: HTTPConnection, response: Response, fields: list[Field]) -> None:
    """Put headers into a response, in place of those of the same names."""
    raw = response.headers.raw
    if raw:
        names = [name for name, _ in fields]
        raw[:] = [kept for kept in raw if kept[0] not in names]
    raw.extend(fields)


def _request_among(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Request:
    for value in (*args, *kwargs.values()):
        if isinstance(value, Request):
            return value
    raise ConfigError("a limited endpoint must take the request, like async def home(request)")


CALLS = EndpointCalls(
    request_of=_request_among,
    state_of=lambda request: request.scope,
    method_of=lambda request: request.method,
    refuse=raise_refusal,
    refuse_nameless=raise_nameless,
    to_response=lambda made: made,
    status_of=lambda request, response: response.status_code,
    status_of_error=status_of_error,
    write=write_fields,
)

limited = RateLimits().limited
