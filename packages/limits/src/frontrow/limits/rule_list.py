"""What people write as rules, as a list of named rules: the same for the limiter, the middlewares and the decorators.

A rule is a `Rule`, a `Quota`, or a text, which may hold several quotas: `"1/s; 100/h"`. What has no name of its own is
called `default` if it is alone, else by its number: `rule1`, `rule2`.
"""

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from frontrow.limits.quota import InvalidQuota, Quota, Rule

MAX_RULES = 32
RuleLike = Rule | Quota | str


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
