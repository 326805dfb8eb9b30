"""System checks: `manage.py check` finds mistakes in the settings of the limiter before a request does.

frontrow_limits.E001  FRONTROW_LIMITS is not a dictionary
frontrow_limits.E002  an option or its value is wrong
frontrow_limits.E003  the middleware has no rules
frontrow_limits.E004  a rate of a throttle for Django REST framework is wrong or missing
frontrow_limits.W001  there are rules, but no middleware checks them
frontrow_limits.W002  a rule counts by user, and no middleware finds out who that is
frontrow_limits.W003  counts are kept in memory: every worker process has its own (with --deploy)
"""

import difflib
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.utils.module_loading import import_string

from frontrow.core.errors import FrontrowError
from frontrow.limits.http.django.project_options import ASYNC_REQUESTS, REST_SETTING, SETTING, async_user, read_options
from frontrow.limits.http.request_limits import Options, RequestLimits
from frontrow.limits.quota import Quota

MIDDLEWARE = "frontrow.limits.http.django.RateLimitMiddleware"
THROTTLES = "frontrow.limits.http.rest_framework."
_AUTHENTICATION = "AuthenticationMiddleware"
_KNOWN = sorted({*Options.__annotations__, "rules", "store", "file"})


def check_settings(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Django calls this: what is wrong with the settings, with a hint for each mistake."""
    return [*_check_options(), *_check_throttles()]


def check_deployment(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Django calls this with --deploy: what will surprise in production."""
    given = getattr(settings, SETTING, None)
    if not isinstance(given, dict) or "file" in given or not str(given.get("store", "memory:")).startswith("memory:"):
        return []
    hint = f'Give {SETTING} a store that they share, like "store": "redis://127.0.0.1:6379/0".'
    return [Warning("Rate limits are counted in memory, by every worker process for itself.", hint, id=_id("W003"))]


def _check_options() -> Iterator[CheckMessage]:
    given = getattr(settings, SETTING, {})
    has_middleware = MIDDLEWARE in settings.MIDDLEWARE
    if not isinstance(given, dict):
        hint = f'Write {SETTING} = {{"rules": "100/minute"}}.'
        yield Error(f"{SETTING} must be a dictionary, not {given!r:.80}.", hint, id=_id("E001"))
        return
    unknown = [name for name in given if name not in _KNOWN]
    for name in unknown:
        near = difflib.get_close_matches(str(name), _KNOWN, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Options are {', '.join(_KNOWN)}."
        yield Error(f"{SETTING} has an option {name!r}, which does not exist.", hint, id=_id("E002"))
    if not unknown:
        yield from _check_rules(has_middleware)


def _check_rules(has_middleware: bool) -> Iterator[CheckMessage]:
    try:
        options = read_options(async_user)
        limits = RequestLimits(options.pop("rules", "1/day"), ASYNC_REQUESTS, **options)
    except (FrontrowError, ImportError, TypeError, ValueError, OSError) as error:
        hint = f"Correct {getattr(error, 'param', None) or 'the option'} in {SETTING}."
        yield Error(f"{SETTING}: {getattr(error, 'message', None) or error}", hint, id=_id("E002"))
        return
    has_rules = bool({"rules", "file"} & set(getattr(settings, SETTING, {})))
    limits.close()
    if has_middleware and not has_rules:
        hint = f'Write {SETTING} = {{"rules": "100/minute"}}, or take the middleware out of MIDDLEWARE.'
        yield Error("The middleware for rate limits has no rules.", hint, id=_id("E003"))
    if has_rules and not has_middleware:
        hint = f'Add "{MIDDLEWARE}" to MIDDLEWARE, best at the top.'
        yield Warning(f"{SETTING} has rules, but no middleware checks them.", hint, id=_id("W001"))
    by_user = [rule.name for rule in limits.book.current.rules if "user" in rule.key and rule.on_missing == "error"]
    if has_middleware and by_user and not _finds_users():
        hint = "Add django.contrib.auth.middleware.AuthenticationMiddleware, or say who the user is with identify."
        message = f"The rule {by_user[0]!r} counts by user, and no middleware finds out who that is."
        yield Warning(message, hint, id=_id("W002"))


def _finds_users() -> bool:
    if "user" in (getattr(settings, SETTING).get("identify") or {}):
        return True
    return any(name.endswith(_AUTHENTICATION) for name in settings.MIDDLEWARE)


def _check_throttles() -> Iterator[CheckMessage]:
    rest: dict[str, Any] = getattr(settings, REST_SETTING, {})
    rates = rest.get("DEFAULT_THROTTLE_RATES") or {}
    ours = [name for name in rest.get("DEFAULT_THROTTLE_CLASSES") or () if str(name).startswith(THROTTLES)]
    if not ours:
        return
    for scope, rate in rates.items():
        try:
            if rate is not None:
                Quota.parse_all(rate)
        except (FrontrowError, AttributeError, TypeError) as error:
            hint = f'Write DEFAULT_THROTTLE_RATES = {{"{scope}": "100/minute"}}.'
            message = f"The rate of {scope!r} is wrong: {getattr(error, 'message', error)}"
            yield Error(message, hint, id=_id("E004"))
    for name in ours:
        throttle = import_string(name)
        if name.endswith("ScopedRateThrottle") or throttle.rate or throttle.scope in rates:
            continue
        hint = f'Add it to DEFAULT_THROTTLE_RATES, like {{"{throttle.scope}": "100/minute"}}.'
        yield Error(f"{name} has no rate: there is none for its scope {throttle.scope!r}.", hint, id=_id("E004"))


def _id(number: str) -> str:
    return f"frontrow_limits.{number}"
