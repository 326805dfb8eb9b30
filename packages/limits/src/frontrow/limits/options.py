"""The options that many doors share, as closed lists, so that a type checker finds a misspelt one, and so do they."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, TypedDict

from frontrow.core.clock import Clock
from frontrow.core.errors import ConfigError
from frontrow.limits.quota import OnStoreDown


class StoreOptions(TypedDict, total=False):
    """What a store takes."""

    prefix: str  # of the keys in a shared store
    credential_provider: Any  # of redis-py
    record_refusals: bool  # in Redis, for `frontrow limits watch`
    max_keys: int  # of a store in memory
    compiled: bool


class LimiterOptions(StoreOptions, total=False):
    """What a `Limiter` takes besides its rules."""

    store: Any  # a URL, clients of redis-py, or a `Store` of your own
    clock: Clock | None
    on_store_down: OnStoreDown
    deadline_s: float


def check_options(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise for an option that `what` does not have, and name the one that was probably meant."""
    names = sorted(known)
    for name in sorted(set(given) - set(names)):
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names)}"
        raise ConfigError(f"{what} has no option {name!r}; {hint}", param=name)
