"""`Limiter`: decides all rules at once over a store.

    limiter = Limiter(Quota.parse("100/minute"))
    if not limiter.check("user:42"): ...

Each operation exists twice, blocking (`check`) and for asyncio (`acheck`). Both send the same `StoreRequest`.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

from frontrow.core.clock import Clock, SystemClock, steady
from frontrow.limits.keys import Key, pack_parts, rule_key
from frontrow.limits.limiters_in_use import note_limiter
from frontrow.limits.options import LimiterOptions, StoreOptions, check_options
from frontrow.limits.quota import Decision, InvalidKey, OnStoreDown, Rule, check_time
from frontrow.limits.refusal_cache import RefusalCache
from frontrow.limits.reservations import Reservation
from frontrow.limits.rules import RuleLike, to_rules
from frontrow.limits.stats import Stats
from frontrow.limits.stores.deadline import DEFAULT_DEADLINE_S, check_deadline
from frontrow.limits.stores.from_url import open_memory_store, open_store
from frontrow.limits.stores.protocol import (
    CHARGE,
    CHECK,
    PEEK,
    REFUND,
    RESET,
    QuotaSlot,
    Store,
    StoreRequest,
    StoreResult,
)
from frontrow.limits.stores.unlimited import UnlimitedStore
from frontrow.limits.waiting_line import WaitingLines, aacquire, acquire

_OPTIONS = ("rules", "stats", *LimiterOptions.__annotations__)
_new: Any = tuple.__new__  # builds a named tuple at half the cost of calling its class


class Limiter:
    """Rules over a store. Create it once and share it: it is safe for threads and for event loops."""

    def __init__(
        self,
        rules: RuleLike | Sequence[RuleLike],
        *,
        store: Any = "memory://",
        clock: Clock | None = None,
        on_store_down: OnStoreDown = "local",
        deadline_s: float = DEFAULT_DEADLINE_S,
        stats: Stats | None = None,
        **store_options: Unpack[StoreOptions],
    ) -> None:
        if store_options:
            check_options("a limiter", store_options, _OPTIONS)
        self.rules = to_rules(rules)
        check_deadline(deadline_s)
        self.stats = stats or Stats([rule.name for rule in self.rules])
        self._slots: list[QuotaSlot] = []
        self._slot_of_tier: list[dict[str, int]] = []
        for rule in self.rules:
            first = len(self._slots)
            variants = rule.variants()
            self._slot_of_tier.append({tier: first + at for at, tier in enumerate(variants)})
            self._slots += [QuotaSlot(rule, tier, quota) for tier, quota in variants.items()]
        self._uses_whole_key = all(rule.per is None and not rule.tiers for rule in self.rules)
        self._default_slots = tuple(of[""] for of in self._slot_of_tier)
        self._raw_clock: Clock = clock or SystemClock()
        self._clock = steady(self._raw_clock)
        opened: Store = (
            store  # one of your own
            if hasattr(store, "adecide")
            else open_store(store, self._slots, self._clock, self.stats, on_store_down, deadline_s, {**store_options})
        )
        self._use_store(opened)
        note_limiter(self)

    def _use_store(self, store: Store) -> None:
        self._store = store
        self._tag_parts = store.tag_parts
        cache: RefusalCache | None = getattr(store, "refusal_cache", None) if self._uses_whole_key else None
        self._cached_refusals = cache.by_key if cache is not None else None
        self._find_refusal = cache.find if cache is not None else _find_nothing
        self._lines = WaitingLines()
        self._install_fast_path()

    def switch(self, clock: Clock | None) -> Callable[[], None]:
        """For tests: count in memory, from nothing, on this clock; None: allow everything. The result switches back."""
        before = dict(vars(self))
        vars(self).pop("check", None)
        vars(self).pop("acheck", None)
        self.stats = Stats([rule.name for rule in self.rules])
        if clock is not None:
            self._raw_clock, self._clock = clock, steady(clock)
        self._use_store(UnlimitedStore(self._slots) if clock is None else open_memory_store(self._slots, self._clock))

        def switch_back() -> None:
            for name in ("check", "acheck"):
                vars(self).pop(name, None)
            vars(self).update(before)

        return switch_back

    # -- operations ----------------------------------------------------------------------------------------------

    def check(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """Charge `cost` to every rule, or to none if one of them refuses."""
        if self._cached_refusals and now_us is None and type(key) is str:
            refusal = self._find_refusal(key, cost)
            if refusal is not None:
                self.stats.count(refusal)
                return refusal
        return self._count(self._store.decide(self._request(key, cost, now_us, CHECK)))

    async def acheck(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """`check` for asyncio."""
        if self._cached_refusals and now_us is None and type(key) is str:
            refusal = self._find_refusal(key, cost)
            if refusal is not None:
                self.stats.count(refusal)
                return refusal
        return self._count(await self._store.adecide(self._request(key, cost, now_us, CHECK)))

    def peek(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """What `check` would decide, without charging. `remaining` is what is left now."""
        return self._store.decide(self._request(key, cost, now_us, PEEK)).decision

    async def apeek(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """`peek` for asyncio."""
        return (await self._store.adecide(self._request(key, cost, now_us, PEEK))).decision

    def refund(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """Return `cost` units that were charged but not used. The decision is that of a `peek` afterwards."""
        request = self._request(key, cost, now_us, REFUND)
        result = self._store.decide(request)
        self._lines.wake(request.slots, request.keys)
        return result.decision

    async def arefund(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """`refund` for asyncio."""
        request = self._request(key, cost, now_us, REFUND)
        result = await self._store.adecide(request)
        self._lines.wake(request.slots, request.keys)
        return result.decision

    def charge(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """Charge `cost` whether or not it fits, for work that was done already. A window is used up at most; a bucket
        goes into debt. The decision is that of a `peek` afterwards."""
        return self._store.decide(self._request(key, cost, now_us, CHARGE)).decision

    async def acharge(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """`charge` for asyncio."""
        return (await self._store.adecide(self._request(key, cost, now_us, CHARGE))).decision

    def reset(self, key: Key, now_us: int | None = None) -> Decision:
        """Forget what every rule has counted for `key`. The decision is that of a `peek` afterwards.

        A rule that counts everybody together (`per=()`) is reset for everybody. Of a rule with tiers, the key's current
        tier is reset.
        """
        request = self._request(key, 1, now_us, RESET)
        result = self._store.decide(request)
        self._lines.wake(request.slots, request.keys)
        return result.decision

    async def areset(self, key: Key, now_us: int | None = None) -> Decision:
        """`reset` for asyncio."""
        request = self._request(key, 1, now_us, RESET)
        result = await self._store.adecide(request)
        self._lines.wake(request.slots, request.keys)
        return result.decision

    def reserve(self, key: Key, cost: int, now_us: int | None = None) -> Reservation:
        """Charge an estimated cost, to be corrected by `settle` when the real one is known (see `Reservation`)."""
        request, charged_us = self._request(key, cost, now_us, CHECK), self._clock() if now_us is None else now_us
        return self._reservation(request, self._count(self._store.decide(request)), charged_us)

    async def areserve(self, key: Key, cost: int, now_us: int | None = None) -> Reservation:
        """`reserve` for asyncio."""
        request, charged_us = self._request(key, cost, now_us, CHECK), self._clock() if now_us is None else now_us
        return self._reservation(request, self._count(await self._store.adecide(request)), charged_us)

    def acquire(self, key: Key, cost: int = 1, timeout_s: float | None = None) -> Decision:
        """Wait until `cost` is allowed (with `leaky_queue` also for its delay). `Throttled` if that takes too long.

        Callers of one key are served in the order they came, within this process.
        """
        return acquire(self, key, cost, timeout_s)

    async def aacquire(self, key: Key, cost: int = 1, timeout_s: float | None = None) -> Decision:
        """`acquire` for asyncio."""
        return await aacquire(self, key, cost, timeout_s)

    # -- closing -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the store's blocking connections."""
        self._store.close()

    async def aclose(self) -> None:
        """Close the store's connections, asyncio ones included."""
        await self._store.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    # -- inside --------------------------------------------------------------------------------------------------

    def _request(self, key: Key, cost: int, now_us: int | None, op: int) -> StoreRequest:
        slots = self._default_slots
        if self._uses_whole_key:
            keys = (rule_key(self.rules[0], key),) * len(slots)
        else:
            keys = tuple([rule_key(rule, key) for rule in self.rules])
            slots = tuple([self._slot_index(at, rule, key) for at, rule in enumerate(self.rules)])
        if cost != 1 or type(cost) is not int:
            for at in slots:
                self._slots[at].quota.check_cost(cost)
        if now_us is not None:
            check_time(now_us)
        tag = keys[0]
        if self._tag_parts and isinstance(key, Mapping):
            tag = pack_parts(key, self._tag_parts, self.rules[0].name)
        return _new(StoreRequest, (slots, keys, cost, now_us, op, tag))  # type: ignore[no-any-return]

    def _reservation(self, request: StoreRequest, decision: Decision, charged_us: int) -> Reservation:
        slots = [self._slots[at] for at in request.slots]
        return Reservation(self._store, request, decision, slots, charged_us, self._clock, self._lines.wake)

    def _slot_index(self, at: int, rule: Rule, key: Key) -> int:
        slots = self._slot_of_tier[at]
        tier = rule.tier_of(key) if rule.tier_of is not None else None
        if tier is not None and not isinstance(tier, str):
            raise _wrong_tier(rule, tier)
        return slots.get(tier or "", slots[""])

    def _count(self, result: StoreResult) -> Decision:
        """Count a result in the statistics."""
        decision, shadowed = result
        self.stats.count(decision, [self.rules[at].name for at in shadowed] if shadowed else ())
        return decision

    def _install_fast_path(self) -> None:
        """Let a store in memory decide common checks directly. It calls back here for unusual ones."""
        prepare = getattr(self._store, "prepare_check", None)
        if prepare is None:
            return
        self.stats.follow(self._store.counts)  # type: ignore[attr-defined]
        replaced = type(self).check is not Limiter.check or type(self).acheck is not Limiter.acheck
        if replaced or any(rule.tiers for rule in self.rules):
            return
        prepared = prepare(self._default_slots, self.rules, functools.partial(Limiter.check, self))
        if prepared is not None:
            vars(self).update(check=prepared.check, acheck=prepared.acheck)


def _find_nothing(_key: str, _cost: int) -> Decision | None:
    """In place of a cache of refusals."""
    return None


def _wrong_tier(rule: Rule, tier: Any) -> InvalidKey:
    if inspect.iscoroutine(tier):
        tier.close()
    return InvalidKey(f"rule {rule.name}: tier_of must return a tier's name or None, not {tier!r:.80}", param="tier_of")
