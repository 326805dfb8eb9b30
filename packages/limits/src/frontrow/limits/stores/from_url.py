"""Opens the store that a URL names. The client of Redis or a database is imported only for its URL."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from frontrow.core.clock import Clock
from frontrow.core.errors import ConfigError
from frontrow.limits.options import check_options
from frontrow.limits.quota import ON_STORE_DOWN
from frontrow.limits.stats import Stats
from frontrow.limits.stores.deadline import check_deadline
from frontrow.limits.stores.memory import DEFAULT_MAX_KEYS, MemoryStore
from frontrow.limits.stores.protocol import (
    DEFAULT_PREFIX,
    QuotaSlot,
    Store,
    check_prefix,
    names_memory,
    names_sql,
)

try:
    if not getattr(sys, "_is_gil_enabled", lambda: True)():  # the kernel relies on the lock, and importing it locks all
        raise ImportError("the compiled store needs the interpreter lock")
    from frontrow.limits.stores._kernel import CompiledStore
except ImportError:  # built without a C compiler, or a free-threaded Python
    CompiledStore = None  # type: ignore[assignment, misc]


def open_store(
    url: Any,
    slots: Sequence[QuotaSlot],
    clock: Clock,
    stats: Stats,
    on_store_down: str,
    deadline_s: float,
    options: Mapping[str, Any],
) -> Store:
    """Open the store that `url` names, for these slots. Wrong options are errors whatever the store.

    In place of a Redis URL it may be redis-py clients. SQL: `postgresql://…` or `sqlite:///…`.
    """
    if on_store_down not in ON_STORE_DOWN:
        message = f"on_store_down must be one of {', '.join(ON_STORE_DOWN)}, not {on_store_down!r}"
        raise ConfigError(message, param="on_store_down")
    check_deadline(deadline_s)
    if names_memory(url):
        return open_memory_store(slots, clock, **_read_memory_options(url, options))
    from frontrow.limits.stores.leased_blocks import LeasingStore
    from frontrow.limits.stores.most_refused_keys import record_refusals
    from frontrow.limits.stores.resilient import open_shared_store

    of_shared = dict(options)
    records = of_shared.pop("record_refusals", False)
    if records and not isinstance(url, str):
        raise ConfigError("record_refusals needs a URL as store, not a client", param="record_refusals")
    if records and names_sql(url):
        raise ConfigError("record_refusals needs a Redis store; a SQL store does not have it", param="record_refusals")
    shared = open_shared_store(url, slots, clock, stats, on_store_down, deadline_s, of_shared)
    leases = any(slot.rule.lease > 1 for slot in slots)
    store: Store = LeasingStore(shared, slots, clock) if leases else shared
    if records:
        prefix = of_shared.pop("prefix", DEFAULT_PREFIX)
        store = record_refusals(store, slots, url, prefix, **of_shared)  # connects like the store itself
    return store


def open_memory_store(
    slots: Sequence[QuotaSlot], clock: Clock, max_keys: int = DEFAULT_MAX_KEYS, compiled: bool = True
) -> Store:
    """The compiled store if it was built and is wanted, else the plain one. Both give the same results."""
    if compiled and CompiledStore is not None:
        return CompiledStore(slots, clock, max_keys)
    return MemoryStore(slots, clock, max_keys)


def _read_memory_options(url: str, options: Mapping[str, Any]) -> dict[str, Any]:
    given = {**dict(parse_qsl(urlsplit(url).query)), **options}
    check_prefix(given.pop("prefix", DEFAULT_PREFIX))  # counts in memory are never shared, so they need none
    if given.pop("record_refusals", False):
        message = "record_refusals needs a store that others can read, like redis://127.0.0.1:6379/0"
        raise ConfigError(message, param="record_refusals")
    check_options("a store in memory", given, ("max_keys", "compiled"))
    try:
        max_keys = int(given.get("max_keys", DEFAULT_MAX_KEYS))
    except ValueError:
        max_keys = 0
    if max_keys < 1:
        raise ConfigError(f"max_keys must be a whole number of at least 1, not {given['max_keys']!r}", param="max_keys")
    return {"max_keys": max_keys, "compiled": given.get("compiled", True) not in (False, "0", "no", "false")}
