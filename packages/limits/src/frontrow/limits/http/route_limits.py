"""Limits of single routes: what the decorators, dependencies and guards of every framework share.

A limit without a name counts each endpoint separately. All limits with one name share one count. Every limit is a
`RequestLimits` of its own, so keys, exemptions, headers, metrics and refunds work as in the middleware.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from frontrow.core.errors import ConfigError
from frontrow.limits.given_lists import to_list
from frontrow.limits.http.caller_identity import (
    RequestSource,
    Steps,
    arun_steps,
    check_can_wait,
    is_async,
    is_in_body,
    part_of_source,
    run_steps,
)
from frontrow.limits.http.request_limits import Charge, LimitedRoute, RequestLimits, UncountableRequest
from frontrow.limits.metrics import LimitMetrics
from frontrow.limits.quota import InvalidCost, InvalidKey, Quota
from frontrow.limits.refusal_log import RefusalLog
from frontrow.limits.rules import OnMissing, RequestRule, Statuses, folded_method, name_quotas

Request = Any
QuotaLike = str | Quota
QuotaOf = Callable[[Request], Any]  # returns a quota, or None for no limit
KeyLike = str | Sequence[str] | Callable[[Request], Any]
Found = tuple[RequestLimits, LimitedRoute, Any, Any]  # the last are the key and the cost

MAX_QUOTAS = 64  # different quotas that one function may return
OF_MIDDLEWARE = ("rules", "costs", "exempt_paths", "count_preflights")  # options that a limit of a route has not
DEFAULT_ALGORITHM = Quota.parse("1/day").algorithm
_CALLER = "caller"  # the part that a function given as `key` returns


class LimitOptions(TypedDict, total=False):
    """What the limit of a route takes besides quotas."""

    key: KeyLike
    name: str | None
    methods: Sequence[str]
    cost: int | Callable[[Request], Any]
    statuses: Statuses
    on_missing: OnMissing


class RouteLimits:
    """Makes the limits of single routes, with one store and one way to read requests."""

    def __init__(self, source: RequestSource, **options: Any) -> None:
        for name in OF_MIDDLEWARE:
            if name in options:
                raise ConfigError(f"{name} belongs to the middleware; a limit of a route has none", param=name)
        self._source = source
        self._options: dict[str, Any] = {"metrics": LimitMetrics(), "refusals": RefusalLog(), **options}
        self.metrics: LimitMetrics = self._options["metrics"]
        self._lock = threading.Lock()
        self._named: dict[str, tuple[Any, Counts]] = {}
        self._all: list[RequestLimits] = []
        RequestLimits("1/day", source, **{**self._options, "metrics": None}).close()  # reports wrong options now

    def make(
        self,
        *quotas: QuotaLike | QuotaOf,
        key: KeyLike = "ip",
        name: str | None = None,
        methods: Sequence[str] = (),
        cost: int | Callable[[Request], Any] = 1,
        statuses: Statuses = (),
        on_missing: OnMissing = "error",
    ) -> "RouteLimit":
        """A limit of one or more quotas, or of one function of the request that returns a quota.

        `key` names parts of the key, or is a function of the request that returns who is limited. `methods` are those
        that count, all if there are none.
        """
        counted = _check_methods(methods)
        check_can_wait("cost", cost, self._source.can_wait)
        check_quotas(quotas, cost)
        functions = [*quotas, key, cost, *(self._options.get("identify") or {}).values()]
        waits = any(map(is_async, [*functions, self._options.get("exempt_if"), self._options.get("tier_of")]))
        if is_async(self._source.body):
            parts = [key] if isinstance(key, str) or callable(key) else key
            identify = self._options.get("identify") or {}
            waits = waits or any(is_in_body(identify.get(part, part)) for part in parts)
        given = (quotas, key, statuses, on_missing)
        with self._lock:
            before, counts = self._named.get(name or "", (given, None))
            if before != given:
                raise ConfigError(f"two limits are named {name!r} and differ; give each its own name", param="name")
            if counts is None:
                counts = self._make_counts(quotas, key, name, statuses, on_missing)
            if name is not None:
                self._named[name] = given, counts
        return RouteLimit(counts, cost, waits, counted)

    def _make_counts(
        self, quotas: Any, key: KeyLike, name: str | None, statuses: Statuses, on_missing: OnMissing
    ) -> "Counts":
        identify: dict[str, Any] = {}
        if callable(key):
            identify, key = {_CALLER: key}, _CALLER
        parts = tuple(_name_source(part, identify) for part in ((key,) if isinstance(key, str) else key))
        if "path" in parts:
            raise ConfigError("a limit of a route counts each endpoint by itself; leave path out", param="key")
        if name is None and "endpoint" not in parts:
            parts = (*parts, "endpoint")

        def open_limits(*plain: QuotaLike) -> RequestLimits:
            more: dict[str, Any] = {"statuses": statuses, "on_missing": on_missing}
            quotas = [quota for _, quota in name_quotas(plain)]
            rules = [RequestRule(_rule_name(quota, name, len(quotas)), quota, parts, **more) for quota in quotas]
            return self._open(rules, identify)

        if len(quotas) == 1 and callable(quotas[0]):
            check_can_wait("the quota's function", quotas[0], self._source.can_wait)
            return Counts(None, quotas[0], open_limits)
        if not quotas or any(callable(quota) for quota in quotas):
            raise ConfigError('a limit needs quotas, like "5/minute", or one function that returns a quota')
        return Counts(open_limits(*quotas), None, open_limits)

    def _open(self, rules: list[RequestRule], identify: dict[str, Any]) -> RequestLimits:
        options = {**self._options, "identify": {**(self._options.get("identify") or {}), **identify}}
        limits = RequestLimits(rules, self._source, **options)
        self._all.append(limits)
        return limits

    @property
    def enabled(self) -> bool:
        """Whether these limits limit at all."""
        return all(limits.enabled for limits in self._all) and bool(self._options.get("enabled", True))

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self._options["enabled"] = enabled
        for limits in self._all:
            limits.enabled = enabled

    def close(self) -> None:
        """Close the stores' blocking connections."""
        for limits in self._all:
            limits.close()

    async def aclose(self) -> None:
        """Close the stores' connections."""
        for limits in self._all:
            await limits.aclose()


class Counts:
    """What a limit counts in: fixed quotas, or one `RequestLimits` per quota that a function returned."""

    def __init__(
        self, limits: RequestLimits | None, quota_of: QuotaOf | None, open_limits: Callable[..., RequestLimits]
    ) -> None:
        self.limits = limits  # None: a function returns the quota
        self._quota_of = quota_of
        self._open = open_limits
        self._by_quota: dict[QuotaLike, RequestLimits] = {}
        self._lock = threading.Lock()

    def steps(self, request: Request) -> Steps[RequestLimits | None]:
        """The limits of a request. None: it has no limit."""
        if self._quota_of is None:
            return self.limits
        quota = yield self._quota_of(request)
        return None if quota is None else self.limits_of(quota)

    def limits_of(self, quota: QuotaLike) -> RequestLimits:
        """The limits with this quota."""
        with self._lock:
            limits = self._by_quota.get(quota)
            if limits is None:
                if len(self._by_quota) >= MAX_QUOTAS:
                    message = f"the function returned more than {MAX_QUOTAS} different quotas; return one of a few"
                    raise ConfigError(message, param="quota")
                limits = self._by_quota[quota] = self._open(quota)
            return limits


class RouteLimit:
    """One limit. `check` returns what was charged, or None if the request is exempt."""

    def __init__(
        self,
        counts: Counts,
        cost: int | Callable[[Request], Any],
        waits: bool = False,
        methods: frozenset[str] = frozenset(),
    ) -> None:
        self.counts = counts
        self._methods = methods  # those that count; none: all
        self.waits = waits  # whether it is known to have async functions
        self._cost = cost
        self._plain_limits = None if callable(cost) else counts.limits

    def check(self, request: Request, endpoint: str, method: str) -> Charge | None:
        """Charge a request. Blocks while the store answers. A `leaky_queue` also waits its delay."""
        if self._methods and folded_method(method) not in self._methods:
            return None
        found = self._found_at_once(request, endpoint) or run_steps(self._steps(request, endpoint))
        if found is None:
            return None
        limits, route, key, cost = found
        charge = limits.decide(route, key, method, cost)
        limits.metrics.count_route(charge.decision, endpoint)
        if charge.decision.delay_us and charge.decision.allowed:
            time.sleep(charge.decision.delay_s)
        return charge

    async def acheck(self, request: Request, endpoint: str, method: str) -> Charge | None:
        """`check` for asyncio."""
        if self._methods and folded_method(method) not in self._methods:
            return None
        found = self._found_at_once(request, endpoint) or await arun_steps(self._steps(request, endpoint))
        if found is None:
            return None
        limits, route, key, cost = found
        if limits.in_memory:  # saves a coroutine
            charge = limits.decide(route, key, method, cost)
        else:
            charge = await limits.adecide(route, key, method, cost)
        limits.metrics.count_route(charge.decision, endpoint)
        if charge.decision.delay_us and charge.decision.allowed:
            await asyncio.sleep(charge.decision.delay_s)
        return charge

    def _found_at_once(self, request: Request, endpoint: str) -> Found | None:
        """What `_steps` finds, if none of the application's functions has a say in it. None: ask `_steps`."""
        limits = self._plain_limits
        route = limits.endpoint(endpoint) if limits is not None else None
        if limits is None or route is None or route.plain_key is None:
            return None
        try:
            return limits, route, route.plain_key(request), self._cost
        except InvalidKey as error:
            raise UncountableRequest(error.message, param=error.param) from None

    def _steps(self, request: Request, endpoint: str) -> Steps[Found | None]:
        """The limits, route, key and cost of a request, or None if it is exempt."""
        limits = yield from self.counts.steps(request)
        if limits is None:
            return None
        route = limits.endpoint(endpoint)
        if not route.matches:  # not enabled
            return None
        try:
            key = yield from route.key_steps(request)
            if key is None:
                return None
            cost = (yield self._cost(request)) if callable(self._cost) else self._cost
            return limits, route, key, route.check_cost(cost)
        except (InvalidCost, InvalidKey) as error:
            raise UncountableRequest(error.message, param=error.param) from None


def check_quotas(quotas: Sequence[Any], cost: Any) -> None:
    """Raise for what is no quota, and if a cost that is a number, not a function, can never fit one of them."""
    for quota in quotas:
        if not isinstance(quota, str | Quota) and not callable(quota):
            wanted = 'a limit is like "5/minute", or a function that returns a quota; not'
            raise ConfigError(f"{wanted} {quota!r:.80}", param="quota")
    plain = [quota for quota in quotas if isinstance(quota, str | Quota)]
    if not callable(cost):
        for _, quota in name_quotas(plain or ["1000000000/second"]):
            quota.check_cost(cost)


def _name_source(part: str, identify: dict[str, Any]) -> str:
    """The name of a part. A source in its place, like `post:username`, becomes a part of its own in `identify`."""
    if not isinstance(part, str) or ":" not in part:
        return part
    name = part_of_source(part)
    if identify.get(name, part) != part:
        message = f"{identify[name]!r} and {part!r} would be one part; give one of them to identify under another name"
        raise ConfigError(message, param="key")
    identify[name] = part
    return name


def _check_methods(methods: Sequence[str]) -> frozenset[str]:
    named = [method.upper() if isinstance(method, str) else method for method in to_list("methods", methods)]
    return frozenset(RequestRule("limit", "1/day", methods=named).methods)


def _rule_name(quota: Quota, name: str | None, count: int) -> str:
    """The name that headers, metrics and Redis show: the limit's own, and the quota where that is not enough."""
    shown = quota.rate.replace("/", "-")
    shown += f"-{quota.algorithm}" if quota.algorithm != DEFAULT_ALGORITHM else ""
    shown += f"-{quota.burst}" if quota.burst else ""
    return f"{name}-{shown}" if name and count > 1 else name or f"limit-{shown}"
