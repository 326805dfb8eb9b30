"""Limits for Litestar: a guard, and a middleware with one count for all routes.

    limits = RateLimits(store="redis://127.0.0.1:6379/0")

    @get("/codes", guards=[limits.limit("5/minute")])
    async def send_code() -> str: ...

    app = Litestar([send_code], plugins=[limits])   # the plugin writes the headers of allowed requests

Guards run after authentication, so `key="user"` is the signed-in user. A refused request raises `RateLimited`.
"""

import copy
from collections.abc import Callable
from typing import Any, Unpack

from litestar.config.app import AppConfig
from litestar.connection import ASGIConnection, Request
from litestar.exceptions import HTTPException, TooManyRequestsException
from litestar.handlers import BaseRouteHandler
from litestar.plugins import InitPlugin
from litestar.types import Message, Scope

from frontrow.core.errors import ConfigError
from frontrow.limits.http.asgi import SCOPES, RateLimitMiddleware
from frontrow.limits.http.body_parts import BodyPart
from frontrow.limits.http.endpoints import endpoint_name
from frontrow.limits.http.exempt import exempt, is_exempt
from frontrow.limits.http.headers import ROUTE_FIELDS, Field, as_text, retry_s, tightest
from frontrow.limits.http.open_charges import agive_back, tell_charge
from frontrow.limits.http.refusal_responses import refusal_response
from frontrow.limits.http.request_limits import Charge, MissingClient, Options, RouteOptions
from frontrow.limits.http.route_limits import LimitOptions, QuotaLike, QuotaOf, RouteLimits
from frontrow.limits.http.rule_conversion import Rules
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
    "limit",
    "middleware",
]


async def _body(connection: Any, max_bytes: int) -> bytes | None:
    """The body of a request that says how long it is. The handler can read it again."""
    length = connection.headers.get("content-length", "")
    if not isinstance(connection, Request) or not length.isdecimal() or int(length) > max_bytes:
        return None
    return await connection.body()


CONNECTIONS = SCOPES.inside(
    lambda connection: connection.scope, user=lambda connection: connection.scope.get("user"), body=_body
)
Connection = ASGIConnection[Any, Any, Any, Any]


class RateLimited(TooManyRequestsException):
    """A limit refused this request. `decision` says which and until when. `headers` belong on the response."""

    def __init__(self, charge: Charge, fields: list[Field]) -> None:
        self.decision = charge.decision
        status, all_fields, self.body = refusal_response(charge.decision, fields)
        detail = f"The limit of {self.decision.limit} is used up; try again in {retry_s(self.decision)} s."
        super().__init__(detail=detail, status_code=status, headers=dict(as_text(all_fields[2:])))


class RateLimits(InitPlugin):
    """Limits of single routes that share a store and options: those of the middleware, without rules."""

    def __init__(self, store: Any = "memory://", **options: Unpack[RouteOptions]) -> None:
        if "on_refused" in options:
            message = "for a body of your own, give Litestar an exception handler for RateLimited"
            raise ConfigError(message, param="on_refused")
        self.routes = RouteLimits(CONNECTIONS, store=store, **options)
        self.metrics = self.routes.metrics

    def on_app_init(self, app_config: AppConfig) -> AppConfig:
        """Litestar calls this: write the headers of allowed requests, and close the store in the end."""
        app_config.before_send.append(_write_fields)
        app_config.on_shutdown.append(self.aclose)
        return app_config

    def limit(self, *quotas: QuotaLike | QuotaOf, **options: Unpack[LimitOptions]) -> Callable[..., Any]:
        """A guard. `options`: `key`, `name`, `methods`, `cost`, `on_missing`."""
        if options.get("statuses"):
            raise ConfigError("a guard does not see the response; use the middleware", param="statuses")
        limit = self.routes.make(*quotas, **options)

        async def count_request(connection: Connection, handler: BaseRouteHandler) -> None:
            if is_exempt(handler):
                return
            name = f"{connection.scope.get('path_template', '')} {endpoint_name(handler.fn)}"
            try:
                charge = await limit.acheck(connection, name, str(connection.scope.get("method", "GET")))
            except MissingClient as error:
                raise HTTPException(detail=error.message, status_code=error.http_status) from error
            if charge is None:  # exempt
                return
            state: Any = connection.scope
            told = tell_charge(state, charge)
            if not charge.decision.allowed:
                await agive_back(state)
                raise RateLimited(charge, told.to_write())

        return count_request

    async def aclose(self) -> None:
        """Close the store's connections."""
        await self.routes.aclose()


async def _write_fields(message: Message, scope: Scope) -> None:
    told: Any = scope.get(ROUTE_FIELDS)
    if message["type"] != "http.response.start" or not told:
        return
    if not any(name == b"x-ratelimit-limit" for name, _ in message["headers"]):  # a refusal has them already
        message["headers"] = [*message["headers"], *tightest(told)]


def middleware(
    rules: Rules, store: Any = "memory://", **options: Unpack[Options]
) -> Callable[[Any], RateLimitMiddleware]:
    """`RateLimitMiddleware` for `Litestar(middleware=[…])`, with one count for all routes.

    Litestar makes a middleware anew for every route. With `DefineMiddleware` each of them would count by itself.
    """
    shared = RateLimitMiddleware(_no_app, rules, store, **options)

    def wrap(app: Any) -> RateLimitMiddleware:
        own = copy.copy(shared)
        own.app = app
        return own

    return wrap


async def _no_app(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("Litestar gives the application")


limit = RateLimits().limit
