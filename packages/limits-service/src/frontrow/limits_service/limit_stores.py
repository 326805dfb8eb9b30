"""The store of the service: many rules in one store, of which a request names some, each with its own key.

A `LimitStore` has the rules of the file. Quotas that only a request knows (Envoy's overrides, a caller's own quota) get
a store of their own each, at the same URL (`QuotaStores`). A `Charge` is what a request asks of one store. Charges of
several stores are sent at once; if one is refused, what the others took is given back.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from frontrow.core.background_tasks import start_task
from frontrow.core.clock import Clock
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Decision, Quota, Rule
from frontrow.limits.stats import Stats
from frontrow.limits.stores.from_url import open_store
from frontrow.limits.stores.protocol import CHECK, REFUND, QuotaSlot, Store, StoreRequest, StoreResult, names_memory


@dataclass(frozen=True, slots=True)
class StorePlace:
    """Where all stores of the service count, and what happens when that place is down."""

    url: str
    clock: Clock
    on_store_down: str
    deadline_s: float

    @property
    def is_memory(self) -> bool:
        return names_memory(self.url)


class LimitStore:
    """Some rules and the store that counts them."""

    def __init__(self, rules: Sequence[Rule], place: StorePlace) -> None:
        self.stats = Stats([rule.name for rule in rules])
        self.slots: list[QuotaSlot] = []
        self.slot_of: dict[tuple[str, str], int] = {}  # rule and tier -> slot
        for rule in rules:
            for tier, quota in rule.variants().items():
                self.slot_of[rule.name, tier] = len(self.slots)
                self.slots.append(QuotaSlot(rule, tier, quota))
        self.store: Store = open_store(
            place.url, self.slots, place.clock, self.stats, place.on_store_down, place.deadline_s, {}
        )
        self.is_memory = place.is_memory

    def find_slot(self, rule: str, tier: str | None = None) -> int:
        """The slot of a rule, for a tier if the rule has that one."""
        return self.slot_of.get((rule, tier or ""), self.slot_of[rule, ""])

    def count(self, result: StoreResult, slots: Sequence[int]) -> None:
        """Count a decision in the statistics."""
        shadowed = [self.slots[slots[at]].rule.name for at in result.shadowed] if result.shadowed else ()
        self.stats.count(result.decision, shadowed)


class Charge(NamedTuple):
    """What a request asks of one store: these slots with these keys, `cost` units of each."""

    of: LimitStore
    slots: tuple[int, ...]
    keys: tuple[StoreKey, ...]
    cost: int

    def request(self, op: int) -> StoreRequest:
        return StoreRequest(self.slots, self.keys, self.cost, None, op, self.keys[0])

    def decide(self, op: int) -> StoreResult:
        """Decide in memory, at once."""
        result = self.of.store.decide(self.request(op))
        if op == CHECK:
            self.of.count(result, self.slots)
        return result

    async def adecide(self, op: int) -> StoreResult:
        """Decide in any store."""
        if self.of.is_memory:
            return self.decide(op)
        result = await self.of.store.adecide(self.request(op))
        if op == CHECK:
            self.of.count(result, self.slots)
        return result

    def key_of(self, rule: str) -> StoreKey:
        """The key that a rule of this charge counts by."""
        for slot, key in zip(self.slots, self.keys, strict=True):
            if self.of.slots[slot].rule.name == rule:
                return key
        return self.keys[0]


async def check_each(charges: Sequence[Charge]) -> list[StoreResult]:
    """Check each charge on its own. Those of one store go to it together."""
    results: list[StoreResult | None] = [None] * len(charges)
    by_store: dict[LimitStore, list[int]] = {}
    for at, charge in enumerate(charges):
        by_store.setdefault(charge.of, []).append(at)
    for of, places in by_store.items():
        many = getattr(of.store, "adecide_many", None)
        if many is not None:
            decided = await many([charges[at].request(CHECK) for at in places])
        else:
            decided = await asyncio.gather(*(of.store.adecide(charges[at].request(CHECK)) for at in places))
        for at, result in zip(places, decided, strict=True):
            of.count(result, charges[at].slots)
            results[at] = result
    return results  # type: ignore[return-value]  # every place was filled


async def decide_together(charges: Sequence[Charge]) -> list[StoreResult]:
    """Check all charges, or none. What is begun is ended, even if the caller is cancelled meanwhile."""
    if len(charges) == 1:
        return [await charges[0].adecide(CHECK)]
    return await asyncio.shield(asyncio.ensure_future(_check_all(charges)))


async def _check_all(charges: Sequence[Charge]) -> list[StoreResult]:
    results = list(await asyncio.gather(*(charge.adecide(CHECK) for charge in charges)))
    if not all(result.decision.allowed for result in results):
        taken = [charge for charge, result in zip(charges, results, strict=True) if result.decision.allowed]
        await asyncio.gather(*(charge.adecide(REFUND) for charge in taken))
    return results


def combine(results: Sequence[StoreResult]) -> Decision:
    """One decision: the refusal with the longest wait, or else the one with least left."""
    decisions = [result.decision for result in results]
    refused = [decision for decision in decisions if not decision.allowed]
    if refused:
        return max(refused, key=lambda decision: decision.retry_after_us)
    return min(decisions, key=lambda decision: decision.remaining)


class QuotaStores:
    """The stores of quotas that requests bring. At most `most` are kept; the one unused for longest goes first."""

    def __init__(self, place: StorePlace, most: int, opened: Callable[[LimitStore], Any]) -> None:
        self._place = place
        self._most = most
        self._opened = opened
        self._by_quota: OrderedDict[tuple[str, tuple[Quota, ...]], LimitStore] = OrderedDict()
        self.dropped = 0

    def of(self, name: str, quotas: tuple[Quota, ...]) -> LimitStore:
        """The store that counts these quotas under the rule `name`, or `name-1`, `name-2` if there are several."""
        found = self._by_quota.get((name, quotas))
        if found is not None:
            self._by_quota.move_to_end((name, quotas))
            return found
        names = [name] if len(quotas) == 1 else [f"{name}-{at}" for at in range(1, len(quotas) + 1)]
        rules = [Rule(each, quota) for each, quota in zip(names, quotas, strict=True)]
        found = self._by_quota[name, quotas] = LimitStore(rules, self._place)
        self._opened(found)
        if len(self._by_quota) > self._most:
            _, oldest = self._by_quota.popitem(last=False)
            self.dropped += 1
            start_task(oldest.store.aclose(), "close the store of an unused quota")
        return found

    def __len__(self) -> int:
        return len(self._by_quota)

    async def aclose(self) -> None:
        for each in self._by_quota.values():
            await each.store.aclose()
        self._by_quota.clear()
