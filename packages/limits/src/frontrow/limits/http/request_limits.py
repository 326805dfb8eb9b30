"""What all middlewares share: finds the rules and the key of a request, and checks the limiter once.

Whatever depends only on method and path (rules, endpoint, cost, header bytes) is computed once and kept as a
`LimitedRoute` in a bounded table. All rules of a rule book share one store, so a rule keeps its counts whichever other
rules apply. New rules are prepared completely before they take over. Requests in progress finish by the old ones.

A rule that counts only some responses (`statuses`) is charged before the application runs and refunded when the
response does not count. So however many requests arrive at once, no more than the quota reach the application.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from time import perf_counter_ns
from typing import Any, Unpack

from frontrow.core.background_tasks import carry_out, start_task
from frontrow.core.clock import Clock, SystemClock, steady
from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.limits.given_flags import check_flag
from frontrow.limits.given_lists import to_list
from frontrow.limits.http.body_parts import DEFAULT_MAX_BODY_BYTES
from frontrow.limits.http.caller_identity import CallerIdentity, RequestSource, Source, Steps, check_can_wait
from frontrow.limits.http.client_address import ClientAddress, Networks
from frontrow.limits.http.headers import Dialect, Field, HeaderBuilder, QuotaPolicy, ResetForm
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
from frontrow.limits.limiter import Limiter
from frontrow.limits.limiters_in_use import note_limiter
from frontrow.limits.metrics import LimitMetrics
from frontrow.limits.options import StoreOptions, check_options
from frontrow.limits.paths import segments
from frontrow.limits.quota import Decision, OnStoreDown
from frontrow.limits.refusal_log import RefusalLog
from frontrow.limits.rules import Match, RequestRule, RuleSet, TierOf, folded_method
from frontrow.limits.stores.deadline import DEFAULT_DEADLINE_S

Request = Any  # an ASGI scope, a WSGI environ or a framework's request
OnRefused = Callable[[Request, Decision], Any]

MAX_ROUTES, MAX_PATH_CHARS, MAX_RETIRED = 4096, 512, 2
TIMED_ONE_IN = 16
WEBSOCKET = "GET websocket"  # in place of a method, which cannot have a space. Handshakes count as GET
_HANDSHAKES = {WEBSOCKET: "GET"}
REFUNDS = "limit refunds"  # the job of what is given back
_FALLBACK = "\0ip:"  # marks an address that replaces a missing id; no id can start like this


class RouteOptions(StoreOptions, total=False):
    """What the limits of single routes take besides a store. mypy needs closed lists to find misspelt options."""

    identify: Mapping[str, Source] | None  # key part -> "header:x-user-id", "json:email" or a function of the request
    trusted_proxies: Iterable[str]
    ipv6_prefix: int
    exempt_addresses: Iterable[str]
    exempt_users: Iterable[str]
    exempt_if: Callable[[Request], Any] | None
    on_refused: OnRefused | None
    max_body_bytes: int
    tier_of: TierOf | None
    clock: Clock | None
    on_store_down: OnStoreDown
    deadline_s: float
    dialect: Dialect
    reset: ResetForm
    metrics: LimitMetrics | None
    refusals: RefusalLog | None
    enabled: bool  # False: nothing is limited, in tests for example


class Options(RouteOptions, total=False):
    """What every middleware takes besides rules and store."""

    exempt_paths: Iterable[str]
    count_preflights: bool
    costs: Mapping[str, int] | None


_OPTIONS = ("rules", "store", *StoreOptions.__annotations__, *Options.__annotations__)


class MissingClient(InvalidInput):
    """A rule counts by a part that this request does not have."""

    code = "missing_client_id"
    http_status = 400


class UncountableRequest(MissingClient):
    """A function of the request returned a cost or a key that no rule can count."""

    code = "uncountable_request"


class LimitedRoute:
    """Everything needed to check requests of one method and path."""

    __slots__ = (
        "acheck",
        "arefund",
        "check",
        "check_cost",
        "cost",
        "headers",
        "key_steps",
        "matches",
        "plain_key",
        "reads_body",
        "refund",
        "refundable",
        "tier_headers",
    )

    def __init__(self, matches: tuple[Match, ...]) -> None:
        self.matches = matches
        self.check: Callable[..., Any]
        self.acheck: Callable[..., Any]
        self.check_cost: Callable[[int], int]  # raises for a cost that can never fit
        self.refund: Callable[..., Any]
        self.arefund: Callable[..., Any]
        self.cost = 1
        self.key_steps: Callable[[Request], Steps[Any]]  # makes None for a request that is exempt
        self.plain_key: Callable[[Request], Any] | None = None
        """Makes the key at once, if that is all there is to do: no exemptions, tiers, bodies or refunds."""
        self.reads_body = False
        self.refundable: tuple[RequestRule, ...] = ()  # the rules that count only some responses
        self.headers: HeaderBuilder
        self.tier_headers: dict[str, HeaderBuilder] | None = None

    def fields(self, key: Any, decision: Decision) -> list[Field]:
        """The headers about a decision."""
        headers = self.headers
        if self.tier_headers is not None:
            headers = self.tier_headers.get(key.get(TIER_PART), headers)
        return headers.of(decision)


_NO_RULES = LimitedRoute(())


@dataclass(slots=True)
class Charge:
    """A request that was checked: the decision, its headers, and what a refund needs."""

    limits: "RequestLimits"
    route: LimitedRoute
    key: Any
    cost: int
    decision: Decision
    fields: list[Field]
    began_us: int
    is_given_back: bool = False  # because another limit of the same request refused


class RequestLimits:
    """The limits of an application's requests: the rules, their store, and how to read a request's key."""

    def __init__(
        self,
        rules: Rules,
        source: RequestSource,
        *,
        store: Any = "memory://",
        identify: Mapping[str, Source] | None = None,
        trusted_proxies: Iterable[str] = (),
        ipv6_prefix: int = 64,
        exempt_addresses: Iterable[str] = (),
        exempt_users: Iterable[str] = (),
        exempt_paths: Iterable[str] = (),
        exempt_if: Callable[[Request], Any] | None = None,
        count_preflights: bool = False,
        on_refused: OnRefused | None = None,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
        tier_of: TierOf | None = None,
        costs: Mapping[str, int] | None = None,
        clock: Clock | None = None,
        on_store_down: OnStoreDown = "local",
        deadline_s: float = DEFAULT_DEADLINE_S,
        dialect: Dialect = "draft-11",
        reset: ResetForm = "epoch",
        metrics: LimitMetrics | None = None,
        refusals: RefusalLog | None = None,
        enabled: bool = True,
        only: Callable[[RequestRule], bool] | None = None,
        **store_options: Unpack[StoreOptions],
    ) -> None:
        if store_options:
            check_options("a limit of requests", store_options, _OPTIONS)
        check_flag("enabled", enabled)
        self.book = to_rule_book(rules)
        self._enabled = enabled
        self.metrics = metrics or LimitMetrics()
        self.record_latency = self.metrics.record_latency
        self.untimed = cycle([0] + [1] * (TIMED_ONE_IN - 1))  # 0: time this request
        self.refusals = refusals or RefusalLog()
        self.in_memory = isinstance(store, str) and store.startswith("memory:")
        self.skips_preflights = not count_preflights
        self.on_refused = on_refused
        self.max_body_bytes = max_body_bytes
        clients = ClientAddress(to_list("trusted_proxies", trusted_proxies), ipv6_prefix=ipv6_prefix)
        self._identity = CallerIdentity(source, identify or {}, clients, max_body_bytes)
        self._exempt_paths = tuple(to_list("exempt_paths", exempt_paths))
        self._exempt_users = frozenset(str(user) for user in to_list("exempt_users", exempt_users))
        self._exempt_if = exempt_if
        networks = to_list("exempt_addresses", exempt_addresses)
        self._exempt_address = Networks(networks, param="exempt_addresses").contain if networks else None
        self._tier_of = tier_of or tier_of_rules(rules)
        for what, function in (("tier_of", self._tier_of), ("exempt_if", exempt_if), ("on_refused", on_refused)):
            check_can_wait(what, function, source.can_wait)
        self._only = only
        self._costs = rules_of_costs(costs or {})
        self._clock = self.now_us = steady(clock or SystemClock())
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
        self._limiter: Limiter | None = None
        self.routes: dict[tuple[str, str, str], LimitedRoute] = {}
        self._shared_routes: dict[
            tuple[Any, ...], LimitedRoute
        ] = {}  # as many as there are patterns, methods and costs
        self.book.follow(self._prepare)
        self.book.observe(self.metrics.shadow_refusals)
        if self.book.is_shared:
            self.metrics.books.add(self.book)
        note_limiter(self)

    def switch(self, clock: Clock | None) -> Callable[[], None]:
        """For tests: count in memory, from nothing, on this clock; None: limit nothing. The result switches back."""
        names = ("_enabled", "in_memory", "_clock", "now_us", "_limiter_options")
        before = {name: getattr(self, name) for name in names}
        self._enabled = clock is not None
        if clock is not None:
            self.in_memory, self._clock = True, steady(clock)
            self.now_us = self._clock
            self._limiter_options = {"clock": clock}
        self._prepare(self.book.current)()

        def switch_back() -> None:
            vars(self).update(before)
            self._prepare(self.book.current)()

        return switch_back

    @property
    def enabled(self) -> bool:
        """Whether requests are limited at all. May be set while running: it holds from the next request on."""
        return self._enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        check_flag("enabled", enabled)
        with self._lock:
            self._enabled = enabled
            self.routes, self._shared_routes = {}, {}

    # -- rules in force ----------------------------------------------------------------------------------------

    def _prepare(self, rules: RuleSet) -> Callable[[], None]:
        """Prepare everything that new rules need. Calling the returned function puts them in force."""
        if self._only is not None:
            rules = RuleSet(filter(self._only, rules.rules))
        for rule in rules.rules:
            self._check_rule(rule)
            if not (rule.methods or rule.paths or rule.except_paths):  # it applies wherever a cost does
                for cost in self._costs.rules:
                    rule.quota.check_cost(cost.quota.limit)
        if self._exempt_paths:
            rules = RuleSet(replace(rule, except_paths=rule.except_paths + self._exempt_paths) for rule in rules.rules)
        whole = tuple(limiter_rule(rule, single_key_part(rules.rules) is not None) for rule in rules.rules)
        # a middleware that only has some of the rules may have none
        limiter = Limiter(whole, **self._limiter_options) if whole or self._only is None else None
        HeaderBuilder([], **self._header_options)  # reports a wrong dialect now, not at the first request

        def switch() -> None:
            with self._lock:
                if self._limiter is not None:
                    self._retire(self._limiter)
                if limiter is not None:
                    self.metrics.follow(limiter.stats, self)
                self._rules, self._limiter = rules, limiter
                self.routes, self._shared_routes = {}, {}

        return switch

    def _retire(self, limiter: Limiter) -> None:
        """Keep a replaced limiter while requests may still use it. Close it once others have been replaced since."""
        self._retired.append(limiter)
        while len(self._retired) > MAX_RETIRED:
            old = self._retired.pop(0)
            old.close()
            try:
                asyncio.get_running_loop()
            except RuntimeError:  # no event loop runs here, so there is nothing to close on it
                continue
            closing = start_task(old.aclose(), "limit stores")
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _check_rule(self, rule: RequestRule) -> None:
        for part in rule.key:
            if part not in self._identity.parts:
                parts = ", ".join(sorted(self._identity.parts))
                message = f"rule {rule.name!r}: key part {part!r} is unknown; known: {parts}; add others with identify="
                raise ConfigError(message, param="key")
        if rule.tiers and self._tier_of is None:
            raise ConfigError(f"rule {rule.name!r} has tiers; say who is in which: tier_of=Tiers({{'42': 'vip'}})")

    # -- routes ------------------------------------------------------------------------------------------------

    def add_route(self, method: str, path: str, root_path: str = "", *, is_exempt: bool = False) -> LimitedRoute:
        """Build the route of a request that `routes` does not have yet."""
        with self._lock:
            matches = () if is_exempt else self._rules.matching(_HANDSHAKES.get(method, method), path, root_path)
            route = self._build_route(matches, path)
            if len(path) + len(root_path) <= MAX_PATH_CHARS and len(method) <= 16:
                self._keep_route((method, path, root_path), route)
        return route

    def endpoint(self, name: str) -> LimitedRoute:
        """The route of an endpoint that every rule applies to, whatever its path."""
        route = self.routes.get(("", name, ""))
        if route is None:
            with self._lock:
                route = self._build_route(tuple(Match(rule, name) for rule in self._rules.rules), "/")
                self._keep_route(("", name, ""), route)
        return route

    def _keep_route(self, key: tuple[str, str, str], route: LimitedRoute) -> None:
        if len(self.routes) >= MAX_ROUTES:
            self.routes.clear()
        self.routes[key] = route

    def _build_route(self, matches: tuple[Match, ...], path: str) -> LimitedRoute:
        """The route of these matches. Paths that match the same patterns at the same cost share one."""
        if not matches or self._limiter is None or not self._enabled:
            return _NO_RULES
        cost = self._cost(matches[0].endpoint.partition(" ")[0], path)
        if any("path" in match.rule.key for match in matches):
            return self._new_route(self._limiter, matches, path, cost)
        shared = (cost, *[(match.rule.name, match.endpoint) for match in matches])
        route = self._shared_routes.get(shared)
        if route is None:
            route = self._shared_routes[shared] = self._new_route(self._limiter, matches, path, cost)
        return route

    def _new_route(self, limiter: Limiter, matches: tuple[Match, ...], path: str, cost: int) -> LimitedRoute:
        route = LimitedRoute(matches)
        constant = _constant_parts(matches, path)
        rules = [match.rule for match in matches]
        single_part = single_key_part(self._rules.rules)
        route_check = RouteCheck(limiter, [rule.name for rule in rules], constant, single_part is not None)
        route.check_cost = route_check.check_cost
        route.cost = route_check.check_cost(cost)
        checker = route_check if single_part is None else limiter
        route.check, route.acheck = checker.check, checker.acheck
        route.refund, route.arefund = route_check.refund, route_check.arefund
        route.refundable = tuple(rule for rule in rules if rule.statuses)
        route.reads_body = any(part in self._identity.in_body for rule in rules for part in rule.key)
        plain_key, route.key_steps = self._key_makers(rules, constant, single_part)
        route.plain_key = None if route.reads_body or route.refundable else plain_key
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

    def _key_makers(
        self, rules: Sequence[RequestRule], constant: dict[str, str], plain: str | None
    ) -> tuple[Callable[[Request], Any] | None, Callable[[Request], Steps[Any]]]:
        """The plain function that makes the key, where one is enough, and the steps that always can."""
        wanted = [part for part in dict.fromkeys(part for rule in rules for part in rule.key) if part not in constant]
        wanted = [part for part in wanted if part != "endpoint"]
        strict = {part for rule in rules for part in rule.key if rule.on_missing == "error"} | {"ip"}
        tier_of = self._tier_of if any(rule.tiers for rule in rules) else None
        may_be_exempt = self._exempt_address or self._exempt_users or self._exempt_if

        def key_steps(request: Request) -> Steps[Any]:
            if may_be_exempt and (yield from self._exempt_steps(request)):
                return None
            key = constant.copy()
            for part in wanted:
                value = yield from self._identity.steps(part, request)
                key[part] = value if value and value[0] != "\0" else self._missing(request, part, part in strict)
            if tier_of is not None and (tier := (yield tier_of(key))):
                key[TIER_PART] = tier
            return key if plain is None else key[plain]

        if may_be_exempt or tier_of is not None or any(part in self._identity.functions for part in wanted):
            return None, key_steps
        getters = [(part, self._identity.getters[part], part in strict) for part in wanted]
        if plain is not None:
            [(part, get, must)] = getters

            def value_of(request: Request) -> str:
                value = get(request)
                return value if value and value[0] != "\0" else self._missing(request, part, must)

            return value_of, key_steps

        def key_of(request: Request) -> dict[str, str]:
            key = constant.copy()
            for part, get, must in getters:
                value = get(request)
                key[part] = value if value and value[0] != "\0" else self._missing(request, part, must)
            return key

        return key_of, key_steps

    def _exempt_steps(self, request: Request) -> Steps[bool]:
        """Whether this request is not limited at all."""
        if self._exempt_address is not None:
            address = self._identity.address(request)
            if address and self._exempt_address(address):
                return True
        if self._exempt_users:
            user = yield from self._identity.steps("user", request)
            if user in self._exempt_users:
                return True
        return bool((yield self._exempt_if(request)) if self._exempt_if is not None else False)

    def _missing(self, request: Request, part: str, must: bool) -> str:
        """The replacement for a part that the request does not have, if the rules allow one."""
        if must:
            shown, param = self._identity.told_as(part)
            raise MissingClient(f"this request has no {shown}, and a rate limit counts by it", param=param)
        address = self._identity.getters["ip"](request)
        if not address:
            raise MissingClient(f"this request has neither a {part} nor an address to count by", param=part)
        return _FALLBACK + address

    # -- decisions ---------------------------------------------------------------------------------------------

    def decide(self, route: LimitedRoute, key: Any, method: str, cost: int | None = None) -> Charge:
        """Charge a request. Blocks while the store answers."""
        cost = route.cost if cost is None else cost
        began_us = self._clock()
        if self.in_memory and next(self.untimed):  # most decisions in memory take less time than timing them
            decision = route.check(key, cost)
        else:
            began_ns = perf_counter_ns()
            decision = route.check(key, cost)
            self.record_latency(decision, perf_counter_ns() - began_ns)
        return self._charge(route, key, cost, method, decision, began_us)

    async def adecide(self, route: LimitedRoute, key: Any, method: str, cost: int | None = None) -> Charge:
        """`decide` for asyncio."""
        if self.in_memory:
            return self.decide(route, key, method, cost)
        cost = route.cost if cost is None else cost
        began_us, began_ns = self._clock(), perf_counter_ns()
        decision = await route.acheck(key, cost)
        self.record_latency(decision, perf_counter_ns() - began_ns)
        return self._charge(route, key, cost, method, decision, began_us)

    def _charge(
        self, route: LimitedRoute, key: Any, cost: int, method: str, decision: Decision, began_us: int
    ) -> Charge:
        if not decision.allowed:
            self.log_refusal(route, decision, key, method)
        return Charge(self, route, key, cost, decision, route.fields(key, decision), began_us)

    def settle(self, charge: Charge, status: int) -> list[Field]:
        """Refund the rules that do not count this response. Returns the headers as they are then."""
        if not charge.route.refundable:
            return charge.fields
        names = self._uncounted(charge, status)
        if not names:
            return charge.fields
        return _settled(charge, charge.route.refund(charge.key, charge.cost, names))

    async def asettle(self, charge: Charge, status: int) -> list[Field]:
        """`settle` for asyncio. When it is cancelled, what it gives back is still given back, once."""
        names = self._uncounted(charge, status)
        if not names:
            return charge.fields
        refund = charge.route.arefund(charge.key, charge.cost, names)
        return _settled(charge, await (refund if self.in_memory else carry_out(refund, REFUNDS)))

    def _uncounted(self, charge: Charge, status: int) -> list[str]:
        """The rules to refund. A charge that has left its window by itself is not given back a second time."""
        if charge.is_given_back:
            return []
        alive = self._alive(charge, charge.route.refundable)
        return [rule.name for rule in alive if not rule.counts_status(status)]

    def _alive(self, charge: Charge, rules: Iterable[RequestRule]) -> list[RequestRule]:
        """The rules in whose window the charge still counts."""
        now_us = self._clock()
        alive = []
        for rule in rules:
            period_us = rule.quota.period_us
            same = now_us // period_us == charge.began_us // period_us
            if same if rule.quota.algorithm == "fixed_window" else now_us - charge.began_us < period_us:
                alive.append(rule)
        return alive

    def give_back(self, charge: Charge) -> list[Field]:
        """Return the whole charge, because another limit refuses the request. Returns the headers as they are then."""
        names = self.begin_return(charge)
        if names:
            charge.fields = charge.route.fields(charge.key, charge.route.refund(charge.key, charge.cost, names))
        return charge.fields

    async def agive_back(self, charge: Charge, names: Sequence[str]) -> list[Field]:
        """`give_back` for asyncio, to the rules that `begin_return` named."""
        if names:
            returned = await charge.route.arefund(charge.key, charge.cost, names)
            charge.fields = charge.route.fields(charge.key, returned)
        return charge.fields

    def begin_return(self, charge: Charge) -> list[str]:
        """The rules to give everything back to. From now on nobody else does. Without a store nothing was charged."""
        if charge.is_given_back or charge.decision.source not in ("store", "local"):
            return []
        charge.is_given_back = True
        return [rule.name for rule in self._alive(charge, [match.rule for match in charge.route.matches])]

    def log_refusal(self, route: LimitedRoute, decision: Decision, key: Any, method: str) -> None:
        """Log a refusal, with the endpoint: that of the route's limit, or method and pattern of the rule."""
        endpoint = next((match.endpoint for match in route.matches if match.rule.name == decision.rule), "")
        method = folded_method(_HANDSHAKES.get(method, method))
        self.refusals.write(decision.rule, key, method=method, endpoint=endpoint, source=decision.source)

    # -- closing -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the stores' blocking connections."""
        for limiter in self._limiters():
            limiter.close()

    def _limiters(self) -> list[Limiter]:
        return [*self._retired, *([self._limiter] if self._limiter is not None else [])]

    async def aclose(self) -> None:
        """Close the stores' connections, asyncio ones included."""
        for limiter in self._limiters():
            await limiter.aclose()
        await asyncio.gather(*self._closing)


def _constant_parts(matches: tuple[Match, ...], path: str) -> dict[str, str]:
    """The parts of the key that follow from method and path."""
    constant = {endpoint_part(match.rule): match.endpoint for match in matches if "endpoint" in match.rule.key}
    if any("path" in match.rule.key for match in matches):
        constant["path"] = "/" + "/".join(segments(path))
    return constant


def _settled(charge: Charge, refunded: Decision) -> list[Field]:
    """The headers after a refund: those of the refunded rule, unless another rule has less left."""
    if charge.decision.rule != refunded.rule and charge.decision.remaining <= refunded.remaining:
        return charge.fields
    return charge.route.fields(charge.key, refunded)
