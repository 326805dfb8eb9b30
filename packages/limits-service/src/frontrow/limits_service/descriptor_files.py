"""Reads domains and descriptors, from TOML tables or from the YAML files of Envoy's own rate limit service.

    [[domains]]
    domain = "messaging"
    [[domains.descriptors]]
    key = "to_number"
    rate_limit = { unit = "day", requests_per_unit = 100 }

`rate_limit` may have a `quota` in place of unit and requests, like "10/second burst 20": then all six algorithms are
there. `unit` and `requests_per_unit` are fixed windows, as in Envoy's service; `algorithm` chooses another.
"""

import glob
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.limits.quota import DAY_US, Quota
from frontrow.limits_service.descriptors import DescriptorLimit, Domains, Entry, Node, rule_name

log = logging.getLogger("frontrow.limits_service")

MAX_DEPTH = 32
UNITS_US = {
    "second": US_PER_S,
    "minute": 60 * US_PER_S,
    "hour": 3600 * US_PER_S,
    "day": DAY_US,
    "week": 7 * DAY_US,
    "month": 30 * DAY_US,
    "year": 365 * DAY_US,
}
_NODE_FIELDS: dict[str, tuple[type, str]] = {
    "key": (str, 'key = "remote_address"'),
    "value": (str, 'value = "10.0.0.1"'),
    "rate_limit": (dict, 'rate_limit = { unit = "second", requests_per_unit = 10 }'),
    "shadow_mode": (bool, "shadow_mode = true"),
    "share_threshold": (bool, "share_threshold = true"),
    "detailed_metric": (bool, "detailed_metric = true"),
    "value_to_metric": (bool, "value_to_metric = true"),
    "descriptors": (list, "descriptors = […]"),
}
_LIMIT_FIELDS: dict[str, tuple[type, str]] = {
    "unit": (str, 'unit = "second"'),
    "requests_per_unit": (int, "requests_per_unit = 10"),
    "unlimited": (bool, "unlimited = true"),
    "name": (str, 'name = "per_user"'),
    "replaces": (list, 'replaces = [{ name = "per_user" }]'),
    "quota": (str, 'quota = "10/second burst 20"'),
    "algorithm": (str, 'algorithm = "token_bucket"'),
    "burst": (int, "burst = 20"),
}


def read_domains(tables: Sequence[tuple[Any, str]]) -> Domains:
    """The domains of several tables, each with a word on where it stands."""
    trees: dict[str, Node] = {}
    for table, where in tables:
        _need_table(table, where)
        unknown = set(table) - {"domain", "descriptors"}
        if unknown:
            raise ConfigError(f"{where}: {min(unknown)!r} is unknown; a domain has domain and descriptors")
        domain = table.get("domain")
        if not isinstance(domain, str) or not domain:
            raise ConfigError(f'{where}: a domain needs its name, like domain = "edge"', param="domain")
        if domain in trees:
            raise ConfigError(f"{where}: the domain {domain!r} is there twice; a domain stands in one place")
        root = trees[domain] = Node()
        _add_all(root, table.get("descriptors", []), domain, (), f"{where}: {domain}")
    return Domains(trees)


def read_yaml_files(patterns: Sequence[str], folder: Path) -> list[tuple[Any, str]]:
    """The tables of YAML files. A pattern that names no file is an error. Paths are relative to `folder`."""
    tables: list[tuple[Any, str]] = []
    for pattern in patterns:
        names = sorted(glob.glob(str(folder / pattern)))
        if not names:
            raise ConfigError(f"serve.descriptors: {pattern!r} names no file", param="descriptors")
        tables += [(_read_yaml(Path(name)), name) for name in names]
    return tables


def _read_yaml(path: Path) -> Any:
    import yaml

    try:
        return _numbers_as_texts(yaml.safe_load(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None


def _numbers_as_texts(row: Any) -> Any:
    """YAML reads `value: 500` as a number. Keys and values of descriptors are texts."""
    if isinstance(row, list):
        return [_numbers_as_texts(each) for each in row]
    if not isinstance(row, dict):
        return row
    texts = ("key", "value")
    return {
        name: str(value) if name in texts and type(value) is int else _numbers_as_texts(value)
        for name, value in row.items()
    }


def _add_all(parent: Node, rows: Any, domain: str, path: tuple[Entry, ...], where: str) -> None:
    if not isinstance(rows, list):
        raise ConfigError(f"{where}: descriptors must be a list, not {rows!r:.80}", param="descriptors")
    if len(path) >= MAX_DEPTH and rows:
        raise ConfigError(f"{where}: descriptors are nested deeper than {MAX_DEPTH}")
    for at, row in enumerate(rows):
        _add(parent, row, domain, path, f"{where}.descriptors[{at}]")


def _add(parent: Node, row: Any, domain: str, path: tuple[Entry, ...], where: str) -> None:
    _check_fields(row, _NODE_FIELDS, where)
    key, value = row.get("key", ""), row.get("value", "")
    if not key:
        raise ConfigError(f"{where}: a descriptor needs a key, like {_NODE_FIELDS['key'][1]}", param="key")
    shares = row.get("share_threshold", False)
    if shares and "*" not in value:
        raise ConfigError(f"{where}: share_threshold needs a value with *, like files/*", param="share_threshold")
    for metric in ("detailed_metric", "value_to_metric"):
        if row.get(metric):
            log.warning("%s: %s has no effect; the page of refused keys shows single values", where, metric)
    here = (*path, (key, value))
    limit = _read_limit(row["rate_limit"], rule_name(domain, here), where) if "rate_limit" in row else None
    if limit is not None and row.get("shadow_mode"):
        limit = _in_shadow(limit)
    node = Node(limit, value if shares else None)
    if not parent.put(key, value, node):
        raise ConfigError(f"{where}: {key}{' ' + value if value else ''} is there twice at this level", param="key")
    _add_all(node, row.get("descriptors", []), domain, here, where)


def _in_shadow(limit: DescriptorLimit) -> DescriptorLimit:
    return DescriptorLimit(
        limit.rule, limit.quota, limit.unlimited or limit.is_zero, True, limit.name, limit.replaces, limit.per_us
    )


def _read_limit(row: Any, rule: str, where: str) -> DescriptorLimit:
    _check_fields(row, _LIMIT_FIELDS, f"{where}.rate_limit")
    name, replaces = row.get("name", ""), _read_replaces(row.get("replaces", []), where)
    if name and name in replaces:
        raise ConfigError(f"{where}: a limit cannot replace itself", param="replaces")
    if row.get("unlimited"):
        if set(row) - {"unlimited", "name", "replaces"}:
            raise ConfigError(f"{where}: an unlimited descriptor has no unit, quota or number", param="unlimited")
        return DescriptorLimit(rule, None, True, name=name, replaces=replaces)
    options = {option: row[option] for option in ("algorithm", "burst") if option in row}
    try:
        if "quota" in row:
            return DescriptorLimit(rule, Quota.parse(row["quota"], **options), name=name, replaces=replaces)
        return _windowed(row, rule, name, replaces, options, where)
    except InvalidInput as error:
        raise ConfigError(f"{where}.rate_limit: {error.message}", param=error.param) from None


def _windowed(
    row: Mapping[str, Any], rule: str, name: str, replaces: tuple[str, ...], options: dict[str, Any], where: str
) -> DescriptorLimit:
    """A limit by unit and requests_per_unit, as Envoy's service has it."""
    for needed in ("unit", "requests_per_unit"):
        if needed not in row:
            raise ConfigError(f"{where}.rate_limit needs {_LIMIT_FIELDS[needed][1]}, or a quota", param=needed)
    period_us = UNITS_US.get(row["unit"].lower())
    if period_us is None:
        raise ConfigError(f"{where}: unit must be one of {', '.join(UNITS_US)}, not {row['unit']!r}", param="unit")
    if row["requests_per_unit"] == 0:
        return DescriptorLimit(rule, None, name=name, replaces=replaces, per_us=period_us)
    options = {"algorithm": "fixed_window", **options}
    return DescriptorLimit(rule, Quota(row["requests_per_unit"], period_us, **options), name=name, replaces=replaces)


def _read_replaces(rows: list[Any], where: str) -> tuple[str, ...]:
    for row in rows:
        if not isinstance(row, dict) or set(row) != {"name"} or not isinstance(row["name"], str) or not row["name"]:
            raise ConfigError(f"{where}: replaces must be like {_LIMIT_FIELDS['replaces'][1]}", param="replaces")
    return tuple(row["name"] for row in rows)


def _check_fields(row: Any, fields: Mapping[str, tuple[type, str]], where: str) -> None:
    _need_table(row, where)
    for name, value in row.items():
        if name not in fields:
            raise ConfigError(f"{where}: {name!r} is unknown; known are {', '.join(fields)}", param=str(name))
        kind, example = fields[name]
        if type(value) is not kind:
            raise ConfigError(f"{where}: {name} must be like {example}, not {value!r:.80}", param=name)


def _need_table(table: Any, where: str) -> None:
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: a table is needed here, not {table!r:.80}")
