"""Rules as TOML tables: what a configuration file and a shared rule book have in common.

A mistake is one sentence that names the field and shows a valid value.
"""

import tomllib
from typing import Any

from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.limits.quota import Quota
from frontrow.limits.rules import MAX_RULES, RequestRule, RuleSet

RULE_FIELDS: dict[str, tuple[type, str]] = {  # field -> (type in TOML, a valid value)
    "name": (str, '"holds"'),
    "quota": (str, '"10/minute"'),
    "algorithm": (str, '"token_bucket"'),
    "burst": (int, "20"),
    "key": (list, '["user", "endpoint"]'),
    "methods": (list, '["POST"]'),
    "paths": (list, '["/events/{event}/holds"]'),
    "except_paths": (list, '["/health"]'),
    "tiers": (dict, '{ vip = "100/minute" }'),
    "shadow": (bool, "true"),
    "lease": (int, "100"),
    "on_store_down": (str, '"local"'),
    "on_missing": (str, '"ip"'),
    "statuses": (list, "[401, 403]"),
}
MAX_TEXT_BYTES = 1_000_000


def rules_of_text(text: str, where: str = "the rule book") -> list[RequestRule]:
    """The rules of a text with `[[limits.rules]]`, all checked. It may hold nothing else."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise ConfigError(f"{where} is longer than {MAX_TEXT_BYTES:,} bytes", param="rules")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is no TOML: {error}", param="rules") from None
    except RecursionError:
        raise ConfigError(f"{where} is no TOML: it is nested too deeply", param="rules") from None
    given = tables.get("limits")
    limits: dict[str, Any] = given if isinstance(given, dict) else {}
    rows = limits.get("rules")
    if not isinstance(rows, list) or not rows:
        raise ConfigError(f"{where} has no rules; add [[limits.rules]] with a name and a quota", param="rules")
    others = [name for name in tables if name != "limits"] + [f"limits.{name}" for name in limits if name != "rules"]
    if others:
        message = f"{where} holds rules only, not {others[0]}; settings stay in each server's file"
        raise ConfigError(message, param=others[0])
    rules = [rule for at, row in enumerate(rows) for rule in rules_of_table(row, f"{where}: limits.rules[{at}]")]
    if len(rules) > MAX_RULES:
        raise ConfigError(f"{where} has at most {MAX_RULES} rules, not {len(rules)}", param="rules")
    RuleSet(rules)  # checks that names are unique and patterns are valid
    return rules


def rules_of_table(row: object, where: str) -> list[RequestRule]:
    """The rules of one table: one per quota of its text. Several are called `name-1`, `name-2`."""
    table = _checked_table(row, where)
    options: dict[str, Any] = {name: table[name] for name in ("algorithm", "burst") if name in table}
    quotas = _quotas(table["quota"], options, f"{where}.quota")
    tiers = {tier: _quotas(text, options, f"{where}.tiers.{tier}") for tier, text in table.get("tiers", {}).items()}
    for tier, of_tier in tiers.items():
        if len(of_tier) != len(quotas):
            message = f"{where}.tiers.{tier} needs as many quotas as the rule: {len(quotas)}, not {len(of_tier)}"
            raise ConfigError(message, param="tiers")
    rest: dict[str, Any]
    lists = ("key", "methods", "paths", "except_paths", "statuses")
    rest = {name: tuple(table[name]) for name in lists if name in table}
    rest |= {name: table[name] for name in ("shadow", "lease", "on_store_down", "on_missing") if name in table}
    name = table["name"]
    try:
        return [
            RequestRule(
                name if len(quotas) == 1 else f"{name}-{at + 1}",
                quota,
                tiers={tier: of_tier[at] for tier, of_tier in tiers.items()},
                **rest,
            )
            for at, quota in enumerate(quotas)
        ]
    except (ConfigError, InvalidInput) as error:
        raise ConfigError(f"{where}: {error.message}", param=error.param) from error


def _checked_table(row: object, where: str) -> dict[str, Any]:
    """`row` if it has the fields of a rule, with the right types."""
    if not isinstance(row, dict):
        raise ConfigError(f'{where} must be a table with name and quota, like name = "holds"')
    for name, value in row.items():
        if name not in RULE_FIELDS:
            raise ConfigError(f"{where}.{name} is not a field of a rule; known: {', '.join(RULE_FIELDS)}", param=name)
        kind, example = RULE_FIELDS[name]
        items = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
        if type(value) is not kind or not all(type(item) is (int if name == "statuses" else str) for item in items):
            raise ConfigError(f"{where}.{name} must be like {name} = {example}, not {value!r}", param=name)
    for name in ("name", "quota"):
        if name not in row:
            raise ConfigError(f"{where}.{name} is missing; add {name} = {RULE_FIELDS[name][1]}", param=name)
    return row


def _quotas(text: str, options: dict[str, Any], where: str) -> tuple[Quota, ...]:
    try:
        return Quota.parse_all(text, **options)
    except (ConfigError, InvalidInput) as error:
        raise ConfigError(f"{where}: {error.message}", param=error.param) from error
