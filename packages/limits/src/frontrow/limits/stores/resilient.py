"""A shared store made resilient: cached refusals, a circuit breaker, and a policy for when the store is down."""

import asyncio
from collections.abc import Sequence
from typing import Any

from frontrow.core.breaker import Breaker
from frontrow.core.clock import Clock
from frontrow.limits.options import check_options
from frontrow.limits.quota import Decision, StoreDown
from frontrow.limits.refusal_cache import RefusalCache
from frontrow.limits.stats import Stats
from frontrow.limits.stores.protocol import CHECK, REFUND, RESET, QuotaSlot, Store, StoreRequest, StoreResult, names_sql


class SharedStore:
    """Sends requests to `remote` within its deadline. While it is down, each rule's policy decides."""

    def __init__(
        self,
        remote: Store,
        local: Store,
        slots: Sequence[QuotaSlot],
        clock: Clock,
        stats: Stats,
        breaker: Breaker,
        on_store_down: str,
    ) -> None:
        self._remote = remote
        self._local = local
        self._slots = tuple(slots)
        self._all_slots = tuple(range(len(self._slots)))
        self._clock = clock
        self._down_policies = [slot.rule.on_store_down or on_store_down for slot in self._slots]
        self.tag_parts = remote.tag_parts
        self.breaker = breaker  # the remote store tells it how each call went
        self.refusal_cache = RefusalCache(clock, stats)

    def decide(self, request: StoreRequest) -> StoreResult:
        if self.refusal_cache.by_key:
            cached = self._find_cached(request)
            if cached is not None:
                return cached
        if not self.breaker.permits():
            return self.apply_down_policy(request)
        sent_at_us = self._clock()
        try:
            result = self._remote.decide(request)
        except StoreDown:
            return self.apply_down_policy(request)
        if request.op == CHECK and result.decision.allowed:  # nearly always: nothing to remember
            return result
        return self._remember(request, result, sent_at_us)

    async def adecide(self, request: StoreRequest) -> StoreResult:
        if self.refusal_cache.by_key:
            cached = self._find_cached(request)
            if cached is not None:
                return cached
        if not self.breaker.permits():
            return self.apply_down_policy(request)
        sent_at_us = self._clock()
        try:
            result = await self._remote.adecide(request)
        except StoreDown:
            return self.apply_down_policy(request)
        if request.op == CHECK and result.decision.allowed:  # nearly always: nothing to remember
            return result
        return self._remember(request, result, sent_at_us)

    async def adecide_many(self, requests: Sequence[StoreRequest]) -> list[StoreResult]:
        """`adecide` of several requests at once, each on its own, without a task for each."""
        results: list[StoreResult | None] = []
        waited: list[tuple[int, Any]] = []
        sent_at_us = self._clock()
        for at, request in enumerate(requests):
            cached = self._find_cached(request) if self.refusal_cache.by_key else None
            if cached is None and not self.breaker.permits():
                cached = self.apply_down_policy(request)
            results.append(cached)
            if cached is None:
                waited.append((at, asyncio.ensure_future(self._remote.adecide(request))))
        try:
            for at, future in waited:
                try:
                    result = await future
                except StoreDown:
                    results[at] = self.apply_down_policy(requests[at])
                else:
                    results[at] = self._remember(requests[at], result, sent_at_us)
        finally:
            for _, future in waited:
                if not future.done():  # the caller was cancelled
                    future.cancel()
        return results  # type: ignore[return-value]  # every place was filled

    def decide_block(self, request: StoreRequest) -> StoreResult:
        """Decide a request for a block of units. `StoreDown` in place of a policy: no policy hands out blocks."""
        cached = self._find_cached(request)
        if cached is not None:
            return cached
        if not self.breaker.permits():
            raise StoreDown("the limit store is down")
        sent_at_us = self._clock()
        return self._remember(request, self._remote.decide(request), sent_at_us)

    async def adecide_block(self, request: StoreRequest) -> StoreResult:
        """`decide_block` for asyncio."""
        cached = self._find_cached(request)
        if cached is not None:
            return cached
        if not self.breaker.permits():
            raise StoreDown("the limit store is down")
        sent_at_us = self._clock()
        return self._remember(request, await self._remote.adecide(request), sent_at_us)

    def _find_cached(self, request: StoreRequest) -> StoreResult | None:
        if request.op != CHECK or request.now_us is not None:
            return None
        cached = self.refusal_cache.find(self._cache_key(request), request.cost)
        return None if cached is None else StoreResult(cached)

    def _remember(self, request: StoreRequest, result: StoreResult, sent_at_us: int) -> StoreResult:
        """Keep a refusal in the cache, or forget it after a refund or a reset."""
        if request.op in (REFUND, RESET):
            self.refusal_cache.forget(self._cache_key(request))
        elif not result.decision.allowed and request.op == CHECK and request.now_us is None:
            self.refusal_cache.remember(self._cache_key(request), request.cost, sent_at_us, result.decision)
        return result

    def _cache_key(self, request: StoreRequest) -> Any:
        """The key of a cached refusal: the caller's own key if all rules use it, else the slots and keys."""
        slots, keys = request.slots, request.keys
        first = keys[0]
        whole = isinstance(first, str) and slots == self._all_slots and keys.count(first) == len(keys)
        return first if whole else (slots, keys)

    def apply_down_policy(self, request: StoreRequest) -> StoreResult:
        """Closed rules refuse, local rules are counted in this process, open rules allow."""
        for at in request.slots:
            if self._down_policies[at] == "closed" and not self._slots[at].rule.shadow:
                slot, wait_us = self._slots[at], self.breaker.retry_after_us
                name, capacity = slot.rule.name, slot.quota.capacity
                return StoreResult(Decision(False, name, capacity, 0, wait_us, wait_us, 0, "closed"))
        local = [i for i, at in enumerate(request.slots) if self._down_policies[at] == "local"]
        if not local:
            slot = self._slots[request.slots[0]]
            capacity = slot.quota.capacity
            return StoreResult(Decision(True, slot.rule.name, capacity, capacity, 0, 0, 0, "open"))
        slots = tuple(request.slots[i] for i in local)
        keys = tuple(request.keys[i] for i in local)
        result = self._local.decide(request._replace(slots=slots, keys=keys))
        shadowed = tuple(local[i] for i in result.shadowed)
        return StoreResult(result.decision._replace(source="local"), shadowed)

    def close(self) -> None:
        self._remote.close()

    async def aclose(self) -> None:
        await self._remote.aclose()


def open_shared_store(
    source: Any,
    slots: Sequence[QuotaSlot],
    clock: Clock,
    stats: Stats,
    on_store_down: str,
    deadline_s: float,
    options: dict[str, Any],
) -> SharedStore:
    """Open a resilient store at a URL or over redis-py clients. Checks the options."""
    from frontrow.limits.stores.from_url import open_memory_store

    breaker = Breaker(clock)
    remote = _open_remote(source, slots, stats, options, breaker=breaker, deadline_s=deadline_s)
    return SharedStore(remote, open_memory_store(slots, clock), slots, clock, stats, breaker, on_store_down)


def _open_remote(source: Any, slots: Sequence[QuotaSlot], stats: Stats, options: dict[str, Any], **more: Any) -> Store:
    """The store itself. Its client is imported only if it is wanted."""
    if names_sql(source):
        from frontrow.limits.stores.sql import open_sql_store

        return open_sql_store(source, slots, stats, **options, **more)
    from frontrow.limits.stores.redis_source import need_redis_client

    need_redis_client()
    from frontrow.limits.stores.redis import open_redis_store

    check_options("a Redis store", options, ("prefix", "credential_provider"))
    return open_redis_store(source, slots, stats, **options, **more)
