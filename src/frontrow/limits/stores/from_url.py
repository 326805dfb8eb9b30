"""From a URL to a store. The Redis client is imported only when a Redis URL asks for it."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from frontrow.core.clock import Clock
from frontrow.core.errors import ConfigError
from frontrow.core.redis_url import SCHEMES
from frontrow.limits.stats import Stats
from frontrow.limits.stores.memory import DEFAULT_MAX_KEYS, MemoryStore
from frontrow.limits.stores.protocol import Line, Store

try:
    from frontrow.limits.stores._kernel import CompiledStore
except ImportError:  # built without a C compiler
    CompiledStore = None  # type: ignore[assignment, misc]


def open_store(
    url: str,
    lines: Sequence[Line],
    clock: Clock,
    stats: Stats,
    on_store_down: str,
    deadline_s: float,
    options: Mapping[str, Any],
) -> Store:
    """The store `url` names, made for these lines."""
    scheme = url.partition("://")[0]
    if scheme == "memory" and "://" in url:
        return memory_store(lines, clock, **_memory_options(url, options))
    if "://" not in url or scheme not in SCHEMES:
        known = ", ".join(f"{name}://" for name in ("memory", *SCHEMES))
        raise ConfigError(f"store {url!r} is unknown; it starts with one of {known}, like redis://127.0.0.1:6379/0")
    from frontrow.limits.stores.leases import LeasingStore
    from frontrow.limits.stores.resilient import shared_store

    store = shared_store(url, lines, clock, stats, on_store_down, deadline_s, dict(options))
    return LeasingStore(store, lines, clock) if any(line.rule.lease > 1 for line in lines) else store


def memory_store(lines: Sequence[Line], clock: Clock, max_keys: int = DEFAULT_MAX_KEYS, compiled: bool = True) -> Store:
    """The compiled store where it was built (and wanted), else the plain one. Both answer the same."""
    if compiled and CompiledStore is not None:
        return CompiledStore(lines, clock, max_keys)
    return MemoryStore(lines, clock, max_keys)


def _memory_options(url: str, options: Mapping[str, Any]) -> dict[str, Any]:
    asked = {**dict(parse_qsl(urlsplit(url).query)), **options}
    unknown = set(asked) - {"max_keys", "compiled"}
    if unknown:
        raise ConfigError(f"the memory store knows max_keys and compiled, not {min(unknown)!r}", param=min(unknown))
    try:
        max_keys = int(asked.get("max_keys", DEFAULT_MAX_KEYS))
    except ValueError:
        max_keys = 0
    if max_keys < 1:
        raise ConfigError(f"max_keys must be a whole number of at least 1, not {asked['max_keys']!r}", param="max_keys")
    return {"max_keys": max_keys, "compiled": asked.get("compiled", True) not in (False, "0", "no", "false")}
