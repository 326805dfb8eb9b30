"""The part both middlewares share: from a request to the rules that apply, the key, and one question to the limiter.

What depends only on method and path (rules, endpoint, cost, header bytes) is found once and kept as a `Route`, in a
bounded table. All rules of a rule book share one store, so a rule keeps its counts whatever else applies beside it.
A new rule book is prepared completely before it takes over; requests already being judged finish by the old one.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

from frontrow.core.clock import Clock, SystemClock, steady
from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.limits.http.headers import Fields, Policy
from frontrow.limits.http.route_check import Question
from frontrow.limits.http.rule_conversion import (
    TIER_PART,
    Rules,
    as_book,
    cost_rules,
    endpoint_part,
    inner,
    plain_part,
    tier_of_rules,
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
_FALLBACK = "\0ip:"  # marks an address that stands in for a missing id, so that no id equals it


class MissingClient(InvalidInput):
    """A rule counts by something this request does not say."""

    code = "missing_client_id"
    http_status = 400


class Route:
    """What is done for one method and path."""

    __slots__ = ("acheck", "check", "cost", "fields", "key_of", "matches", "tier_fields")

    def __init__(self, matches: tuple[Match, ...]) -> None:
        self.matches = matches
        self.check: Callable[..., Any]
        self.acheck: Callable[..., Any]
        self.cost = 1
        self.key_of: Callable[[Request], Any]
        self.fields: Fields
        self.tier_fields: dict[str, Fields] | None = None


class Gate:
    """Rules, a store and how to read a request, made into `route(method, path)`."""

    def __init__(
        self,
        rules: Rules,
        getters: Mapping[str, Getter],
        *,
        store: str = "memory://",
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
        self.book = as_book(rules)
        self.metrics = metrics or LimitMetrics()
        self.took = self.metrics.took
        self.turns = cycle([0] + [1] * (TIMED_ONE_IN - 1))  # 0: time this one
        self.refusals = refusals or RefusalLog()
        self.in_memory = store.startswith("memory:")
        self._getters = dict(getters)
        self._tier_of = tier_of or tier_of_rules(rules)
        self._costs = cost_rules(costs or {})
        self._clock = steady(clock or SystemClock())
        self._limiter_options: dict[str, Any] = {
            "clock": self._clock,
            "on_store_down": on_store_down,
            "deadline_s": deadline_s,
        }
        self._limiter_options |= {"store": store, **store_options}
        self._field_options: dict[str, Any] = {"dialect": dialect, "reset": reset}
        self._retired: list[Limiter] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()
        self._rules: RuleSet
        self._limiter: Limiter
        self.routes: dict[tuple[str, str, str], Route] = {}
        self.book.follow(self._prepare)

    # -- rules in force ----------------------------------------------------------------------------------------

    def _prepare(self, rules: RuleSet) -> Callable[[], None]:
        """Make everything new rules need; what is returned puts them in force."""
        for rule in rules.rules:
            self._check_rule(rule)
        whole = tuple(inner(rule, plain_part(rules.rules) is not None) for rule in rules.rules)
        limiter = Limiter(whole, **self._limiter_options)
        Fields([], **self._field_options)  # a wrong dialect is told now, not at the first request

        def switch() -> None:
            with self._lock:
                self.metrics.follow(limiter.stats)
                if hasattr(self, "_limiter"):
                    self._retire(self._limiter)
                self._rules, self._limiter = rules, limiter
                self.routes = {}

        return switch

    def _retire(self, limiter: Limiter) -> None:
        """Keep a replaced limiter while requests may still be asking it; close it when another was replaced since."""
        self._retired.append(limiter)
        while len(self._retired) > MAX_RETIRED:
            old = self._retired.pop(0)
            old.close()
            try:
                closing = asyncio.get_running_loop().create_task(old.aclose())
            except RuntimeError:  # no event loop here: its asyncio connections, if any, go with it
                continue
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _check_rule(self, rule: RequestRule) -> None:
        for part in rule.key:
            if part not in self._getters and part not in ("endpoint", "path"):
                known = ", ".join(sorted({*self._getters, "endpoint", "path"}))
                message = f"rule {rule.name!r}: key part {part!r} is unknown; known: {known}; others by identify="
                raise ConfigError(message, param="key")
        if rule.tiers and self._tier_of is None:
            raise ConfigError(f"rule {rule.name!r} has tiers; say who is in which: tier_of=Tiers({{'42': 'vip'}})")

    # -- routes ------------------------------------------------------------------------------------------------

    def route(self, method: str, path: str, root_path: str = "") -> Route:
        """The route of a request that `routes` does not know yet."""
        with self._lock:
            rules, routes = self._rules, self.routes
            made = self._make(rules.matching(method, path, root_path), path)
            if len(path) + len(root_path) <= MAX_PATH_CHARS and len(method) <= 16:
                if len(routes) >= MAX_ROUTES:
                    routes.clear()
                routes[(method, path, root_path)] = made
        return made

    def _make(self, matches: tuple[Match, ...], path: str) -> Route:
        made = Route(matches)
        if not matches:
            return made
        constant = _constant_parts(matches, path)
        question = Question(self._limiter, [match.rule.name for match in matches], constant)
        made.cost = question.check_cost(self._cost(matches[0].endpoint.partition(" ")[0], path))
        plain = plain_part(self._rules.rules)
        asked = question if plain is None else self._limiter
        made.check, made.acheck = asked.check, asked.acheck
        made.key_of = self._key_of(matches, constant, plain)
        rules = [match.rule for match in matches]
        made.fields = self._fields(rules, None)
        tiers = {tier for rule in rules for tier in rule.tiers}
        if tiers:
            made.tier_fields = {tier: self._fields(rules, tier) for tier in tiers}
        return made

    def _fields(self, rules: Sequence[RequestRule], tier: str | None) -> Fields:
        shown: list[Policy] = []
        hidden: list[Policy] = []
        for rule in rules:
            quota = rule.tiers.get(tier or "", rule.quota)
            (hidden if rule.shadow else shown).append(Policy.of(rule.name, quota))
        return Fields(shown or hidden, hidden, **self._field_options)

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
        """What stands in for a part the request does not have, if the rules allow any."""
        if must:
            raise MissingClient(f"this request does not say its {part}, and a rate limit counts by it", param=part)
        address = self._getters["ip"](request)
        if not address:
            raise MissingClient(f"this request says neither its {part} nor an address to count by", param=part)
        return _FALLBACK + address

    def refused(self, decision: Decision, key: Any, method: str) -> None:
        """Log a refusal."""
        self.refusals.refused(decision.rule, key, method=folded_method(method), source=decision.source)

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
