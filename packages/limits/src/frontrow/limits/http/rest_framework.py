"""Throttles for Django REST framework, in the place of its own: the same names, scopes and settings.

    REST_FRAMEWORK = {
        "DEFAULT_THROTTLE_CLASSES": ["frontrow.limits.http.rest_framework.UserRateThrottle"],
        "DEFAULT_THROTTLE_RATES": {"user": "100/minute"},
    }

A rate may be any quota. Store, proxies and everything else are those of the setting `FRONTROW_LIMITS`. If one throttle
refuses a request, what the others were charged is given back. Allowed and refused responses have the headers.
"""

import functools
import re
from typing import Any, ClassVar

from django.core.signals import setting_changed
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle

from frontrow.core.errors import ConfigError
from frontrow.limits.http.django.project_options import REST_SETTING
from frontrow.limits.http.django.views import project_routes
from frontrow.limits.http.exempt import exempt, is_exempt
from frontrow.limits.http.headers import as_text, retry_s
from frontrow.limits.http.open_charges import give_back, tell_charge
from frontrow.limits.http.route_limits import RouteLimit, RouteLimits

__all__ = ["AnonRateThrottle", "RateThrottle", "ScopedRateThrottle", "UserRateThrottle", "exempt"]

_REFUSED = "frontrow.limits.refused_by_throttle"


class RateThrottle(BaseThrottle):  # type: ignore[misc]  # no types
    """Counts by user, or by address if nobody is signed in. Subclass it with a `scope`, or with a `rate` of its own."""

    scope: ClassVar[str] = "user"
    rate: ClassVar[str | None] = None  # None: that of the scope in DEFAULT_THROTTLE_RATES
    key: ClassVar[str] = "user"  # the part of the key to count by
    _retry_s: int | None = None

    def allow_request(self, request: Any, view: Any) -> bool:
        """REST framework calls this for every request."""
        scope = self.scope_of(view)
        rate = self.rate or (rate_of(scope) if scope else None)
        if rate is None or _is_exempt(request, view) or not self.counts(request):
            return True
        named = f"{scope}-{type(self).__name__}" if self.rate else scope
        charge = _limit(project_routes(), named or "", rate, self.key).check(request, named or "", request.method)
        if charge is None:  # exempt
            return True
        told = tell_charge(request.META, charge)
        if not charge.decision.allowed:
            request.META[_REFUSED] = True
            self._retry_s = retry_s(charge.decision)
        if request.META.get(_REFUSED):  # REST framework asks all throttles, also after a refusal
            give_back(request.META)
        headers = getattr(view, "headers", None)  # those that REST framework adds to every response
        if isinstance(headers, dict):
            headers.update(dict(as_text(told.to_write())))
        return charge.decision.allowed

    def wait(self) -> float | None:
        """Seconds until the request may come again, for `Retry-After`. REST framework calls this after a refusal."""
        return self._retry_s

    def scope_of(self, view: Any) -> str | None:
        """The name of what is counted together. None: this view is not limited."""
        return self.scope

    def counts(self, request: Any) -> bool:
        """Whether this throttle counts the request at all."""
        return True


class UserRateThrottle(RateThrottle):
    """Counts signed-in users by their id and others by their address. Scope `user`."""


class AnonRateThrottle(RateThrottle):
    """Counts only requests without a signed-in user, by their address. Scope `anon`."""

    scope = "anon"
    key = "ip"

    def counts(self, request: Any) -> bool:
        """Whether nobody is signed in."""
        return not (request.user and request.user.is_authenticated)


class ScopedRateThrottle(RateThrottle):
    """Counts the views that have a `throttle_scope`, by that scope. Views without one are not limited."""

    def scope_of(self, view: Any) -> str | None:
        """The scope that the view names."""
        scope: str | None = getattr(view, "throttle_scope", None)
        return scope


def _is_exempt(request: Any, view: Any) -> bool:
    """Whether the view is exempt: its class, or the function that `@api_view` made of it."""
    return is_exempt(view) or is_exempt(getattr(getattr(request, "resolver_match", None), "func", None))


def rate_of(scope: str) -> str | None:
    """The rate of a scope in `DEFAULT_THROTTLE_RATES`. None there means no limit."""
    rates: dict[str, str | None] = api_settings.DEFAULT_THROTTLE_RATES
    if scope not in rates:
        message = f"the scope {scope!r} has no rate; add it to DEFAULT_THROTTLE_RATES of {REST_SETTING}"
        raise ConfigError(f'{message}, like {{"{scope}": "100/minute"}}', param="DEFAULT_THROTTLE_RATES")
    return rates[scope]


@functools.lru_cache(maxsize=1024)
def _limit(routes: RouteLimits, scope: str, rate: str, key: str) -> RouteLimit:
    """The limit of a scope. All throttles of a process with this scope share it."""
    name = "throttle-" + re.sub(r"[^A-Za-z0-9_.-]", "_", scope)[:50]
    return routes.make(rate, key=key, name=name, on_missing="ip")


def _forget_rates(setting: str, **_: Any) -> None:
    """`override_settings(REST_FRAMEWORK=…)` in a test starts afresh."""
    if setting == REST_SETTING:
        project_routes.cache_clear()


setting_changed.connect(_forget_rates)
