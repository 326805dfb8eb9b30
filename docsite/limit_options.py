"""Writes docs/limits-options.md from the signatures of the limiter, so no option is missing or has another default.

python -m docsite.limit_options > docs/limits-options.md
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

from frontrow.limits import ConcurrencyLimiter, LeasedLimiter, Limiter, Quota, Rule
from frontrow.limits.http.decorators import limited
from frontrow.limits.http.request_limits import RequestLimits
from frontrow.limits.http.route_limits import OF_MIDDLEWARE, RouteLimits
from frontrow.limits.options import StoreOptions
from frontrow.limits.rules import RequestRule
from frontrow.limits.stores.memory import DEFAULT_MAX_KEYS
from frontrow.limits.stores.protocol import DEFAULT_PREFIX

_INSIDE: Final = ("self", "source", "only", "stats", "quotas", "rules", "rule", "quota", "given", "at_once", "text")
_OF_STORES: Final = {
    "prefix": f"`{DEFAULT_PREFIX}`",
    "max_keys": f"{DEFAULT_MAX_KEYS:,}",
    "compiled": "`True`",
    "record_refusals": "`False`",
}

MEANINGS: Final = {
    "algorithm": "one of the six; also a word in the quota's text",
    "burst": "how much fits at once into a bucket; also in the quota's text",
    "clock": "a function that returns microseconds since 1970, for tests",
    "compiled": "use the compiled store in memory, if it was built",
    "cost": "units per request or call, or a function that returns them",
    "costs": 'units per request by method and path, like `{"POST /reports": 5}`',
    "count_preflights": "count preflights of browsers too",
    "credential_provider": "credentials for Redis that change, of redis-py",
    "deadline_s": "how long the store may take to connect, and to answer",
    "dialect": "form of the IETF headers: `draft-11`, `draft-07`, `draft-06`, `none`",
    "enabled": "`False`: limit nothing, for tests",
    "except_paths": "paths that the rule leaves out",
    "exempt_addresses": "addresses and networks that are not counted",
    "exempt_if": "a function of the request; true: not counted",
    "exempt_paths": "paths that are not counted",
    "exempt_users": "users that are not counted",
    "identify": 'where parts of the key come from, like `{"user": "header:x-user-id"}`',
    "ipv6_prefix": "addresses of IPv6 with so many bits in common are one client",
    "key": "who is limited: parts, sources like `post:username`, or a function",
    "lease": "units taken from the store at once",
    "max_body_bytes": "longer bodies have no key parts",
    "max_hold_s": "a permit is renewed for no longer than this",
    "max_keys": "keys in memory per quota",
    "max_waiting": "callers that may wait per key",
    "methods": "the methods that count; HEAD counts as GET",
    "metrics": "counters to share with other limits",
    "name": "all with this name share one count",
    "on_missing": "a part is missing: `error` (400) or count by `ip`",
    "on_refused": "makes the body of a refusal",
    "on_store_down": "`local`, `open` or `closed`",
    "paths": "where the rule applies",
    "per": "the parts of the key that the rule counts by; none: the whole key",
    "prefix": "begins every key in Redis",
    "record_refusals": "keep the keys that are refused most in Redis, for `frontrow limits watch`",
    "refusals": "the log of refusals, to share with other limits",
    "reset": "`X-RateLimit-Reset` as a time stamp (`epoch`) or in seconds (`delta`)",
    "shadow": "count and report, never refuse",
    "shared_key": "maps a key to its name in the store",
    "statuses": "the responses that count",
    "store": "a URL, clients of redis-py, or a store of your own",
    "tier_of": "says which tier a client is in",
    "tiers": "other quotas for some clients",
    "trusted_proxies": "peers whose `X-Forwarded-For` is read",
    "ttl_s": "a permit ends this long after its process died",
    "wait_s": "a call waits up to so long before it is refused",
}


def takers() -> dict[str, dict[str, str]]:
    """The options of everything that takes some, with their defaults."""
    stores = dict.fromkeys(StoreOptions.__annotations__, "") | _OF_STORES
    middleware = _options(RequestLimits.__init__) | stores
    routes = {name: default for name, default in middleware.items() if name not in OF_MIDDLEWARE}
    function = _options(limited)
    return {
        "`Quota.parse`": _options(Quota.parse),
        "`Rule`": _options(Rule.__init__, ("name", "namespace")),
        "`RequestRule`": _options(RequestRule.__init__, ("name",)),
        "`Limiter`": _options(Limiter.__init__) | stores,
        "`@limited` of a function": function | _options(Limiter.__init__) | stores,
        "middleware, `FRONTROW_LIMITS`": middleware,
        "`RateLimits`": routes,
        "`limit`, `@limited` of a route": _options(RouteLimits.make),
        "`LeasedLimiter`": _options(LeasedLimiter.__init__),
        "`ConcurrencyLimiter`": _options(ConcurrencyLimiter.__init__),
    }


def _options(function: Callable[..., Any], without: Iterable[str] = ()) -> dict[str, str]:
    found = inspect.signature(function).parameters.values()
    named = [one for one in found if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    return {one.name: _default(one.default) for one in named if one.name not in (*_INSIDE, *without)}


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "must be given"
    if value is None or value == () or value == {}:
        return "none"
    if isinstance(value, tuple):
        return " ".join(f"`{one}`" for one in value)
    if isinstance(value, bool | str):
        return f"`{value}`"
    return "the key itself" if value is str else f"{value:,}" if isinstance(value, int) else f"{value:g}"


def table() -> list[str]:
    """A row for every option: what it means, its default, and what takes it."""
    given: dict[str, dict[str, list[str]]] = {}
    for taker, options in takers().items():
        for name, default in options.items():
            given.setdefault(name, {}).setdefault(default or "none", []).append(taker)
    lines = ["| option | means | default | taken by |", "|---|---|---|---|"]
    for name, by_default in sorted(given.items()):
        defaults = "; ".join(
            default if len(by_default) == 1 else f"{default} ({', '.join(who)})" for default, who in by_default.items()
        )
        who = ", ".join(taker for takers in by_default.values() for taker in takers)
        lines.append(f"| `{name}` | {MEANINGS[name]} | {defaults} | {who} |")
    return lines


def page() -> str:
    """The whole page."""
    return "\n".join(
        [
            "# All options of the limiter",
            "",
            "Every option, with its default and what takes it. This page is written from the code:",
            "`python -m docsite.limit_options > docs/limits-options.md`. [The reference](limits-reference.md) explains",
            "texts of quotas, store URLs and names.",
            "",
            *table(),
            "",
        ]
    )


if __name__ == "__main__":
    print(page(), end="")
