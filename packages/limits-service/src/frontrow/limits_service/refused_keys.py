"""The most refused keys of the last ten minutes: in memory for one process, in Redis for several.

Keys can be shown as keyed hashes: the same key has the same hash while the service runs, and nobody can read it.
"""

import asyncio
import functools
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import Protocol

from frontrow.core.redis_url import connect_sync, disconnect_sync
from frontrow.limits.keys import StoreKey
from frontrow.limits.stores.most_refused_keys import (
    KEPT_S,
    MAX_COUNTED,
    OTHERS,
    SPAN_S,
    RefusedKey,
    RefusedKeys,
    readable_key,
    top_refused,
)
from frontrow.limits.stores.protocol import DEFAULT_PREFIX

TIMEOUT_S = 0.5
SHOWN_WINDOW_S, SHOWN_TOP, MAX_TOP = 60, 20, 200  # what a page shows unless it is asked otherwise, and at most


class RefusalCounts(Protocol):
    """Counts refusals by rule and key, and knows the most refused keys."""

    def count(self, rule: str, key: StoreKey) -> None: ...

    async def top(self, window_s: int, most: int) -> list[RefusedKey]: ...

    async def aclose(self) -> None: ...


class MemoryRefusals:
    """Counts of one process, in spans of ten seconds."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._spans: OrderedDict[int, Counter[tuple[str, StoreKey]]] = OrderedDict()

    def count(self, rule: str, key: StoreKey) -> None:
        span = int(self._monotonic_s()) // SPAN_S
        counts = self._spans.get(span)
        if counts is None:
            counts = self._spans[span] = Counter()
            while len(self._spans) > KEPT_S // SPAN_S + 1:
                self._spans.popitem(last=False)
        counted = (rule, key)
        if len(counts) >= MAX_COUNTED and counted not in counts:
            counted = (rule, OTHERS)
        counts[counted] += 1

    async def top(self, window_s: int, most: int) -> list[RefusedKey]:
        oldest = (int(self._monotonic_s()) - window_s) // SPAN_S
        total: Counter[tuple[str, StoreKey]] = Counter()
        for span, counts in self._spans.items():
            if span > oldest:
                total.update(counts)
        return [RefusedKey(rule, readable_key(key), number) for (rule, key), number in total.most_common(most)]

    async def aclose(self) -> None:
        """Nothing to close."""


class RedisRefusals:
    """Counts of all processes at one Redis. They are written once per second, from a thread."""

    def __init__(self, url: str, prefix: str = DEFAULT_PREFIX) -> None:
        self._prefix = prefix
        self._connect = functools.partial(connect_sync, url, timeout_s=TIMEOUT_S)
        self._counts = RefusedKeys(self._connect, prefix)
        self.count = self._counts.count

    async def top(self, window_s: int, most: int) -> list[RefusedKey]:
        return await asyncio.to_thread(self._read, window_s, most)

    def _read(self, window_s: int, most: int) -> list[RefusedKey]:
        client = self._connect()
        try:
            return top_refused(client, self._prefix, window_s, most)
        finally:
            disconnect_sync(client)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._counts.close)


def hash_shown_key(key: str, secret: bytes) -> str:
    """What a page shows in place of a key."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, key=secret).hexdigest()
