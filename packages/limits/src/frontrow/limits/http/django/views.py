"""Limits of single views, and of all views of an `include`."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, Unpack

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import PermissionDenied
from django.core.signals import setting_changed
from django.http import Http404, HttpRequest
from django.urls import URLPattern, URLResolver, include

from frontrow.core.errors import ConfigError
from frontrow.limits.http.django.project_options import ASYNC_REQUESTS, AWAITS, SETTING, read_options, user_of_view
from frontrow.limits.http.django.responses import refuse, refuse_nameless, write_fields
from frontrow.limits.http.endpoints import EndpointCalls, decorate
from frontrow.limits.http.exempt import is_exempt
from frontrow.limits.http.request_limits import Charge
from frontrow.limits.http.route_limits import (
    OF_MIDDLEWARE,
    LimitOptions,
    QuotaLike,
    QuotaOf,
    RouteLimit,
    RouteLimits,
    check_quotas,
)

F = TypeVar("F", bound=Callable[..., Any])


def limited(*quotas: QuotaLike | QuotaOf, **options: Unpack[LimitOptions]) -> Callable[[F], F]:
    """Limit a view, sync or async. `options`: `key`, `name`, `methods`, `cost`, `statuses`, `on_missing`.

    The store and everything else come from the setting `FRONTROW_LIMITS` at the first request.
    """
    limit = _late_limit(quotas, options)

    def decorate_view(*view: F) -> F:
        """`method_decorator` calls this at every request."""
        if len(view) != 1 or not callable(view[0]):  # a request, because the function stands where a quota belongs
            raise ConfigError('limited needs brackets and a quota, like @limited("5/minute")', param="quota")
        return decorate(view[0], limit, CALLS)

    return decorate_view


def include_limited(
    urls: Any, *quotas: QuotaLike | QuotaOf, namespace: str | None = None, **options: Unpack[LimitOptions]
) -> Any:
    """Django's `include`, with a limit on all its views together.

        path("api/", include_limited("api.urls", "100/minute"))

    `options` are those of `limited`. Views with `@exempt` are not counted.
    """
    limit = _late_limit(quotas, options)
    found, app_name, namespace = include(urls, namespace)
    listed = getattr(found, "urlpatterns", found)
    name = f"include {getattr(found, '__name__', app_name or namespace or urls)!s:.200}"
    return [_limited_pattern(each, limit, name) for each in listed], app_name, namespace


def _limited_pattern(pattern: Any, limit: "_LateLimit", name: str) -> Any:
    """The same pattern with the limit in front of its view, or of all views below it."""
    if isinstance(pattern, URLResolver):
        inside = [_limited_pattern(each, limit, name) for each in pattern.url_patterns]
        return URLResolver(pattern.pattern, inside, pattern.default_kwargs, pattern.app_name, pattern.namespace)
    view = pattern.callback
    if is_exempt(view):
        return pattern
    limited_view = decorate(_awaitable(view), limit, CALLS, name)
    return URLPattern(pattern.pattern, limited_view, pattern.default_args, pattern.name)


def _awaitable(view: Any) -> Any:
    """The view; as `async def` if Django only marked it as one, as it does with the views of async classes."""
    if not iscoroutinefunction(view) or inspect.iscoroutinefunction(view):
        return view

    @functools.wraps(view)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await view(*args, **kwargs)

    return call


def _late_limit(quotas: Any, options: LimitOptions) -> "_LateLimit":
    check_quotas(quotas, options.get("cost", 1))  # reports a wrong quota or cost now
    return _LateLimit(lambda routes: routes.make(*quotas, **options))


@functools.cache
def project_routes() -> RouteLimits:
    options = {name: value for name, value in read_options(user_of_view).items() if name not in OF_MIDDLEWARE}
    return RouteLimits(ASYNC_REQUESTS, **options)


def _forget_routes(setting: str, **_: Any) -> None:
    """`override_settings(FRONTROW_LIMITS=…)` in a test starts afresh."""
    if setting == SETTING:
        project_routes.cache_clear()


setting_changed.connect(_forget_routes)


class _LateLimit:
    """A limit that is made at the first request, because the settings may not be there before."""

    def __init__(self, make: Callable[[RouteLimits], RouteLimit]) -> None:
        self._limit = functools.lru_cache(maxsize=1)(make)

    def check(self, request: Any, endpoint: str, method: str) -> Charge | None:
        return self._limit(project_routes()).check(request, endpoint, method)

    async def acheck(self, request: Any, endpoint: str, method: str) -> Charge | None:
        request.META[AWAITS] = True
        return await self._limit(project_routes()).acheck(request, endpoint, method)


def _request_among(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The request that a view is called with: Django's, or that of REST framework, which has Django's in `_request`."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, HttpRequest) or isinstance(getattr(value, "_request", None), HttpRequest):
            return value
    raise ConfigError("a limited view must take the request, like def home(request)")


def _status_of_error(error: Exception) -> int:
    """The status that Django, or REST framework by its exceptions' `status_code`, makes of an exception."""
    if isinstance(error, Http404):
        return 404
    if isinstance(error, PermissionDenied):
        return 403
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 500


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
