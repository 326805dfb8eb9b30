"""The options that many doors share, as closed lists, so that a type checker finds a misspelt one."""

from typing import Any, TypedDict

from frontrow.core.clock import Clock
from frontrow.limits.quota import OnStoreDown


class StoreOptions(TypedDict, total=False):
    """What a store takes."""

    prefix: str  # of the keys in Redis
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
