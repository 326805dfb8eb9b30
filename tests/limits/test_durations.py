"""Every option that is a duration refuses what is none, wherever it is given, and names itself."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest

import frontrow.limits
from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.core.settings_loader import load
from frontrow.limits import ConcurrencyLimiter, LeasedLimiter, Limiter, Rule
from frontrow.limits.adaptive import AdaptiveLimit
from frontrow.limits.adaptive.asgi import AdaptiveLimitMiddleware as AdaptiveAsgi
from frontrow.limits.adaptive.controllers import AimdLimit
from frontrow.limits.adaptive.wsgi import AdaptiveLimitMiddleware as AdaptiveWsgi
from frontrow.limits.celery_tasks import limited_task
from frontrow.limits.config import LimitsSettings
from frontrow.limits.http import asgi, fastapi, litestar, starlette, wsgi
from frontrow.limits.http import flask as of_flask
from frontrow.limits.http.decorators import limited
from frontrow.limits.outgoing.aiohttp_middleware import AdaptiveRequests, PacedRequests
from frontrow.limits.outgoing.httpx_transport import (
    AdaptiveTransport,
    AsyncAdaptiveTransport,
    AsyncPacedTransport,
    PacedTransport,
)
from frontrow.limits.outgoing.requests_adapter import AdaptiveAdapter, PacedAdapter
from frontrow.limits.rules import RequestRule
from frontrow.limits.shared_rules import SharedRules
from frontrow.limits.stores.rule_versions import MemoryRuleVersions
from frontrow.limits.tiers import Tiers
from frontrow.limits_service.settings import ServeSettings

NONE = [float("nan"), float("inf"), float("-inf"), -1, -0.5, True, "5", [1]]
RULES = [RequestRule("a", "5/minute")]
OWN_STORE = Limiter("5/minute")._store  # one of your own has a deadline that nobody asks for, but not any

Give = Callable[[Any], Any]


def of_route(limits: Any) -> Give:
    """The options of `RateLimits` are used when the first limit is made."""
    return lambda given: limits(deadline_s=given).routes.make("5/minute")


DEADLINES: dict[str, Give] = {
    "Limiter": lambda given: Limiter("5/minute", deadline_s=given),
    "Limiter with a store of your own": lambda given: Limiter("5/minute", store=OWN_STORE, deadline_s=given),
    "LeasedLimiter": lambda given: LeasedLimiter(Rule("a", "5/minute"), store="memory://", deadline_s=given),
    "ConcurrencyLimiter": lambda given: ConcurrencyLimiter(3, deadline_s=given),
    "Tiers": lambda given: Tiers(deadline_s=given),
    "@limited": lambda given: limited("5/minute", deadline_s=given)(lambda: None),
    "limited_task": lambda given: limited_task("5/minute", deadline_s=given)(lambda: None),
    "PacedTransport": lambda given: PacedTransport("5/minute", deadline_s=given),
    "ASGI": lambda given: asgi.RateLimitMiddleware(None, RULES, deadline_s=given),  # type: ignore[arg-type]
    "WSGI": lambda given: wsgi.RateLimitMiddleware(None, RULES, deadline_s=given),  # type: ignore[arg-type]
    "Litestar's middleware": lambda given: litestar.middleware(RULES, deadline_s=given),
    "FastAPI": of_route(fastapi.RateLimits),
    "Starlette": of_route(starlette.RateLimits),
    "Litestar": of_route(litestar.RateLimits),
    "Flask": lambda given: of_flask.RateLimits(rules="5/minute", deadline_s=given).limited("5/minute"),
}
OPTIONS: dict[tuple[str, str], Give] = {
    **{(door, "deadline_s"): give for door, give in DEADLINES.items()},
    ("@limited", "wait_s"): lambda given: limited("5/minute", wait_s=given),
    ("limited_task", "give_up_after_s"): lambda given: limited_task("5/minute", give_up_after_s=given),
    ("ConcurrencyLimiter", "ttl_s"): lambda given: ConcurrencyLimiter(3, ttl_s=given),
    ("ConcurrencyLimiter", "max_hold_s"): lambda given: ConcurrencyLimiter(3, max_hold_s=given),
    ("SharedRules", "refresh_s"): lambda given: SharedRules(RULES, versions=MemoryRuleVersions(), refresh_s=given),
    ("AimdLimit", "timeout_s"): lambda given: AimdLimit(timeout_s=given),
    ("LimitsSettings", "deadline_ms"): lambda given: of_file(LimitsSettings, "limits", deadline_ms=given),
    ("ServeSettings", "grace_s"): lambda given: of_file(ServeSettings, "serve", grace_s=given),
    ("ServeSettings", "max_lease_s"): lambda given: of_file(ServeSettings, "serve", max_lease_s=given),
}
for paced in (PacedTransport, AsyncPacedTransport, PacedAdapter, PacedRequests):
    OPTIONS[paced.__name__, "timeout_s"] = lambda given, paced=paced: paced("5/minute", timeout_s=given)
    OPTIONS[paced.__name__, "max_pause_s"] = lambda given, paced=paced: paced("5/minute", max_pause_s=given)
ADAPTIVE: dict[str, Callable[..., Any]] = {
    "AdaptiveLimit": AdaptiveLimit,
    "AdaptiveLimitMiddleware for ASGI": lambda **given: AdaptiveAsgi(None, **given),  # type: ignore[arg-type]
    "AdaptiveLimitMiddleware for WSGI": lambda **given: AdaptiveWsgi(None, **given),  # type: ignore[arg-type]
    **{each.__name__: each for each in (AdaptiveTransport, AsyncAdaptiveTransport, AdaptiveAdapter, AdaptiveRequests)},
}
for door, adaptive in ADAPTIVE.items():
    for option in ("max_wait_s", "retry_after_s"):
        OPTIONS[door, option] = lambda given, make=adaptive, option=option: make(**{option: given})


def of_file(kind: type[Any], section: str, **table: Any) -> Any:
    return load(kind, section, tables={section: table}, env={})


@pytest.mark.parametrize("given", NONE, ids=repr)
@pytest.mark.parametrize(("door", "option"), OPTIONS)
def test_what_is_no_duration_is_refused_and_named(door: str, option: str, given: Any) -> None:
    with pytest.raises(ConfigError, match=option):
        OPTIONS[door, option](given)


@pytest.mark.parametrize(("door", "option"), OPTIONS)
def test_a_second_is_a_duration_everywhere(door: str, option: str) -> None:
    made = OPTIONS[door, option](1.0)
    getattr(made, "close", lambda: None)()


@pytest.mark.parametrize("given", [float("nan"), float("-inf"), -1, True, "5", [1]], ids=repr)
async def test_a_wait_is_never_negative_and_may_be_endless(given: Any) -> None:
    """`timeout_s` of a call: infinity is None there, as `test_waiting_line` says."""
    limiter, permits = Limiter("5/minute"), ConcurrencyLimiter(3)
    for call in (limiter.acquire, permits.acquire, lambda key, timeout_s: permits.permit(key, timeout_s).__enter__()):
        with pytest.raises(InvalidInput, match="timeout_s must be 0 or more seconds"):
            call("fan", timeout_s=given)
    for acall in (limiter.aacquire, permits.aacquire):
        with pytest.raises(InvalidInput, match="timeout_s must be 0 or more seconds"):
            await acall("fan", timeout_s=given)


INSIDE = ("stores", "waiting_line", "permit_renewal", "http.django", "http.rest_framework")
"""Modules whose durations come from an option above. Django's take those of `RouteOptions` from the project."""


def durations_in_the_code() -> Iterator[tuple[str, str]]:
    """The parameters and options of public functions and classes that are named as seconds."""
    for found in pkgutil.walk_packages(frontrow.limits.__path__, "frontrow.limits."):
        short = found.name.removeprefix("frontrow.limits.")
        if found.ispkg or short.startswith(INSIDE) or "pytest_plugin" in short:
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__:
                yield from ((name, option) for option in _options_of(value) if option.endswith("_s"))


def _options_of(value: Any) -> Iterator[str]:
    if inspect.isfunction(value):
        yield from inspect.signature(value).parameters
    elif isinstance(value, type):
        if hasattr(value, "__total__"):  # a closed list of options
            yield from get_type_hints(value)
        yield from inspect.signature(value).parameters if "__init__" in vars(value) else ()


KNOWN = {option for _, option in OPTIONS}
NO_OPTIONS = {"monotonic_s", "now_s", "window_s", "latencies_s", "baselines_s"}  # clocks, and what was measured


def test_no_duration_of_the_public_api_is_forgotten() -> None:
    found = {(name, option) for name, option in durations_in_the_code() if option not in NO_OPTIONS}
    assert {"deadline_s", "wait_s", "refresh_s", "ttl_s", "max_wait_s"} <= {option for _, option in found}
    unknown = sorted(f"{name}({option}=…)" for name, option in found if option not in KNOWN)
    assert not unknown, "check it by frontrow.limits.durations, and add it to OPTIONS"
