"""Settings: frozen dataclasses filled from a TOML file and `FRONTROW_…` variables. Nothing is read at import.

A section is a dataclass. `setting()` gives a field its default, its range and whether it is a secret. Variables
override the file: `[limits] deadline_ms` is `FRONTROW_LIMITS_DEADLINE_MS`. A mistake stops the start with one sentence
that names the setting, its value and a valid value. Secrets never show in `repr`.
"""

import contextlib
import dataclasses
import difflib
import math
import os
import re
import tomllib
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from frontrow.core.errors import ConfigError, FrontrowError

Section = TypeVar("Section")
DEFAULT_FILE = "frontrow.toml"  # in the folder where a command runs
# what Kubernetes tells every container about a service named frontrow, frontrow-redis-master and so on
_OF_SERVICE = re.compile(
    r"FRONTROW_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://")
_KINDS = {
    str: "a text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list",
    list: "a list",
    Path: "a path in quotes",
}


def setting(
    default: Any = dataclasses.MISSING,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    secret: bool = False,
    example: str = "",
    doc: str = "",
) -> Any:
    """A field of a settings section with its range, choices or secrecy."""
    about = {"low": low, "high": high, "choices": choices, "secret": secret, "example": example, "doc": doc}
    return dataclasses.field(default=default, repr=not secret, metadata=about)


@contextlib.contextmanager
def named(where: str) -> Iterator[None]:
    """Turn an error raised inside this block into a `ConfigError` that names the setting."""
    try:
        yield
    except FrontrowError as error:
        message = error.message if where in error.message else f"{where}: {error.message}"
        raise ConfigError(message, param=where) from None


def read_toml(path: str | Path) -> dict[str, Any]:
    """The file's tables. Raises `ConfigError` if the file is missing or broken."""
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such settings file") from None
    except OSError as error:
        raise ConfigError(f"{path}: the settings file cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error


def read_tables(path: str | Path | None = None) -> dict[str, Any]:
    """The tables of this file, or of the `frontrow.toml` here, if there is one."""
    if path:
        return read_toml(path)
    return read_toml(DEFAULT_FILE) if Path(DEFAULT_FILE).exists() else {}


def without_services(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment less what Kubernetes tells about services. It calls the address of a service named
    frontrow-server `FRONTROW_SERVER_PORT`, as if somebody had chosen a port."""
    return {name: value for name, value in environment.items() if not _is_of_service(name, value)}


def _is_of_service(name: str, value: str) -> bool:
    if _OF_SERVICE.fullmatch(name):
        return True
    return name.startswith("FRONTROW_") and name.endswith("_PORT") and _SERVICE_ADDRESS.match(value) is not None


def load(
    section: type[Section], name: str, *, tables: Mapping[str, Any] | None = None, env: Mapping[str, str] | None = None
) -> Section:
    """One section from `tables[name]` and the environment, checked. A misspelt setting is refused by name."""
    table = (tables or {}).get(name, {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"{name} must be a section, [{name}] with its settings below, not {table!r}", param=name)
    given = dict(table)
    environment = without_services(os.environ if env is None else env)
    _refuse_unknown_variables(section, name, environment)
    hints = get_type_hints(section)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(section):  # type: ignore[arg-type]  # Section is a dataclass by contract
        where = f"{name}.{field.name}"
        variable = f"FRONTROW_{name}_{field.name}".upper().replace(".", "_")
        if variable in environment:
            where, raw = variable, environment[variable]
            given.pop(field.name, None)
            values[field.name] = _check(field, where, _from_text(hints[field.name], raw, where, field))
        elif field.name in given:
            values[field.name] = _check(field, where, _typed(hints[field.name], given.pop(field.name), where, field))
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{where} is not set; set it in the file or as {variable}{_example(field)}", param=where)
    if given:
        raise _unknown(f"{name}.{min(given)}", name, {f"{name}.{one}": one for one in _names(section)})
    return section(**values)


def _names(section: type) -> list[str]:
    return [field.name for field in dataclasses.fields(section)]


def _refuse_unknown_variables(section: type, name: str, environment: Mapping[str, str]) -> None:
    """Refuse a variable of this section that is none of its settings: it would be ignored in silence."""
    prefix = f"FRONTROW_{name}_".upper().replace(".", "_")
    known = {prefix + one.upper(): one for one in _names(section)}
    for variable in sorted(environment):
        if variable.startswith(prefix) and variable not in known:
            raise _unknown(variable, name, known)


def _unknown(given: str, name: str, known: Mapping[str, str]) -> ConfigError:
    """`known`: the settings as they could have been written -> their names."""
    nearest = difflib.get_close_matches(given, known, n=1, cutoff=0.8)
    meant = f"did you mean {nearest[0]}?" if nearest else f"[{name}] has {', '.join(known.values())}"
    return ConfigError(f"{given} is not a setting; {meant}", param=given)


def _example(field: "dataclasses.Field[Any]") -> str:
    return f", for example {field.metadata['example']}" if field.metadata.get("example") else ""


def _shown(field: "dataclasses.Field[Any]", value: Any) -> str:
    if field.metadata.get("secret"):
        return _KINDS.get(type(value), "a table")  # what it is, not what it says
    return repr(value)


def _plain(hint: Any) -> Any:
    """`int` for `int | None`."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(arg for arg in get_args(hint) if arg is not type(None))
    return get_origin(hint) or hint


def _from_text(hint: Any, text: str, where: str, field: "dataclasses.Field[Any]") -> Any:
    kind = _plain(hint)
    try:
        if kind is bool:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.lower()]
        if kind is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        return kind(text)
    except (ValueError, KeyError):
        raise ConfigError(
            f"{where} must be {_KINDS[kind]}, not {_shown(field, text)}{_example(field)}", param=where
        ) from None


def _typed(hint: Any, value: Any, where: str, field: "dataclasses.Field[Any]") -> Any:
    kind = _plain(hint)
    if kind is tuple and isinstance(value, list):
        if not all(isinstance(part, str) for part in value):
            raise ConfigError(f"{where} must be a list of texts{_example(field)}", param=where)
        return tuple(value)
    if kind is float and type(value) is int:
        return float(value)
    if kind is Path and isinstance(value, str):
        return Path(value)
    if type(value) is not kind:
        raise ConfigError(f"{where} must be {_KINDS[kind]}, not {_shown(field, value)}{_example(field)}", param=where)
    return value


def _check(field: "dataclasses.Field[Any]", where: str, value: Any) -> Any:
    low, high, choices = (field.metadata.get(k) for k in ("low", "high", "choices"))
    if choices and value not in choices:
        raise ConfigError(f"{where} must be one of {', '.join(choices)}, not {_shown(field, value)}", param=where)
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where} must be a number, not {value}{_example(field)}", param=where)
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"at most {high}" if low is None else f"from {low} to {high}"
        raise ConfigError(f"{where} must be {bounds}, not {_shown(field, value)}{_example(field)}", param=where)
    return value
