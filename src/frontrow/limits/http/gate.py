"""The part both middlewares share: from a request to the rules that apply, the key, and one question to the limiter.

What depends only on method and path (rules, endpoint, cost, header bytes) is found once and kept as a `Route`, in a
bounded table. All rules of a rule book share one store, so a rule keeps its counts whatever else applies beside it.
A new rule book is prepared completely before it takes over; requests already being judged finish by the old one.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frontrow.core.clock import Clock, SystemClock, steady
from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.limits.http.headers import Fields, Policy
from frontrow.limits.http.subset import SubsetStore
from frontrow.limits.limiter import DEFAULT_DEADLINE_S, Limiter
from frontrow.limits.metrics import LimitMetrics, RefusalLog
from frontrow.limits.paths import segments
from frontrow.limits.quota import Decision, Quota, Rule
from frontrow.limits.rules import Match, RequestRule, RuleBook, RuleSet, TierOf, folded_method

Request = Any  # an ASGI scope or a WSGI environ
Getter = Callable[[Request], str | None]
Rules = RuleBook | Sequence[RequestRule | Rule] | RequestRule | Rule | Quota | str

MAX_ROUTES, MAX_PATH_CHARS, MAX_SUBSETS = 4096, 512, 512
TIER_PART = "@tier"  # no part can be named so: parts are identifiers
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
        self.refusals = refusals or RefusalLog()
        self.in_memory = store.startswith("memory:")
        self._getters = dict(getters)
        self._tier_of = tier_of
        self._costs = cost_rules(costs or {})
        self._clock = steady(clock or SystemClock())
        self._limiter_options: dict[str, Any] = {
            "clock": self._clock,
            "on_store_down": on_store_down,
            "deadline_s": deadline_s,
        }
        self._limiter_options |= {"stats": self.metrics.stats, "store": store, **store_options}
        self._field_options: dict[str, Any] = {"dialect": dialect, "reset": reset}
        self.retired: list[Limiter] = []
        self._lock = threading.Lock()
        self._rules: RuleSet
        self._limiter: Limiter
        self._subsets: dict[tuple[str, ...], Limiter]
        self.routes: dict[tuple[str, str, str], Route] = {}
        self.book.follow(self._prepare)

    # -- rules in force ----------------------------------------------------------------------------------------

    def _prepare(self, rules: RuleSet) -> Callable[[], None]:
        """Make everything new rules need; what is returned puts them in force."""
        for rule in rules.rules:
            self._check_rule(rule)
        self.metrics.know([rule.name for rule in rules.rules])
        whole = tuple(_inner(rule, _plain_part(rules.rules) is not None) for rule in rules.rules)
        limiter = Limiter(whole, **self._limiter_options)
        Fields([], **self._field_options)  # a wrong dialect is told now, not at the first request

        def switch() -> None:
            with self._lock:
                if hasattr(self, "_limiter"):
                    self.retired.append(self._limiter)
                self._rules, self._limiter, self._subsets = rules, limiter, {}
                self.routes = {}

        return switch

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
        limiter = self._limiter_of(matches)
        made.check, made.acheck = limiter.check, limiter.acheck
        made.cost = self._cost(matches[0].endpoint.partition(" ")[0], path)
        made.key_of = self._key_of(matches, path)
        told = [match.rule for match in matches if not match.rule.shadow] or [match.rule for match in matches]
        made.fields = self._fields(told, None)
        tiers = {tier for rule in told for tier in rule.tiers}
        if tiers:
            made.tier_fields = {tier: self._fields(told, tier) for tier in tiers}
        return made

    def _fields(self, rules: Sequence[RequestRule], tier: str | None) -> Fields:
        quotas = [(rule.name, rule.tiers.get(tier or "", rule.quota)) for rule in rules]
        return Fields([Policy.of(name, quota) for name, quota in quotas], **self._field_options)

    def _limiter_of(self, matches: tuple[Match, ...]) -> Limiter:
        if len(matches) == len(self._rules.rules):
            return self._limiter
        names = tuple(match.rule.name for match in matches)
        found = self._subsets.get(names)
        if found is None:
            if len(self._subsets) >= MAX_SUBSETS:
                self._subsets.clear()  # they hold no counts: those are in the store they share
            found = self._subsets[names] = SubsetStore.limiter(self._limiter, names, self.metrics.stats, self._clock)
        return found

    def _cost(self, method: str, path: str) -> int:
        found = self._costs.matching(method, path)
        return max((match.rule.quota.limit for match in found), default=1)

    # -- keys --------------------------------------------------------------------------------------------------

    def _key_of(self, matches: tuple[Match, ...], path: str) -> Callable[[Request], Any]:
        plain = _plain_part(self._rules.rules)
        wanted = dict.fromkeys(part for match in matches for part in match.rule.key)
        strict = {part for match in matches for part in match.rule.key if match.rule.on_missing == "error"}
        getters = [
            (part, self._getters[part], part in strict or part == "ip")
            for part in wanted
            if part not in ("endpoint", "path")
        ]
        if plain is not None:
            [(part, get, must)] = getters
            return lambda request: self._value(request, part, get, must)
        constant = {f"endpoint@{match.rule.name}": match.endpoint for match in matches if "endpoint" in match.rule.key}
        if "path" in wanted:
            constant["path"] = "/" + "/".join(segments(path))
        tier_of = self._tier_of if any(match.rule.tiers for match in matches) else None

        def key_of(request: Request) -> dict[str, str]:
            key = constant.copy()
            for part, get, must in getters:
                key[part] = self._value(request, part, get, must)
            if tier_of is not None and (tier := tier_of(key)):
                key[TIER_PART] = tier
            return key

        return key_of

    def _value(self, request: Request, part: str, get: Getter, must: bool) -> str:
        value = get(request)
        if value and value[0] != "\0":
            return value
        if must:
            raise MissingClient(f"this request does not say its {part}, and a rate limit counts by it", param=part)
        address = self._getters["ip"](request)
        if not address:
            raise MissingClient(f"this request says neither its {part} nor an address to count by", param=part)
        return _FALLBACK + address

    def refused(self, decision: Decision, key: Any, method: str) -> None:
        """Log a refusal."""
        who = key if isinstance(key, str) else "\0".join(f"{part}={value}" for part, value in key.items())
        self.refusals.refused(decision.rule, who, method=folded_method(method), source=decision.source)

    # -- closing -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the stores' blocking connections."""
        for limiter in (*self.retired, self._limiter):
            limiter.close()

    async def aclose(self) -> None:
        """Close the stores' connections, asyncio ones included."""
        for limiter in (*self.retired, self._limiter):
            await limiter.aclose()


def as_book(rules: Rules) -> RuleBook:
    """A rule book from whatever is at hand: a book, rules, a quota for every address."""
    if isinstance(rules, RuleBook):
        return rules
    if isinstance(rules, str):
        rules = Quota.parse(rules)
    if isinstance(rules, Quota):
        return RuleBook([RequestRule("default", rules)])
    listed = [rules] if isinstance(rules, RequestRule | Rule) else list(rules)
    return RuleBook([_from_rule(rule) if isinstance(rule, Rule) else rule for rule in listed])


def _from_rule(rule: Rule) -> RequestRule:
    """A limiter's rule, for every request; one without parts counts by address."""
    key = ("ip",) if rule.per is None else rule.per
    return RequestRule(
        rule.name,
        rule.quota,
        key,
        tiers=rule.tiers,
        shadow=rule.shadow,
        lease=rule.lease,
        on_store_down=rule.on_store_down,
    )


def _plain_part(rules: Sequence[RequestRule]) -> str | None:
    """The one part all rules count by, if that is so: then the key is simply its value, the limiter's fastest case."""
    parts = {rule.key for rule in rules}
    only = next(iter(parts)) if len(parts) == 1 else ()
    return (
        only[0] if len(only) == 1 and only[0] not in ("endpoint", "path") and not any(r.tiers for r in rules) else None
    )


def _inner(rule: RequestRule, plain: bool) -> Rule:
    """The limiter's rule; its endpoint is a part of its own, because each rule may have matched another pattern."""
    per = None if plain else tuple(f"endpoint@{rule.name}" if part == "endpoint" else part for part in rule.key)
    tier_of = (lambda key: key.get(TIER_PART)) if rule.tiers else None
    return Rule(
        rule.name,
        rule.quota,
        per,
        rule.tiers,
        tier_of,
        rule.shadow,
        rule.lease,
        rule.on_store_down,
    )


def cost_rules(costs: Mapping[str, int]) -> RuleSet:
    """Costs by `"POST /reports/**"` or `"/reports/**"`, as rules whose limit is the cost, matched like any other."""
    rules = []
    for index, (where, cost) in enumerate(costs.items()):
        method, _, path = where.rpartition(" ")
        if type(cost) is not int or cost < 1:
            raise ConfigError(
                f'costs: {where!r} must cost a whole number from 1, like {{"POST /reports": 5}}', param="costs"
            )
        quota = Quota(cost, 1_000_000)
        rules.append(RequestRule(f"cost{index}", quota, methods=(method,) if method else (), paths=(path,)))
    return RuleSet(rules)
