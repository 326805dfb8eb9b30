"""The limiter's configuration: a TOML file and `FRONTROW_LIMITS_…` variables. Variables override the file.

    [limits]
    store = "redis://127.0.0.1:6379/0"          # FRONTROW_LIMITS_STORE
    trusted_proxies = ["10.0.0.0/8"]            # FRONTROW_LIMITS_TRUSTED_PROXIES=10.0.0.0/8,192.0.2.7
    [limits.identify]
    user = "header:x-user-id"                   # where the key part `user` comes from
    [[limits.rules]]
    name = "holds"
    quota = "10/minute; 100/day"                # FRONTROW_LIMITS_RULE_HOLDS_QUOTA=20/minute
    algorithm = "token_bucket"
    key = ["user"]
    paths = ["/events/{event}/holds"]
    tiers = { vip = "100/minute; 500/day" }
    [limits.tiers]
    vip = ["user:42", "user:7"]                 # who is in which tier; `config.tiers.put` adds others while running

A mistake stops the start (or the reload) with one sentence that names the field and shows a valid value.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from frontrow.core.errors import ConfigError
from frontrow.core.settings_loader import load, read_toml, setting
from frontrow.limits.http.body_parts import DEFAULT_MAX_BODY_BYTES
from frontrow.limits.http.headers import DIALECTS, RESETS
from frontrow.limits.quota import ON_STORE_DOWN
from frontrow.limits.refusal_log import RefusalLog
from frontrow.limits.rule_tables import RULE_FIELDS, rules_of_table
from frontrow.limits.rules import RequestRule, RuleBook, RuleSet
from frontrow.limits.shared_rules import SharedRules
from frontrow.limits.tiers import Tiers

RULE_VARIABLE = "FRONTROW_LIMITS_RULE_"
FILE_VARIABLE = "FRONTROW_LIMITS_FILE"


@dataclass(frozen=True)
class LimitsSettings:
    """The section `[limits]`, without the rules."""

    store: str = setting("memory://", example="redis://127.0.0.1:6379/0")
    on_store_down: str = setting("local", choices=ON_STORE_DOWN)
    deadline_ms: float = setting(25.0, low=1.0, high=10_000.0, example="25")
    trusted_proxies: tuple[str, ...] = setting(())
    ipv6_prefix: int = setting(64, low=1, high=128)
    exempt_addresses: tuple[str, ...] = setting(())
    exempt_users: tuple[str, ...] = setting(())
    exempt_paths: tuple[str, ...] = setting(())
    count_preflights: bool = setting(False)
    max_body_bytes: int = setting(DEFAULT_MAX_BODY_BYTES, low=1, high=64 * 1024 * 1024)
    dialect: str = setting("draft-11", choices=DIALECTS)
    reset: str = setting("epoch", choices=RESETS)
    log_per_second: int = setting(5, low=0, high=10_000)
    record_refusals: bool = setting(False)
    rule_book: str = setting("", example="shop")  # the shared rule book whose rules replace those of the file


@dataclass(frozen=True)
class LimitsConfig:
    """A whole configuration: settings, the sources of key parts, the rules, and who is in which tier.

    `tiers` lives in the same store as the counts: `await config.tiers.put("user:42", "gold")` reaches every server.
    """

    settings: LimitsSettings
    book: RuleBook
    identify: Mapping[str, str] = field(default_factory=dict)
    tiers: Tiers = field(default_factory=Tiers)
    shared_rules: SharedRules | None = None
    """The rule book in the store, if `rule_book` names one. The file's rules hold until it has been read."""

    def middleware_options(self) -> dict[str, Any]:
        """The arguments of a middleware."""
        own = ["deadline_ms", "log_per_second", "rule_book"]  # they have another form
        if not self.settings.record_refusals:  # a store in memory does not know it
            own.append("record_refusals")
        options: dict[str, Any] = {each.name: getattr(self.settings, each.name) for each in fields(self.settings)}
        options = {name: value for name, value in options.items() if name not in own}
        refusals = RefusalLog(self.settings.log_per_second)
        deadline_s = self.settings.deadline_ms / 1000
        return {
            "rules": self.book,
            "tier_of": self.tiers,
            "identify": self.identify,
            "refusals": refusals,
            "deadline_s": deadline_s,
            **options,
        }


def load_config(path: str | Path | None = None, *, env: Mapping[str, str] | None = None) -> LimitsConfig:
    """Settings and rules from the file (or `FRONTROW_LIMITS_FILE`) and the environment. `book.reload()` reads again."""
    environment = os.environ if env is None else env
    source = path or environment.get(FILE_VARIABLE)
    if source is None:
        raise ConfigError("no rules: name a TOML file, or set FRONTROW_LIMITS_FILE=limits.toml", param="file")
    latest = _read(source, environment)

    def read_again() -> list[RequestRule]:
        nonlocal latest
        latest = _read(source, environment)
        return latest.rules

    tiers = Tiers(latest.members, part=parts_with_tiers(latest.rules), store=latest.settings.store)
    book = RuleBook(latest.rules, read=read_again)
    book.follow(lambda _: lambda: tiers.assign(latest.members, parts_with_tiers(latest.rules)))  # with the rules
    shared = None
    if latest.settings.rule_book:
        shared = SharedRules(book, store=latest.settings.store, name=latest.settings.rule_book)
    return LimitsConfig(latest.settings, book, latest.identify, tiers, shared)


class LimitsFile(NamedTuple):
    """What the section `[limits]` and its variables say."""

    settings: LimitsSettings
    identify: dict[str, str]
    rules: list[RequestRule]
    members: dict[str, str]  # client -> tier


def _read(path: str | Path, env: Mapping[str, str]) -> LimitsFile:
    return read_limits(read_toml(path), path, env)


def read_limits(
    tables: Mapping[str, Any], path: str | Path, env: Mapping[str, str], *, defaults: Mapping[str, Any] | None = None
) -> LimitsFile:
    """The section `[limits]` of `tables`, read from `path`. `defaults` are fields of rules that do not have them."""
    table = dict(tables.get("limits", {}))
    rules = table.pop("rules", [])
    identify = table.pop("identify", {})
    tiers = table.pop("tiers", {})
    if not isinstance(rules, list) or not rules:
        raise ConfigError(
            f"{path}: limits.rules is missing; add [[limits.rules]] with a name and a quota", param="rules"
        )
    if not isinstance(identify, dict) or not all(_is_source(value) for value in identify.values()):
        raise ConfigError(f'{path}: limits.identify must be like user = "header:x-user-id"', param="identify")
    plain = {key: value for key, value in env.items() if not key.startswith(RULE_VARIABLE) and key != FILE_VARIABLE}
    settings = load(LimitsSettings, "limits", tables={"limits": table}, env=plain)
    rules = [{**(defaults or {}), **row} if isinstance(row, dict) else row for row in rules]
    rows = enumerate(_overridden(rules, env))
    parsed = [rule for index, row in rows for rule in rules_of_table(row, f"{path}: limits.rules[{index}]")]
    RuleSet(parsed)  # checks that names are unique and patterns are valid
    return LimitsFile(settings, identify, parsed, _members(tiers, parsed, f"{path}: limits.tiers"))


def parts_with_tiers(rules: list[RequestRule]) -> tuple[str, ...]:
    """The parts of the key that rules with tiers count by, the user first."""
    parts = {part for rule in rules if rule.tiers for part in rule.key if part not in ("endpoint", "path")}
    return tuple(sorted(parts or {"user"}, key=lambda part: (part != "user", part)))


def _members(tiers: object, rules: list[RequestRule], where: str) -> dict[str, str]:
    """Who is in which tier, from a table of tiers with lists of clients."""
    example = 'gold = ["user:42", "user:7"]'
    if not isinstance(tiers, dict):
        raise ConfigError(f"{where} must be a table like {example}, not {tiers!r}", param="tiers")
    known = sorted({tier for rule in rules for tier in rule.tiers})
    parts = parts_with_tiers(rules)
    members: dict[str, str] = {}
    for tier, clients in tiers.items():
        if tier not in known:
            has = f"the rules have {', '.join(known)}" if known else "no rule has tiers"
            message = f'{where}.{tier}: no rule has a quota for it ({has}); add tiers = {{ {tier} = "100/minute" }}'
            raise ConfigError(message, param=tier)
        if not isinstance(clients, list) or not all(isinstance(client, str) for client in clients):
            raise ConfigError(f"{where}.{tier} must be a list of clients like {example}, not {clients!r}", param=tier)
        for client in clients:
            part, _, value = client.partition(":")
            if part not in parts or not value:
                wanted = " or ".join(f'"{name}:…"' for name in parts)
                raise ConfigError(f"{where}.{tier}: a client is {wanted}, not {client!r}", param=tier)
            if members.setdefault(client, tier) != tier:
                message = f"{where}.{tier}: {client} is already in {members[client]}; a client has one tier"
                raise ConfigError(message, param=tier)
    return members


def _is_source(value: object) -> bool:
    kind, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    return kind in ("header", "json", "form") and bool(name.strip())


def _overridden(rows: list[Any], env: Mapping[str, str]) -> list[Any]:
    """The rules with single fields replaced from the environment. A variable that fits no rule is an error."""
    rows = [dict(row) if isinstance(row, dict) else row for row in rows]
    by_prefix = {
        RULE_VARIABLE + "".join(c if c.isalnum() else "_" for c in str(row.get("name", ""))).upper() + "_": row
        for row in rows
        if isinstance(row, dict)
    }
    for variable in sorted(name for name in env if name.startswith(RULE_VARIABLE)):
        prefix = max((p for p in by_prefix if variable.startswith(p)), key=len, default=None)
        name = variable[len(prefix) :].lower() if prefix else ""
        if prefix is None or name not in RULE_FIELDS or name in ("name", "tiers"):
            valid = ", ".join(f"{p}QUOTA" for p in by_prefix)
            raise ConfigError(f"{variable} fits no rule or field; valid: {valid}", param=variable)
        by_prefix[prefix][name] = _from_text(name, env[variable], variable)
    return rows


def _from_text(name: str, text: str, variable: str) -> object:
    kind, example = RULE_FIELDS[name]
    try:
        if kind is bool:
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        if kind is list:
            parts = [part.strip() for part in text.split(",") if part.strip()]
            return [int(part) for part in parts] if name == "statuses" else parts
        return kind(text)
    except (ValueError, KeyError):
        raise ConfigError(f"{variable} must be like {example}, not {text!r}", param=variable) from None
