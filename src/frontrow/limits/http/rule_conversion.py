"""Between a request's rules and the limiter's: what the user gave as a rule book, and what the limiter gets of it."""

from collections.abc import Mapping, Sequence

from frontrow.core.errors import ConfigError
from frontrow.limits.quota import Quota, Rule
from frontrow.limits.rules import RequestRule, RuleBook, RuleSet, TierOf

Given = RequestRule | Rule | Quota | str
Rules = RuleBook | Given | Sequence[Given]

TIER_PART = "@tier"  # no part can be named so: parts are identifiers


def as_book(rules: Rules) -> RuleBook:
    """A rule book from whatever is at hand: a book, rules, a quota for every address."""
    if isinstance(rules, RuleBook):
        return rules
    if isinstance(rules, str | Quota):
        return RuleBook([_as_rule(rules, "default")])
    listed = [rules] if isinstance(rules, RequestRule | Rule) else list(rules)
    return RuleBook([_as_rule(rule, f"rule{number}") for number, rule in enumerate(listed, 1)])


def tier_of_rules(rules: Rules) -> TierOf | None:
    """The `tier_of` that plain rules bring along; a request has one tier, so they must agree."""
    listed = rules if isinstance(rules, Sequence) and not isinstance(rules, str) else [rules]
    found = [rule.tier_of for rule in listed if isinstance(rule, Rule) and rule.tier_of is not None]
    if any(other is not found[0] for other in found[1:]):
        raise ConfigError("the rules bring different tier_of; give the middleware one: tier_of=…", param="tier_of")
    return found[0] if found else None


def _as_rule(rule: Given, name: str) -> RequestRule:
    """A rule for requests. A quota, or a limiter's rule without parts, is for every request and counts by address."""
    if isinstance(rule, str):
        rule = Quota.parse(rule)
    if isinstance(rule, Quota):
        return RequestRule(name, rule)
    if isinstance(rule, RequestRule):
        return rule
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
