"""Converts what the user passed as rules into a rule book, and request rules into the limiter's rules."""

from collections.abc import Mapping, Sequence

from frontrow.core.errors import ConfigError
from frontrow.limits.quota import Quota, Rule
from frontrow.limits.rules import RequestRule, RuleBook, RuleLike, RuleSet, TierOf, name_quotas

Rules = RuleBook | RequestRule | RuleLike | Sequence[RequestRule | RuleLike]

TIER_PART = "@tier"  # parts are identifiers, so no part can have this name


def to_rule_book(rules: Rules) -> RuleBook:
    """A rule book from a rule book, rules, or a quota (which then applies to every address)."""
    if isinstance(rules, RuleBook):
        return rules
    return RuleBook([_to_request_rule(rule, name) for name, rule in name_quotas(rules)])


def tier_of_rules(rules: Rules) -> TierOf | None:
    """The `tier_of` of plain rules. A request has one tier, so they must agree."""
    listed = rules if isinstance(rules, Sequence) and not isinstance(rules, str) else [rules]
    found = [rule.tier_of for rule in listed if isinstance(rule, Rule) and rule.tier_of is not None]
    if any(other is not found[0] for other in found[1:]):
        raise ConfigError("the rules have different tier_of; pass one to the middleware: tier_of=…", param="tier_of")
    return found[0] if found else None


def _to_request_rule(rule: object, name: str) -> RequestRule:
    """A rule for requests. A quota, or a limiter's rule without parts, limits all requests and counts by address."""
    if isinstance(rule, Quota):
        return RequestRule(name, rule)
    if isinstance(rule, RequestRule):
        return rule
    if not isinstance(rule, Rule):
        wanted = '"100/minute", a Quota, a Rule or a RequestRule'
        raise ConfigError(f"a rule for requests is like {wanted}; not {rule!r:.80}", param="rules")
    key = ("ip",) if rule.per is None else rule.per
    same = {"shadow": rule.shadow, "lease": rule.lease, "on_store_down": rule.on_store_down}
    return RequestRule(rule.name, rule.quota, key, tiers=rule.tiers, **same)  # type: ignore[arg-type]


def endpoint_part(rule: RequestRule) -> str:
    """The endpoint part has its own name per rule, because each rule may have matched another pattern."""
    return f"endpoint@{rule.name}"


def limiter_rule(rule: RequestRule, plain: bool) -> Rule:
    """The limiter's rule. `plain`: the key is the value of the one part that all rules count by."""
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


def single_key_part(rules: Sequence[RequestRule]) -> str | None:
    """The one part that all rules count by, if they always apply together. Then the key is simply its value, which is
    the limiter's fastest case. (A refusal of some rules must not be cached for others under the same short key.)
    """
    if len({(rule.methods, rule.paths, rule.except_paths) for rule in rules}) > 1:
        return None
    if any(rule.tiers or rule.statuses for rule in rules):
        return None
    parts = {rule.key for rule in rules}
    only = next(iter(parts)) if len(parts) == 1 else ()
    return only[0] if len(only) == 1 and only[0] not in ("endpoint", "path") else None


def rules_of_costs(costs: Mapping[str, int]) -> RuleSet:
    """Costs by `"POST /reports/**"` or `"/reports/**"` as rules whose limit is the cost, so they match like rules."""
    rules = []
    for index, (where, cost) in enumerate(costs.items()):
        method, _, path = where.rpartition(" ")
        if type(cost) is not int or cost < 1:
            message = f'costs: {where!r} must cost a whole number from 1, like {{"POST /reports": 5}}; not {cost!r}'
            raise ConfigError(message, param="costs")
        methods = (method,) if method else ()
        rules.append(RequestRule(f"cost{index}", Quota(cost, 1_000_000), methods=methods, paths=(path,)))
    return RuleSet(rules)
