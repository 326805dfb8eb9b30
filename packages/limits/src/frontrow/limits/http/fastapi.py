"""Limits for FastAPI: a dependency and a decorator. As middleware, add `RateLimitMiddleware` of `http.asgi`.

    @app.post("/codes", dependencies=[Depends(limit("5/minute"))])
    async def send_code(): ...

A refused request raises `RateLimited`, an `HTTPException`. Register an exception handler for it to send a body of your
own. `limit(…, user=current_user)` counts by the user that your own dependency returns.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, TypeVar, Unpack, get_args, get_origin

from fastapi import Depends, Request, Response
from fastapi.requests import HTTPConnection

from frontrow.core.errors import ConfigError
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.body_parts import BodyPart
from frontrow.limits.http.caller_identity import user_name
from frontrow.limits.http.endpoints import EndpointCalls, LimitDecorator, decorate, endpoint_name
from frontrow.limits.http.exempt import exempt, is_exempt
from frontrow.limits.http.headers import Field
from frontrow.limits.http.open_charges import agive_back, tell_charge
from frontrow.limits.http.request_limits import MissingClient, RouteOptions
from frontrow.limits.http.route_limits import LimitOptions, QuotaLike, QuotaOf, RouteLimit, RouteLimits
from frontrow.limits.http.starlette import (
    REQUESTS,
    RateLimited,
    problem_response,
    raise_nameless,
    raise_refusal,
    status_of_error,
    without_own_body,
    write_fields,
)
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
    "limited",
    "problem_response",
]

F = TypeVar("F", bound=Callable[..., Any])
_CALL, _RESPONSE = "frontrow_call", "frontrow_response"  # the parameters that a limit adds to its endpoint
_STATE = "frontrow.limits.response"  # where in the scope the response stands that FastAPI adds headers from
_USER = "frontrow.limits.user"  # where in the scope the user of a dependency stands


class RateLimits:
    """Limits of single endpoints that share a store and options: those of the middleware, without rules."""

    def __init__(self, store: Any = "memory://", **options: Unpack[RouteOptions]) -> None:
        self.routes = RouteLimits(REQUESTS, store=store, **without_own_body(options))
        self.metrics = self.routes.metrics

    def limit(
        self, *quotas: QuotaLike | QuotaOf, user: Callable[..., Any] | None = None, **options: Unpack[LimitOptions]
    ) -> Callable[..., Any]:
        """A dependency: `Depends(limit("5/minute"))`. `options`: `key`, `name`, `methods`, `cost`, `on_missing`.

        `user` is the dependency that returns the signed-in user. The limit then counts by this user.
        """
        if options.get("statuses"):
            message = "a dependency does not see the response; use limited(…, statuses=…) or the middleware"
            raise ConfigError(message, param="statuses")
        if user is not None:
            if "key" in options:
                raise ConfigError("user says by whom to count; leave key out", param="key")
            options["key"] = _user_of
        limit = self.routes.make(*quotas, **options)

        # an HTTPConnection is a request or a WebSocket; a dependency of the whole application sees both
        async def count_request(request: HTTPConnection, response: Response, user: Any = None) -> None:
            if is_exempt(request.scope["endpoint"]):
                return
            request.scope[_USER] = user
            try:
                charge = await limit.acheck(request, _route_name(request), request.scope.get("method", "GET"))
            except MissingClient as error:
                raise_nameless(request, error)
            if charge is None:  # exempt
                return
            told = tell_charge(request.scope, charge)
            if not charge.decision.allowed:
                await agive_back(request.scope)
                raise_refusal(request, charge, told.to_write())
            write_fields(request, response, told.to_write())

        parameters = list(inspect.signature(count_request).parameters.values())
        parameters[2] = parameters[2].replace(default=Depends(user))
        signature = inspect.Signature(parameters if user is not None else parameters[:2])
        count_request.__signature__ = signature  # type: ignore[attr-defined]
        return count_request

    def limited(self, *quotas: QuotaLike | QuotaOf, **options: Unpack[LimitOptions]) -> Callable[[F], F]:
        """Limit an endpoint. `options`: `key`, `name`, `methods`, `cost`, `statuses`, `on_missing`."""
        limit = self.routes.make(*quotas, **options)
        return LimitDecorator(lambda endpoint: _limited(endpoint, limit), quotas)

    async def aclose(self) -> None:
        """Close the store's connections."""
        await self.routes.aclose()


def _route_name(request: HTTPConnection) -> str:
    """The route's pattern and function. The path itself would be another one for every id in it."""
    return f"{getattr(request.scope.get('route'), 'path', '')} {endpoint_name(request.scope['endpoint'])}"


def _limited(endpoint: Any, limit: RouteLimit) -> Any:
    """The endpoint behind a limit. FastAPI passes it the request and the response, which it need not take itself.

    FastAPI knows one parameter of each type per function. Those that the endpoint has, or that a limit further inside
    has added, are read. The others are added, and taken away again before the endpoint is called.
    """
    signature = inspect.signature(endpoint)
    found = _parameters_of_types(endpoint, signature)
    added: dict[str, type] = {
        name: kind for name, kind in ((_CALL, HTTPConnection), (_RESPONSE, Response)) if kind not in found
    }
    names: dict[type, str] = {**found, **{kind: name for name, kind in added.items()}}
    call_name, response_name = names[HTTPConnection], names[Response]

    def request_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Request:
        if call_name not in kwargs:
            raise ConfigError(f"{endpoint_name(endpoint)} has a limit, which needs a request: call it through FastAPI")
        request: Request = kwargs[call_name]
        request.scope[_STATE] = kwargs[response_name]
        for name in added:
            del kwargs[name]
        return request

    call: Any = decorate(endpoint, limit, replace(CALLS, request_of=request_of))
    kept = list(signature.parameters.values())
    at = next((n for n, each in enumerate(kept) if each.kind is inspect.Parameter.VAR_KEYWORD), len(kept))
    kept[at:at] = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=added[name]) for name in added]
    call.__signature__ = signature.replace(parameters=kept)
    return call


def _parameters_of_types(endpoint: Any, signature: inspect.Signature) -> dict[type, str]:
    """The names of the parameters that get the connection and the response, by type."""
    known = getattr(inspect.unwrap(endpoint), "__globals__", {})
    found: dict[type, str] = {}
    for name, parameter in signature.parameters.items():
        kind = parameter.annotation
        if isinstance(kind, str):  # `from __future__ import annotations`
            first, *rest = kind.split(".")
            kind = functools.reduce(lambda found, part: getattr(found, part, None), rest, known.get(first))
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        if kind is HTTPConnection or (isinstance(kind, type) and issubclass(kind, Response)):
            found[HTTPConnection if kind is HTTPConnection else Response] = name
    return found


def _user_of(request: HTTPConnection) -> str | None:
    return user_name(request.scope.get(_USER))


def _status_of(request: Request, made: Any) -> int:
    response = made if isinstance(made, Response) else request.scope[_STATE]
    return response.status_code or getattr(request.scope.get("route"), "status_code", None) or 200


def _write(request: Request, made: Any, fields: list[Field]) -> None:
    write_fields(request, made if isinstance(made, Response) else request.scope[_STATE], fields)


CALLS = EndpointCalls(
    request_of=lambda args, kwargs: kwargs[_CALL],
    state_of=lambda request: request.scope,
    method_of=lambda request: request.method,
    refuse=raise_refusal,
    refuse_nameless=raise_nameless,
    to_response=lambda made: made,
    status_of=_status_of,
    status_of_error=status_of_error,
    write=_write,
)

_limits = RateLimits()
limit = _limits.limit
limited = _limits.limited
