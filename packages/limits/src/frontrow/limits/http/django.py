"""Limits for Django, sync and async: a middleware with rules for all requests, and a decorator for views.

    MIDDLEWARE = ["frontrow.limits.http.django.RateLimitMiddleware", …]
    FRONTROW_LIMITS = {"rules": "100/minute", "store": "redis://127.0.0.1:6379/0"}

    @limited("5/minute", key="user")
    def send_code(request): ...

The middleware may stand first. It checks the rules that count by `user` later, before the view runs, when every other
middleware has seen the request. So authentication may stand anywhere.
"""

import asyncio
import functools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, Unpack

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.core.signals import setting_changed
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.module_loading import import_string

from frontrow.core.errors import ConfigError
from frontrow.limits.config import load_config
from frontrow.limits.http.caller_identity import arun_steps, check_can_wait, run_steps, user_name
from frontrow.limits.http.endpoints import EndpointCalls, decorate
from frontrow.limits.http.headers import FIELDS, Field, as_text
from frontrow.limits.http.open_charges import agive_back, give_back, tell_charge
from frontrow.limits.http.refusal_responses import (
    Response,
    missing_client_response,
    own_response,
    refusal_response,
)
from frontrow.limits.http.request_limits import Charge, LimitedRoute, MissingClient, RequestLimits
from frontrow.limits.http.route_limits import (
    OF_MIDDLEWARE,
    LimitOptions,
    QuotaLike,
    QuotaOf,
    RouteLimit,
    RouteLimits,
    check_constant_cost,
)
from frontrow.limits.http.rule_conversion import to_rule_book
from frontrow.limits.http.wsgi import ENVIRONS, is_preflight
from frontrow.limits.rules import RequestRule

F = TypeVar("F", bound=Callable[..., Any])
SETTING = "FRONTROW_LIMITS"
_FUNCTIONS = ("exempt_if", "tier_of", "on_refused")  # options that may be named by their import path
_AWAITS = "frontrow.limits.awaits"  # whether the limited view is async
_OPEN = "frontrow.limits.open_charges"  # what was charged and is settled with the response


def read_options(user: Callable[[HttpRequest], Any]) -> dict[str, Any]:
    """The options of the setting `FRONTROW_LIMITS`: those of every middleware, and `file` for a TOML file."""
    options = dict(getattr(settings, SETTING, {}))
    if "file" in options:
        options = {**load_config(options.pop("file")).middleware_options(), **options}
    for name in _FUNCTIONS:
        if isinstance(options.get(name), str):
            options[name] = import_string(options[name])
    check_can_wait("on_refused", options.get("on_refused"), can_wait=False)
    options["identify"] = {"user": user, **(options.get("identify") or {})}
    return options


class RateLimitMiddleware:
    """Limits the requests of a Django project by the rules of its settings."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        self.process_view: Any = self._acharge_user if self._is_async else self._charge_user
        if self._is_async:
            markcoroutinefunction(self)
        options = read_options(_auser if self._is_async else _user)
        if "rules" not in options:
            raise ConfigError(f'{SETTING} needs rules or a file, like {SETTING} = {{"rules": "100/minute"}}')
        book = to_rule_book(options.pop("rules"))
        source = ASYNC_REQUESTS if self._is_async else REQUESTS
        wait_all = bool(options.get("exempt_users"))

        def waits_for_user(rule: RequestRule) -> bool:
            return wait_all or "user" in rule.key

        self.limits = RequestLimits(book, source, only=lambda rule: not waits_for_user(rule), **options)
        self.user_limits = RequestLimits(book, source, only=waits_for_user, **options)

    def __call__(self, request: HttpRequest) -> Any:
        if self._is_async:
            return self._acall(request)
        refusal = self._charge(self.limits, request)
        if refusal is not None:
            return refusal
        response = self.get_response(request)
        for charge, told in request.META.get(_OPEN, ()):
            told.replace(charge.limits.settle(charge, response.status_code))
        return _with_fields(request, response)

    async def _acall(self, request: HttpRequest) -> HttpResponse:
        refusal = await self._acharge(self.limits, request)
        if refusal is not None:
            return refusal
        response = await self.get_response(request)
        for charge, told in request.META.get(_OPEN, ()):
            told.replace(await charge.limits.asettle(charge, response.status_code))
        return _with_fields(request, response)

    def _charge_user(self, request: HttpRequest, *call: Any) -> HttpResponse | None:
        return self._charge(self.user_limits, request)

    async def _acharge_user(self, request: HttpRequest, *call: Any) -> HttpResponse | None:
        return await self._acharge(self.user_limits, request)

    def _charge(self, limits: RequestLimits, request: HttpRequest) -> HttpResponse | None:
        route = _route(limits, request)
        if route is None:
            return None
        try:
            key = run_steps(route.key_steps(request))
        except MissingClient as error:
            return refuse_nameless(request, error)
        if key is None:  # exempt
            return None
        charge = limits.decide(route, key, request.method)
        if not charge.decision.allowed:
            give_back(request.META)
        if charge.decision.allowed and charge.decision.delay_us:
            time.sleep(charge.decision.delay_s)
        return _open(request, charge)

    async def _acharge(self, limits: RequestLimits, request: HttpRequest) -> HttpResponse | None:
        route = _route(limits, request)
        if route is None:
            return None
        try:
            key = await arun_steps(route.key_steps(request))
        except MissingClient as error:
            return refuse_nameless(request, error)
        if key is None:  # exempt
            return None
        charge = await limits.adecide(route, key, request.method)
        if not charge.decision.allowed:
            await agive_back(request.META)
        if charge.decision.allowed and charge.decision.delay_us:
            await asyncio.sleep(charge.decision.delay_s)
        return _open(request, charge)


def _route(limits: RequestLimits, request: HttpRequest) -> LimitedRoute | None:
    """The rules of a request, unless it has none or is a preflight."""
    mount = request.META.get("SCRIPT_NAME", "").rstrip("/")
    route_key = (request.method, request.path, mount)
    route = limits.routes.get(route_key) or limits.add_route(*route_key)
    is_free = request.method == "OPTIONS" and limits.skips_preflights and is_preflight(request.META)
    return None if is_free or not route.matches else route


def _open(request: HttpRequest, charge: Charge) -> HttpResponse | None:
    """Remember what was charged until the response is there. A refusal is the response."""
    told = tell_charge(request.META, charge, FIELDS)
    if not charge.decision.allowed:
        return refuse(request, charge, told.to_write())
    request.META.setdefault(_OPEN, []).append((charge, told))
    return None


def _with_fields(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    for _, told in request.META.pop(_OPEN, ()):
        write_fields(request, response, told.to_write())
    return response


def limited(*quotas: QuotaLike | QuotaOf, **options: Unpack[LimitOptions]) -> Callable[[F], F]:
    """Limit a view, sync or async. `options`: `key`, `name`, `cost`, `statuses`, `on_missing`.

    The store and everything else come from the setting `FRONTROW_LIMITS` at the first request.
    """
    check_constant_cost(options.get("cost", 1), quotas)  # reports a wrong quota or cost now
    limit = _LateLimit(lambda routes: routes.make(*quotas, **options))

    def decorate_view(*view: F) -> F:
        """`method_decorator` calls this at every request."""
        if len(view) != 1 or not callable(view[0]):  # a request, because the function stands where a quota belongs
            raise ConfigError('limited needs brackets and a quota, like @limited("5/minute")', param="quota")
        return decorate(view[0], limit, CALLS)

    return decorate_view


@functools.cache
def _routes() -> RouteLimits:
    options = {name: value for name, value in read_options(_user_of_view).items() if name not in OF_MIDDLEWARE}
    return RouteLimits(ASYNC_REQUESTS, **options)


def _forget_routes(setting: str, **_: Any) -> None:
    """`override_settings(FRONTROW_LIMITS=…)` in a test starts afresh."""
    if setting == SETTING:
        _routes.cache_clear()


setting_changed.connect(_forget_routes)


class _LateLimit:
    """A limit that is made at the first request, because the settings may not be there before."""

    def __init__(self, make: Callable[[RouteLimits], RouteLimit]) -> None:
        self._limit = functools.lru_cache(maxsize=1)(make)

    def check(self, request: Any, endpoint: str, method: str) -> Charge | None:
        return self._limit(_routes()).check(request, endpoint, method)

    async def acheck(self, request: Any, endpoint: str, method: str) -> Charge | None:
        request.META[_AWAITS] = True
        return await self._limit(_routes()).acheck(request, endpoint, method)


def refuse(request: HttpRequest, charge: Charge, fields: list[Field]) -> HttpResponse:
    """The response to a refused request, with the project's own body if it has one."""
    response = refusal_response(charge.decision, fields)
    on_refused = charge.limits.on_refused
    made = on_refused(request, charge.decision) if on_refused is not None else None
    if isinstance(made, HttpResponse):
        write_fields(request, made, response[1][2:])
        return made
    return _http_response(own_response(made, response))


def refuse_nameless(request: HttpRequest, error: MissingClient) -> HttpResponse:
    """400: the request does not say who it is from."""
    return _http_response(missing_client_response(error))


def _http_response(response: Response) -> HttpResponse:
    status, fields, body = response
    return HttpResponse(body, status=status, headers=dict(as_text(fields)))


def write_fields(request: HttpRequest, response: HttpResponse, fields: list[Field]) -> None:
    """Put headers into a response."""
    for name, value in as_text(fields):
        response.headers[name] = value


def _user(request: HttpRequest) -> str | None:
    return user_name(getattr(request, "user", None))


def _user_of_view(request: HttpRequest) -> Any:
    """The signed-in user's id. An async view must not ask the database directly, so it gets an awaitable."""
    return _auser(request) if request.META.get(_AWAITS) else _user(request)


async def _auser(request: HttpRequest) -> str | None:
    auser = getattr(request, "auser", None)
    return user_name(await auser() if auser is not None else getattr(request, "user", None))


def _body(request: HttpRequest, max_bytes: int) -> bytes | None:
    length = request.META.get("CONTENT_LENGTH") or "0"
    return request.body if length.isdecimal() and int(length) <= max_bytes else None


def _request_among(args: tuple[Any, ...], kwargs: dict[str, Any]) -> HttpRequest:
    for value in (*args, *kwargs.values()):
        if isinstance(value, HttpRequest):
            return value
    raise ConfigError("a limited view must take the request, like def home(request)")


def _status_of_error(error: Exception) -> int:
    return 404 if isinstance(error, Http404) else 403 if isinstance(error, PermissionDenied) else 500


REQUESTS = ENVIRONS.inside(lambda request: request.META, user=lambda request: None, body=_body)
ASYNC_REQUESTS = replace(REQUESTS, can_wait=True)
CALLS = EndpointCalls(
    request_of=_request_among,
    state_of=lambda request: request.META,
    method_of=lambda request: request.method,
    refuse=refuse,
    refuse_nameless=refuse_nameless,
    to_response=lambda response: response,
    status_of=lambda request, response: response.status_code,
    status_of_error=_status_of_error,
    write=write_fields,
)
