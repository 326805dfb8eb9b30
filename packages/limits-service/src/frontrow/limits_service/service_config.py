"""The service's file: `[limits]` with its rules as for a middleware, `[serve]`, and `[[domains]]` for Envoy.

Rules of `[[limits.rules]]` are for callers over HTTP, domains for Envoy. A file needs one of the two.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.core.redis_url import is_cluster
from frontrow.core.settings_loader import load, read_toml
from frontrow.limits.config import FILE_VARIABLE, RULE_VARIABLE, LimitsSettings, parts_with_tiers, read_limits
from frontrow.limits.http.rule_conversion import limiter_rule, single_key_part
from frontrow.limits.quota import Rule
from frontrow.limits.rules import RequestRule, RuleSet
from frontrow.limits.stores.protocol import names_memory
from frontrow.limits.tiers import Tiers
from frontrow.limits_service.descriptor_files import read_domains, read_yaml_files
from frontrow.limits_service.descriptors import Domains
from frontrow.limits_service.settings import ServeSettings, read_address

_SECTIONS = ("limits", "serve", "domains")
DEADLINE_MS = 20.0  # unless the file says otherwise: then every answer comes within 30 ms, whatever the store does


@dataclass(frozen=True)
class ServiceConfig:
    """Everything that the service is told at its start."""

    settings: ServeSettings
    limits: LimitsSettings
    requests: RuleSet  # the rules of [[limits.rules]]
    members: Mapping[str, str]  # client -> tier
    domains: Domains

    @property
    def plain_part(self) -> str | None:
        """The one part that all request rules count by, if they do. Then keys are plain texts, as in a middleware."""
        return single_key_part(self.requests.rules) if self.requests.rules else None

    def rules(self) -> list[Rule]:
        """The limiter's rules: those for HTTP first, then those of the domains."""
        plain = self.plain_part is not None
        listed = [limiter_rule(rule, plain) for rule in self.requests.rules]
        for limit in self.domains.limits():
            if limit.quota is not None:
                listed.append(Rule(limit.rule, limit.quota, shadow=limit.shadow))
        names = [rule.name for rule in listed]
        twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
        if twice:
            raise ConfigError(f"a rule of [[limits.rules]] and a descriptor are both named {min(twice)!r}; rename one")
        return listed

    def tiers(self) -> Tiers:
        """Who is in which tier, from the file and from the store."""
        return Tiers(self.members, part=parts_with_tiers(list(self.requests.rules)), store=self.limits.store)


def load_service_config(
    path: str | Path, *, env: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> ServiceConfig:
    """Read the file and the environment. `overrides` are settings of `[serve]` that the command line gave."""
    environment = dict(os.environ if env is None else env)
    tables = read_toml(path)
    unknown = set(tables) - set(_SECTIONS)
    if unknown:
        raise ConfigError(f"{path}: [{min(unknown)}] is unknown; this file has {', '.join(_SECTIONS)}")
    of_serve = {**_table(tables, "serve", path), **(overrides or {})}
    given = {name: value for name, value in environment.items() if _is_free(name, overrides or {})}
    settings = load(ServeSettings, "serve", tables={"serve": of_serve}, env=given)
    _check_addresses(settings)
    limits, requests, members = _read_rules(tables, path, environment)
    domains = _domains(tables, settings, Path(path))
    if not requests.rules and not domains.limits():
        raise ConfigError(f"{path}: there are no rules; add [[limits.rules]] or [[domains]]", param="rules")
    _check_store(limits, settings)
    config = ServiceConfig(settings, limits, requests, members, domains)
    config.rules()  # checks that names are unique
    return config


def _is_free(variable: str, overrides: Mapping[str, Any]) -> bool:
    """Whether a variable may say something that the command line has not said."""
    return variable not in {f"FRONTROW_SERVE_{name}".upper() for name in overrides}


def _table(tables: Mapping[str, Any], name: str, path: str | Path) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {name} must be a section, [{name}], not {table!r:.80}", param=name)
    return table


def _read_rules(
    tables: Mapping[str, Any], path: str | Path, env: Mapping[str, str]
) -> tuple[LimitsSettings, RuleSet, Mapping[str, str]]:
    """The section `[limits]`. With domains it needs no rules."""
    table = {"deadline_ms": DEADLINE_MS, **_table(tables, "limits", path)}
    tables = {**tables, "limits": table}
    if "rules" in table:
        read = read_limits(tables, path, env)
        return read.settings, RuleSet(_without_statuses(read.rules, path)), read.members
    plain = {key: value for key, value in env.items() if not key.startswith(RULE_VARIABLE) and key != FILE_VARIABLE}
    return load(LimitsSettings, "limits", tables=tables, env=plain), RuleSet([]), {}


def _without_statuses(rules: Sequence[RequestRule], path: str | Path) -> Sequence[RequestRule]:
    for rule in rules:
        if rule.statuses:
            message = f"{path}: rule {rule.name!r} counts by statuses, which only a middleware sees; use /v1/refund"
            raise ConfigError(message, param="statuses")
    return rules


def _domains(tables: Mapping[str, Any], settings: ServeSettings, path: Path) -> Domains:
    rows = tables.get("domains", [])
    if not isinstance(rows, list):
        raise ConfigError(f"{path}: domains must be a list, [[domains]], not {rows!r:.80}", param="domains")
    found = [(row, f"{path}: domains[{at}]") for at, row in enumerate(rows)]
    return read_domains([*found, *read_yaml_files(settings.descriptors, path.parent)])


def _check_addresses(settings: ServeSettings) -> None:
    http, grpc = read_address(settings.http, "serve.http"), read_address(settings.grpc, "serve.grpc")
    if http is None and grpc is None:
        raise ConfigError("serve.http and serve.grpc are both off; nothing would be served", param="http")


def _check_store(limits: LimitsSettings, settings: ServeSettings) -> None:
    if names_memory(limits.store):
        if settings.workers > 1:
            message = "a store in memory counts in one process; set limits.store to a Redis URL, or serve.workers = 1"
            raise ConfigError(message, param="workers")
    elif is_cluster(limits.store):
        message = (
            "the service decides several keys in one step, which a Redis Cluster cannot; use one Redis or Sentinel"
        )
        raise ConfigError(message, param="store")
