"""The middleware: rules for all requests of a project.

It may stand first. It checks the rules that count by `user` later, before the view runs, when every other middleware
has seen the request. So authentication may stand anywhere.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve

from frontrow.core.errors import ConfigError
from frontrow.limits.http.caller_identity import arun_steps, run_steps
from frontrow.limits.http.django.project_options import (
    ASYNC_REQUESTS,
    REQUESTS,
    SETTING,
    async_user,
    read_options,
    user,
)
from frontrow.limits.http.django.responses import refuse, refuse_nameless, write_fields
from frontrow.limits.http.exempt import any_exempt, is_exempt
from frontrow.limits.http.headers import FIELDS
from frontrow.limits.http.open_charges import agive_back, give_back, tell_charge
from frontrow.limits.http.request_limits import Charge, LimitedRoute, MissingClient, RequestLimits
from frontrow.limits.http.rule_conversion import to_rule_book
from frontrow.limits.http.wsgi import is_preflight
from frontrow.limits.rules import RequestRule

_OPEN = "frontrow.limits.open_charges"  # what was charged and is settled with the response


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
        options = read_options(async_user if self._is_async else user)
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
    route = limits.routes.get(route_key) or limits.add_route(*route_key, is_exempt=_serves_exempt(request))
    is_free = request.method == "OPTIONS" and limits.skips_preflights and is_preflight(request.META)
    return None if is_free or not route.matches else route


def _serves_exempt(request: HttpRequest) -> bool:
    """Whether an exempt view will serve this request. With a `urlconf` of its own it counts: another may follow."""
    if not any_exempt() or hasattr(request, "urlconf"):
        return False
    try:
        return is_exempt(resolve(request.path_info).func)
    except Resolver404:
        return False


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
