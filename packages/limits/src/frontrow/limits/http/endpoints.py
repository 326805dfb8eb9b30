"""Decorates the endpoints of a framework with a limit: check, call, settle, write the headers.

`EndpointCalls` says how one framework does each of these. The order is the same for all of them, and the same for
plain and for async endpoints.
"""

import functools
import inspect
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from frontrow.core.errors import ConfigError
from frontrow.limits.http.headers import Field
from frontrow.limits.http.open_charges import agive_back, give_back, tell_charge
from frontrow.limits.http.request_limits import Charge, MissingClient

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Limit(Protocol):
    """What an endpoint is limited by: a `RouteLimit`."""

    def check(self, request: Any, endpoint: str, method: str) -> Charge | None: ...

    async def acheck(self, request: Any, endpoint: str, method: str) -> Charge | None: ...


@dataclass(frozen=True, slots=True)
class EndpointCalls:
    """How a framework calls its endpoints, and what it takes for a response."""

    request_of: Callable[[tuple[Any, ...], dict[str, Any]], Any]  # from the arguments of the call
    state_of: Callable[[Any], MutableMapping[str, Any]]  # the ASGI scope or WSGI environ of a request
    method_of: Callable[[Any], str]
    refuse: Callable[[Any, Charge, list[Field]], Any]  # returns a response, or raises
    refuse_nameless: Callable[[Any, MissingClient], Any]
    to_response: Callable[[Any], Any]  # from what an endpoint returned
    status_of: Callable[[Any, Any], int]  # of a response to a request
    status_of_error: Callable[[Exception], int]
    write: Callable[[Any, Any, list[Field]], None]  # headers into the response to a request


def endpoint_name(endpoint: Any) -> str:
    """The name under which an endpoint is counted, the same in every process."""
    named = endpoint if hasattr(endpoint, "__qualname__") else type(endpoint)
    return f"{named.__module__}.{named.__qualname__}"


class LimitDecorator:
    """What `limited(…)` returns: it decorates an endpoint.

    A function in the place of quotas returns a quota per request. But whoever forgets the brackets of `@limited` puts
    the endpoint there. Then the framework gets this object for an endpoint, and asks it for what only functions have.
    """

    def __init__(self, decorate: Callable[[Any], Any], quotas: Sequence[Any], also: type | tuple[()] = ()) -> None:
        self._decorate = decorate
        self._also = also  # what else than a function can be limited, like Flask's blueprints
        self._function = quotas[0] if len(quotas) == 1 and callable(quotas[0]) else None

    def __call__(self, *endpoint: T, **named: Any) -> T:
        if len(endpoint) != 1 or named or not (callable(endpoint[0]) or isinstance(endpoint[0], self._also)):
            raise self._forgotten_brackets()
        return cast(T, self._decorate(endpoint[0]))

    def __getattr__(self, name: str) -> Any:
        if name in ("__name__", "__signature__") and self._function is not None:
            raise self._forgotten_brackets()
        raise AttributeError(name)

    def _forgotten_brackets(self) -> ConfigError:
        name = "" if self._function is None else f"{endpoint_name(self._function)} stands where a quota belongs: "
        return ConfigError(f'{name}limited needs brackets and a quota, like @limited("5/minute")', param="quota")


def decorate(endpoint: F, limit: Limit, calls: EndpointCalls, name: str | None = None) -> F:
    """The endpoint with a limit in front of it. It counts under `name`, by default its own."""
    is_async = inspect.iscoroutinefunction(endpoint)
    if not is_async and getattr(limit, "waits", False):
        message = f"{endpoint_name(endpoint)} is a plain function, and its limit has an async function"
        raise ConfigError(f"{message}, which it cannot wait for; write async def")
    limited = _async if is_async else _sync
    return cast(F, limited(endpoint, limit, calls, name or endpoint_name(endpoint)))


def _sync(endpoint: Any, limit: Limit, calls: EndpointCalls, name: str) -> Any:
    request_of, state_of, method_of = calls.request_of, calls.state_of, calls.method_of
    to_response, write = calls.to_response, calls.write

    @functools.wraps(endpoint)
    def call(*args: Any, **kwargs: Any) -> Any:
        request = request_of(args, kwargs)
        try:
            charge = limit.check(request, name, method_of(request))
        except MissingClient as error:
            return calls.refuse_nameless(request, error)
        if charge is None:  # exempt
            return endpoint(*args, **kwargs)
        state = state_of(request)
        told = tell_charge(state, charge)
        if not charge.decision.allowed:
            give_back(state)
            return calls.refuse(request, charge, told.to_write())
        try:
            response = to_response(_refuse_coroutine(name, endpoint(*args, **kwargs)))
        except Exception as error:
            charge.limits.settle(charge, calls.status_of_error(error))
            raise
        if charge.route.refundable:
            told.replace(charge.limits.settle(charge, calls.status_of(request, response)))
        write(request, response, told.to_write())
        return response

    return call


def _refuse_coroutine(name: str, result: Any) -> Any:
    """A plain function that returns a coroutine, like `dispatch` of an async class view, cannot be limited."""
    if inspect.iscoroutine(result):
        result.close()
        raise ConfigError(f"{name} is a plain function that returns a coroutine; limit the async def itself, like get")
    return result


def _async(endpoint: Any, limit: Limit, calls: EndpointCalls, name: str) -> Any:
    request_of, state_of, method_of = calls.request_of, calls.state_of, calls.method_of
    to_response, write = calls.to_response, calls.write

    @functools.wraps(endpoint)
    async def call(*args: Any, **kwargs: Any) -> Any:
        request = request_of(args, kwargs)
        try:
            charge = await limit.acheck(request, name, method_of(request))
        except MissingClient as error:
            return calls.refuse_nameless(request, error)
        if charge is None:  # exempt
            return await endpoint(*args, **kwargs)
        state = state_of(request)
        told = tell_charge(state, charge)
        if not charge.decision.allowed:
            await agive_back(state)
            return calls.refuse(request, charge, told.to_write())
        try:
            response = to_response(await endpoint(*args, **kwargs))
        except Exception as error:
            await charge.limits.asettle(charge, calls.status_of_error(error))
            raise
        if charge.route.refundable:
            told.replace(await charge.limits.asettle(charge, calls.status_of(request, response)))
        write(request, response, told.to_write())
        return response

    return call
