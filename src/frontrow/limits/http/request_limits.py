"""What both middlewares share: finds the rules and the key of a request, and checks the limiter once.

Whatever depends only on method and path (rules, endpoint, cost, header bytes) is computed once and kept as a
`LimitedRoute` in a bounded table. All rules of a rule book share one store, so a rule keeps its counts whichever other
rules apply. New rules are prepared completely before they take over. Requests in progress finish by the old ones.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

from frontrow.core.clock import Clock, SystemClock, steady
from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.limits.http.headers import HeaderBuilder, QuotaPolicy
from frontrow.limits.http.route_check import RouteCheck
from frontrow.limits.http.rule_conversion import (
    TIER_PART,
    Rules,
    endpoint_part,
    limiter_rule,
    rules_of_costs,
    single_key_part,
    tier_of_rules,
    to_rule_book,
)
from frontrow.limits.limiter import DEFAULT_DEADLINE_S, Limiter
from frontrow.limits.metrics import LimitMetrics, RefusalLog
from frontrow.limits.paths import segments
from frontrow.limits.quota import Decision
from frontrow.limits.rules import Match, RequestRule, RuleSet, TierOf, folded_method

Request = Any  # an ASGI scope or a WSGI environ
Getter = Callable[[Request], str | None]

MAX_ROUTES, MAX_PATH_CHARS, MAX_RETIRED = 4096, 512, 2
TIMED_ONE_IN = 16
_FALLBACK = "\0ip:"  # marks an address that replaces a missing id; no id can start like this


class MissingClient(InvalidInput):
    """A rule counts by a part that this request does not have."""

    code = "missing_client_id"
    http_status = 400


class LimitedRoute:
    """Everything needed to check requests of one method and path."""

    __slots__ = ("acheck", "check", "cost", "headers", "key_of", "matches", "tier_headers")

    def __init__(self, matches: tuple[Match, ...]) -> None:
        self.matches = matches
        self.check: Callable[..., Any]
        self.acheck: Callable[..., Any]
        self.cost = 1
        self.key_of: Callable[[Request], Any]
        self.headers: HeaderBuilder
        self.tier_headers: dict[str, HeaderBuilder] | None = None


class RequestLimits:
    """The limits of an application's requests: the rules, their store, and how to read a request's key."""

    def __init__(
        self,
        rules: Rules,
        getters: Mapping[str, Getter],
        *,
        store: Any = "memory://",
        tier_of: TierOf | None = None,
        costs: Mapping[str, int] | None = None,
        clock: Clock | None = None,
        on_store_down: str = "local",
        deadline_s: float = DEFAULT_DEADLINE_S,
        dialect: str = "draft-11",
        reset: str = "epoch",
        metrics: LimitMetrics | None = None,
        refusals: RefusalLog | None = None,
        **store_options: Any,
    ) -> None:
        self.book = to_rule_book(rules)
        self.metrics = metrics or LimitMetrics()
        self.record_latency = self.metrics.record_latency
        self.untimed = cycle([0] + [1] * (TIMED_ONE_IN - 1))  # 0: time this request
        self.refusals = refusals or RefusalLog()
        self.in_memory = isinstance(store, str) and store.startswith("memory:")
        self._getters = dict(getters)
        self._tier_of = tier_of or tier_of_rules(rules)
        self._costs = rules_of_costs(costs or {})
        self._clock = steady(clock or SystemClock())
        self._limiter_options: dict[str, Any] = {
            "clock": self._clock,
            "on_store_down": on_store_down,
            "deadline_s": deadline_s,
        }
        self._limiter_options |= {"store": store, **store_options}
        self._header_options: dict[str, Any] = {"dialect": dialect, "reset": reset}
        self._retired: list[Limiter] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()
        self._rules: RuleSet
        self._limiter: Limiter
        self.routes: dict[tuple[str, str, str], LimitedRoute] = {}
        self.book.follow(self._prepare)

    # -- rules in force ----------------------------------------------------------------------------------------

    def _prepare(self, rules: RuleSet) -> Callable[[], None]:
        """Prepare everything that new rules need. Calling the returned function puts them in force."""
        for rule in rules.rules:
            self._check_rule(rule)
        whole = tuple(limiter_rule(rule, single_key_part(rules.rules) is not None) for rule in rules.rules)
        limiter = Limiter(whole, **self._limiter_options)
        HeaderBuilder([], **self._header_options)  # reports a wrong dialect now, not at the first request

        def switch() -> None:
            with self._lock:
                self.metrics.follow(limiter.stats)
                if hasattr(self, "_limiter"):
                    self._retire(self._limiter)
                self._rules, self._limiter = rules, limiter
                self.routes = {}

        return switch

    def _retire(self, limiter: Limiter) -> None:
        """Keep a replaced limiter while requests may still use it. Close it once others have been replaced since."""
        self._retired.append(limiter)
        while len(self._retired) > MAX_RETIRED:
            old = self._retired.pop(0)
            old.close()
            try:
                closing = asyncio.get_running_loop().create_task(old.aclose())
            except RuntimeError:  # no event loop runs here, so there is nothing to close on it
                continue
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _check_rule(self, rule: RequestRule) -> None:
        for part in rule.key:
            if part not in self._getters and part not in ("endpoint", "path"):
                parts = ", ".join(sorted({*self._getters, "endpoint", "path"}))
                message = f"rule {rule.name!r}: key part {part!r} is unknown; known: {parts}; add others with identify="
                raise ConfigError(message, param="key")
        if rule.tiers and self._tier_of is None:
            raise ConfigError(f"rule {rule.name!r} has tiers; say who is in which: tier_of=Tiers({{'42': 'vip'}})")

    # -- routes ------------------------------------------------------------------------------------------------

    def add_route(self, method: str, path: str, root_path: str = "") -> LimitedRoute:
        """Build the route of a request that `routes` does not have yet."""
        with self._lock:
            rules, routes = self._rules, self.routes
            route = self._build_route(rules.matching(method, path, root_path), path)
            if len(path) + len(root_path) <= MAX_PATH_CHARS and len(method) <= 16:
                if len(routes) >= MAX_ROUTES:
                    routes.clear()
                routes[(method, path, root_path)] = route
        return route

    def _build_route(self, matches: tuple[Match, ...], path: str) -> LimitedRoute:
        route = LimitedRoute(matches)
        if not matches:
            return route
        constant = _constant_parts(matches, path)
        route_check = RouteCheck(self._limiter, [match.rule.name for match in matches], constant)
        route.cost = route_check.check_cost(self._cost(matches[0].endpoint.partition(" ")[0], path))
        single_part = single_key_part(self._rules.rules)
        checker = route_check if single_part is None else self._limiter
        route.check, route.acheck = checker.check, checker.acheck
        route.key_of = self._key_of(matches, constant, single_part)
        rules = [match.rule for match in matches]
        route.headers = self._header_builder(rules, None)
        tiers = {tier for rule in rules for tier in rule.tiers}
        if tiers:
            route.tier_headers = {tier: self._header_builder(rules, tier) for tier in tiers}
        return route

    def _header_builder(self, rules: Sequence[RequestRule], tier: str | None) -> HeaderBuilder:
        shown: list[QuotaPolicy] = []
        hidden: list[QuotaPolicy] = []
        for rule in rules:
            quota = rule.tiers.get(tier or "", rule.quota)
            (hidden if rule.shadow else shown).append(QuotaPolicy.of(rule.name, quota))
        return HeaderBuilder(shown or hidden, hidden, **self._header_options)

    def _cost(self, method: str, path: str) -> int:
        found = self._costs.matching(method, path)
        return max((match.rule.quota.limit for match in found), default=1)

    # -- keys --------------------------------------------------------------------------------------------------

    def _key_of(
        self, matches: tuple[Match, ...], constant: dict[str, str], plain: str | None
    ) -> Callable[[Request], Any]:
        wanted = dict.fromkeys(part for match in matches for part in match.rule.key)
        strict = {part for match in matches for part in match.rule.key if match.rule.on_missing == "error"}
        getters = [
            (part, self._getters[part], part in strict or part == "ip")
            for part in wanted
            if part not in ("endpoint", "path")
        ]
        if plain is not None:
            [(part, get, must)] = getters

            def value_of(request: Request) -> str:
                value = get(request)
                return value if value and value[0] != "\0" else self._missing(request, part, must)

            return value_of
        tier_of = self._tier_of if any(match.rule.tiers for match in matches) else None

        def key_of(request: Request) -> dict[str, str]:
            key = constant.copy()
            for part, get, must in getters:
                value = get(request)
                key[part] = value if value and value[0] != "\0" else self._missing(request, part, must)
            if tier_of is not None and (tier := tier_of(key)):
                key[TIER_PART] = tier
            return key

        return key_of

    def _missing(self, request: Request, part: str, must: bool) -> str:
        """The replacement for a part that the request does not have, if the rules allow one."""
        if must:
            raise MissingClient(f"this request has no {part}, and a rate limit counts by it", param=part)
        address = self._getters["ip"](request)
        if not address:
            raise MissingClient(f"this request has neither a {part} nor an address to count by", param=part)
        return _FALLBACK + address

    def log_refusal(self, decision: Decision, key: Any, method: str) -> None:
        """Log a refusal."""
        self.refusals.write(decision.rule, key, method=folded_method(method), source=decision.source)

    # -- closing -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the stores' blocking connections."""
        for limiter in (*self._retired, self._limiter):
            limiter.close()

    async def aclose(self) -> None:
        """Close the stores' connections, asyncio ones included."""
        for limiter in (*self._retired, self._limiter):
            await limiter.aclose()
        await asyncio.gather(*self._closing)


def _constant_parts(matches: tuple[Match, ...], path: str) -> dict[str, str]:
    """The parts of the key that follow from method and path."""
    constant = {endpoint_part(match.rule): match.endpoint for match in matches if "endpoint" in match.rule.key}
    if any("path" in match.rule.key for match in matches):
        constant["path"] = "/" + "/".join(segments(path))
    return constant
