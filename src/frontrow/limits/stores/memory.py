"""The in-process store in plain Python: one lock, one table per quota, and the algorithms as specified."""

import threading
from collections.abc import Sequence

from frontrow.core.clock import Clock
from frontrow.limits.algorithms import SPECIFICATION, RuleVerdict, State, peek_verdict, return_units
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Decision
from frontrow.limits.stores.key_table import KeyTable
from frontrow.limits.stores.protocol import CHECK, PEEK, QuotaSlot, StoreRequest, StoreResult, combine_verdicts

DEFAULT_MAX_KEYS = 2_000_000


class MemoryStore:
    """Exact under any number of threads. Holds at most `max_keys` keys per quota."""

    tag_parts = None

    def __init__(
        self, slots: Sequence[QuotaSlot], clock: Clock, max_keys: int = DEFAULT_MAX_KEYS, keep_idle_us: int = 0
    ) -> None:
        self._slots = tuple(slots)
        self._clock = clock
        self._lock = threading.Lock()
        self._tables = [KeyTable(max(slot.quota.life_us, keep_idle_us), max_keys) for slot in self._slots]

    def __len__(self) -> int:
        """The number of keys held, over all quotas."""
        return sum(map(len, self._tables))

    def decide(self, request: StoreRequest) -> StoreResult:
        """Charge every rule or none, in one step."""
        if request.op == CHECK and len(request.slots) == 1:
            return self._check_one(request.slots[0], request.keys[0], request.cost, request.now_us)
        with self._lock:
            now_us = self._clock() if request.now_us is None else request.now_us
            slots = [self._slots[at] for at in request.slots]
            tables = [self._tables[at] for at in request.slots]
            for table in tables:
                table.advance_generation(now_us)
            keys = [table.find_home(key) for table, key in zip(tables, request.keys, strict=True)]
            states = [table.get(key) for table, key in zip(tables, keys, strict=True)]
            verdicts, after = _apply_rules(request, slots, states, now_us)
            for table, key, state in zip(tables, keys, after, strict=True):
                if state is not None:
                    table.write(key, state)
        return combine_verdicts(slots, verdicts)

    def _check_one(self, at: int, key: StoreKey, cost: int, now_us: int | None) -> StoreResult:
        """`decide` for the most common request: a check of one rule."""
        slot, table = self._slots[at], self._tables[at]
        quota = slot.quota
        with self._lock:
            now_us = self._clock() if now_us is None else now_us
            table.advance_generation(now_us)
            key = table.find_home(key)
            verdict, after = SPECIFICATION[quota.algorithm](quota, table.get(key), now_us, cost)
            if after is not None:
                table.write(key, after)
        allowed, remaining, reset_after_us, retry_after_us, delay_us = verdict
        if slot.rule.shadow:
            allowed, retry_after_us, delay_us = True, 0, 0
        decision = Decision(
            allowed, slot.rule.name, quota.capacity, remaining, reset_after_us, retry_after_us, delay_us
        )
        return StoreResult(decision, () if verdict.allowed or not slot.rule.shadow else (0,))

    async def adecide(self, request: StoreRequest) -> StoreResult:
        return self.decide(request)

    def close(self) -> None:
        """Nothing to close."""

    async def aclose(self) -> None:
        """Nothing to close."""


def _apply_rules(
    request: StoreRequest, slots: Sequence[QuotaSlot], states: Sequence[State | None], now_us: int
) -> tuple[list[RuleVerdict], list[State | None]]:
    """Each rule's verdict and the states to write: all new ones, or none if a rule refused."""
    quotas, cost = [slot.quota for slot in slots], request.cost
    if request.op == PEEK:
        peeked = [peek_verdict(quota, state, now_us, cost) for quota, state in zip(quotas, states, strict=True)]
        return peeked, [None] * len(slots)
    if request.op == CHECK:
        both = [
            SPECIFICATION[quota.algorithm](quota, state, now_us, cost)
            for quota, state in zip(quotas, states, strict=True)
        ]
        verdicts = [verdict for verdict, _ in both]
        if all(verdict.allowed or slot.rule.shadow for verdict, slot in zip(verdicts, slots, strict=True)):
            return verdicts, [state for _, state in both]
        # a refused rule writes only when its clock was set back; the others report their uncharged state
        reported = [
            peek_verdict(quota, state, now_us, cost) if verdict.allowed else verdict
            for quota, state, verdict in zip(quotas, states, verdicts, strict=True)
        ]
        return reported, [None if verdict.allowed else state for verdict, state in both]
    returned = [return_units(quota, state, now_us, cost) for quota, state in zip(quotas, states, strict=True)]
    return [peek_verdict(quota, state, now_us, 1) for quota, state in zip(quotas, returned, strict=True)], returned
