"""Between a request's rules and the limiter's: what the user gave as a rule book, and what the limiter gets of it."""

from collections.abc import Mapping, Sequence

from frontrow.core.errors import ConfigError
from frontrow.limits.quota import Quota, Rule
from frontrow.limits.rules import RequestRule, RuleBook, RuleSet

Rules = RuleBook | Sequence[RequestRule | Rule] | RequestRule | Rule | Quota | str

TIER_PART = "@tier"  # no part can be named so: parts are identifiers


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
    same = {"shadow": rule.shadow, "lease": rule.lease, "on_store_down": rule.on_store_down}
    return RequestRule(rule.name, rule.quota, key, tiers=rule.tiers, **same)  # type: ignore[arg-type]


def endpoint_part(rule: RequestRule) -> str:
    """The endpoint is a part of its own for each rule, because each may have matched another pattern."""
    return f"endpoint@{rule.name}"


def inner(rule: RequestRule, plain: bool) -> Rule:
    """The limiter's rule; `plain` when the key is simply the value of the one part all rules count by."""
    per = None if plain else tuple(endpoint_part(rule) if part == "endpoint" else part for part in rule.key)
    return Rule(
        rule.name,
        rule.quota,
        per,
        rule.tiers,
        tier_of=(lambda key: key.get(TIER_PART) if isinstance(key, Mapping) else None) if rule.tiers else None,
        shadow=rule.shadow,
        lease=rule.lease,
        on_store_down=rule.on_store_down,
    )


def plain_part(rules: Sequence[RequestRule]) -> str | None:
    """The one part all rules count by, if they apply everywhere together: then the key is simply its value, which is
    the limiter's fastest case. (A refusal of some rules must not be remembered for others under the same short key.)
    """
    if len({(rule.methods, rule.paths, rule.except_paths) for rule in rules}) > 1 or any(rule.tiers for rule in rules):
        return None
    parts = {rule.key for rule in rules}
    only = next(iter(parts)) if len(parts) == 1 else ()
    return only[0] if len(only) == 1 and only[0] not in ("endpoint", "path") else None


def cost_rules(costs: Mapping[str, int]) -> RuleSet:
    """Costs by `"POST /reports/**"` or `"/reports/**"`, as rules whose limit is the cost, matched like any other."""
    rules = []
    for index, (where, cost) in enumerate(costs.items()):
        method, _, path = where.rpartition(" ")
        if type(cost) is not int or cost < 1:
            message = f'costs: {where!r} must cost a whole number from 1, like {{"POST /reports": 5}}; not {cost!r}'
            raise ConfigError(message, param="costs")
        methods = (method,) if method else ()
        rules.append(RequestRule(f"cost{index}", Quota(cost, 1_000_000), methods=methods, paths=(path,)))
    return RuleSet(rules)
