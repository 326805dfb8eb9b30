"""Rules as people write them, for a limiter and for requests.

A limiter takes a list (`to_rules`): each item is a `Rule`, a `Quota`, or a text, which may hold several quotas:
`"1/s; 100/h"`. What has no name of its own is called `default` if it is alone, else by its number: `rule1`, `rule2`.

Requests have rules by method and path, with key parts, tiers, shadow mode and store-down policy. A `RequestRule` says
where a quota applies. A `RuleBook` holds the rules in force. It is loaded from TOML and the environment and can be
replaced while running: a request sees the old rules or the new ones, never a mixture, and a broken file leaves the old
ones in force.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from frontrow.core.errors import ConfigError
from frontrow.core.forks import fork_safe_lock
from frontrow.limits.given_flags import check_flag
from frontrow.limits.given_lists import to_list
from frontrow.limits.paths import PathMatcher, readings
from frontrow.limits.quota import ON_STORE_DOWN, InvalidQuota, Names, OnStoreDown, Quota, Rule, set_fields
from frontrow.limits.tiers import Tiers as Tiers  # documented under this module too

MAX_RULES = 32  # of one limiter
RuleLike = Rule | Quota | str
PARTS = ("user", "api_key", "ip", "endpoint", "path")  # key parts of every middleware; `identify` adds others
OnMissing = Literal["error", "ip"]
ON_MISSING: tuple[OnMissing, ...] = ("error", "ip")
Statuses = tuple[int, ...] | list[int] | Callable[[int], bool]
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY")
OTHER_METHOD = "OTHER"  # unknown methods share one name, or each would be a new endpoint


def name_quotas(rules: object, alone: str = "default", numbered: str = "rule{}") -> list[tuple[str, Any]]:
    """Each quota of `rules` with the name for it. Other things in the list are left as they are."""
    listed = list(rules) if isinstance(rules, Iterable) and not isinstance(rules, str) else [rules]
    quotas = [quota for item in listed for quota in (Quota.parse_all(item) if isinstance(item, str) else (item,))]
    return [(alone if len(quotas) == 1 else numbered.format(at), quota) for at, quota in enumerate(quotas, 1)]


def to_rules(
    rules: RuleLike | Sequence[RuleLike], alone: str = "default", numbered: str = "rule{}"
) -> tuple[Rule, ...]:
    """The rules of a limiter. Checks that there are some, not too many, and that each has its own name."""
    named = name_quotas(rules, alone, numbered)
    if len(named) > MAX_RULES:
        raise InvalidQuota(f"a limiter takes at most {MAX_RULES} rules, not {len(named)}; use several limiters")
    listed = tuple(Rule(name, item) if isinstance(item, Quota) else item for name, item in named)
    for item in listed:
        if not isinstance(item, Rule):
            wanted = '"100/minute", Quota.parse("100/minute") or Rule("burst", "10/second")'
            raise InvalidQuota(f"a rule is like {wanted}; not {item!r:.80}", param="rules")
        if inspect.iscoroutinefunction(item.tier_of) or inspect.iscoroutinefunction(type(item.tier_of).__call__):
            raise InvalidQuota(f"rule {item.name}: tier_of is async; give a limiter a plain function", param="tier_of")
    if not listed:
        raise InvalidQuota('a limiter needs at least one rule, like "100/minute"', param="rules")
    names = [rule.name for rule in listed]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InvalidQuota(f"two rules are called {min(twice)!r}; give each its own name", param="name")
    return listed


def folded_method(method: str) -> str:
    """The method as rules see it: HEAD counts as GET, unknown methods are all OTHER."""
    upper = method.upper()
    return "GET" if upper == "HEAD" else upper if upper in METHODS else OTHER_METHOD


@dataclass(frozen=True, slots=True, init=False)
class RequestRule:
    """A quota and where it applies. An empty `key` is one quota for everybody. Empty `methods` or `paths` mean all.

    Quotas may be texts: `RequestRule("holds", "10/minute", paths=["/holds"])`. `statuses` are the responses that count,
    like (401, 403) or a function of the status. Empty: all. Others are given back.
    """

    name: str
    quota: Quota
    key: tuple[str, ...]
    methods: tuple[str, ...]
    paths: tuple[str, ...]
    except_paths: tuple[str, ...]
    tiers: Mapping[str, Quota]
    shadow: bool
    lease: int  # units charged to a shared store at once; see `Rule`
    on_store_down: OnStoreDown | None  # None: the limiter's default
    on_missing: OnMissing
    statuses: tuple[int, ...] | Callable[[int], bool]

    def __init__(
        self,
        name: str,
        quota: Quota | str,
        key: Names = ("ip",),
        methods: Names = (),
        paths: Names = (),
        except_paths: Names = (),
        tiers: Mapping[str, Quota | str] | None = None,
        shadow: bool = False,
        lease: int = 1,
        on_store_down: OnStoreDown | None = None,
        on_missing: OnMissing = "error",
        statuses: Statuses = (),
    ) -> None:
        """Check every field. An error names the field and shows a valid value."""
        where = f"rule {name!r}"
        checked = Rule(name, quota, tiers=tiers, tier_of=str if tiers else None, lease=lease)
        check_flag("shadow", shadow, where)
        set_fields(
            self,
            name=name,
            quota=checked.quota,
            key=tuple(to_list("key", key, where)),
            methods=tuple(to_list("methods", methods, where)),
            paths=tuple(to_list("paths", paths, where)),
            except_paths=tuple(to_list("except_paths", except_paths, where)),
            tiers=dict(checked.tiers),
            shadow=shadow,
            lease=lease,
            on_store_down=on_store_down,
            on_missing=on_missing,
            statuses=statuses if callable(statuses) else tuple(to_list("statuses", statuses, where)),
        )
        self._check(where)

    def _check(self, where: str) -> None:
        of_store: tuple[str, ...] = ON_STORE_DOWN
        for name, value, choices in (
            ("on_store_down", self.on_store_down or "open", of_store),
            ("on_missing", self.on_missing, ON_MISSING),
        ):
            if value not in choices:
                raise ConfigError(f"{where}: {name} must be one of {', '.join(choices)}, not {value!r}", param=name)
        if not all(isinstance(part, str) and part.isidentifier() for part in self.key):
            raise ConfigError(f"{where}: key must name parts, like ['user', 'endpoint'], not {self.key!r}", param="key")
        for method in self.methods:
            if method not in METHODS:
                raise ConfigError(
                    f"{where}: methods has {method!r}, like ['GET', 'POST'] (HEAD counts as GET)", param="methods"
                )
        PathMatcher(self.paths), PathMatcher(self.except_paths)
        if not callable(self.statuses) and not all(
            type(status) is int and 100 <= status <= 599 for status in self.statuses
        ):
            message = f"{where}: statuses must be numbers from 100 to 599, like (401, 403), not {self.statuses!r}"
            raise ConfigError(message, param="statuses")

    def counts_status(self, status: int) -> bool:
        """Whether a response with this status counts."""
        if callable(self.statuses):
            return bool(self.statuses(status))
        return not self.statuses or status in self.statuses


TierOf = Callable[[Mapping[str, str]], str | Awaitable[str | None] | None]


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that applies to a request, and the endpoint that it matched."""

    rule: RequestRule
    endpoint: str


class RuleSet:
    """Rules that are in force together. Finds those of a request. Immutable."""

    def __init__(self, rules: Iterable[RequestRule]) -> None:
        self.rules = tuple(rules)
        seen: set[str] = set()
        for rule in self.rules:
            if rule.name in seen:
                raise ConfigError(f"two rules are named {rule.name!r}; names are unique, like 'holds'", param="name")
            seen.add(rule.name)
        self._matchers = [
            (rule, PathMatcher(rule.paths or ("/**",)), PathMatcher(rule.except_paths)) for rule in self.rules
        ]

    def matching(self, method: str, path: str, root_path: str = "") -> tuple[Match, ...]:
        """The rules of a request in their order: those that any reading of the path matches."""
        method = folded_method(method)
        ways = readings(path, root_path)
        found: list[Match] = []
        for rule, matcher, exempt in self._matchers:
            if rule.methods and method not in rule.methods:
                continue
            for way in ways:
                pattern = matcher.match(way)
                if pattern is not None and exempt.match(way) is None:
                    found.append(Match(rule, f"{method} {pattern}"))
                    break
        return tuple(found)


Prepare = Callable[[RuleSet], Callable[[], None]]


class RuleBook:
    """The rules in force, replaceable while running. All followers prepare for new rules first, then all switch."""

    def __init__(
        self, rules: Iterable[RequestRule], *, read: Callable[[], Iterable[RequestRule]] | None = None
    ) -> None:
        self._read = read
        self._lock = fork_safe_lock()
        self._followers: list[Prepare] = []
        self.current = RuleSet(rules)
        self.generation = 0
        self.is_shared = False  # whether a `SharedRules` replaces the rules
        self.version = 0  # in the store, if the book is shared; 0: its own rules
        self.failures = 0  # how often a shared book could not be read or taken
        self._observed: list[Callable[[], Mapping[str, int]]] = []

    def follow(self, prepare: Prepare) -> None:
        """Call `prepare(rules)` now and before every replacement. Its result is called when all have prepared."""
        with self._lock:
            prepare(self.current)()
            self._followers.append(prepare)

    def replace(self, rules: Iterable[RequestRule]) -> None:
        """Put other rules in force. If anything is wrong with them, this raises and the old ones stay."""
        fresh = RuleSet(rules)
        with self._lock:
            switches = [prepare(fresh) for prepare in self._followers]
            for switch in switches:
                switch()
            self.current = fresh
            self.generation += 1

    def observe(self, shadow_refusals: Callable[[], Mapping[str, int]]) -> None:
        """Include a counter of what shadow rules would have refused, by rule."""
        with self._lock:
            self._observed.append(shadow_refusals)

    def shadow_refusals(self) -> dict[str, int]:
        """How often each shadow rule would have refused since the process began."""
        total: dict[str, int] = {}
        for counts in list(self._observed):
            for name, refusals in counts().items():
                total[name] = total.get(name, 0) + refusals
        return total

    def reload(self) -> None:
        """Read the file and the environment again."""
        if self._read is None:
            raise ConfigError("these rules were not read from a file; use replace(rules)")
        self.replace(self._read())
