"""The in-process store in plain Python: one lock, one table per quota, and the algorithms as specified.

Common checks take a shorter way: plain_checks.py.
"""

from collections.abc import Sequence

from frontrow.core.clock import Clock
from frontrow.core.forks import fork_safe_lock
from frontrow.limits.algorithms import (
    SPECIFICATION,
    RuleVerdict,
    State,
    charge_units,
    peek_verdict,
    return_units,
)
from frontrow.limits.keys import Key
from frontrow.limits.quota import Decision, Rule
from frontrow.limits.stores.key_table import KeyTable
from frontrow.limits.stores.plain_checks import PlainRule, plain_check, plain_checks
from frontrow.limits.stores.protocol import (
    CHARGE,
    CHECK,
    PEEK,
    RESET,
    Check,
    PreparedCheck,
    QuotaSlot,
    StoreRequest,
    StoreResult,
    combine_verdicts,
)

DEFAULT_MAX_KEYS = 2_000_000


class MemoryStore:
    """Exact under any number of threads. Holds at most `max_keys` keys per quota."""

    tag_parts = None

    def __init__(
        self, slots: Sequence[QuotaSlot], clock: Clock, max_keys: int = DEFAULT_MAX_KEYS, keep_idle_us: int = 0
    ) -> None:
        self._slots = tuple(slots)
        self._clock = clock
        self._lock = fork_safe_lock()
        self._tables = [KeyTable(slot.quota, max(slot.quota.life_us, keep_idle_us), max_keys) for slot in self._slots]
        self._counts = [[0, 0, 0] for _ in self._slots]

    def __len__(self) -> int:
        """The number of keys held, over all quotas."""
        return sum(map(len, self._tables))

    def decide(self, request: StoreRequest) -> StoreResult:
        """Charge every rule or none, in one step."""
        with self._lock:
            now_us = self._clock() if request.now_us is None else request.now_us
            slots = [self._slots[at] for at in request.slots]
            tables = [self._tables[at] for at in request.slots]
            if request.op != PEEK:  # a look ahead must not age the other keys
                for table in tables:
                    table.advance_generation(now_us)
            states = [table.get(key) for table, key in zip(tables, request.keys, strict=True)]
            verdicts, after = apply_rules(request, slots, states, now_us)
            for table, key, state in zip(tables, request.keys, after, strict=True):
                if state is not None:
                    table.write(key, state, now_us)
                elif request.op == RESET:
                    table.forget(key)
            if request.op == CHARGE:
                for slot, table in zip(slots, tables, strict=True):
                    if slot.quota.is_bucket:  # its debt may matter for twice as long as other states
                        table.keep_for(2 * slot.quota.life_us)
        return combine_verdicts(slots, verdicts)

    def prepare_check(self, slots: Sequence[int], rules: Sequence[Rule], fallback: Check) -> PreparedCheck:
        """The check of these rules, whose quotas are in `slots`. `fallback` decides what is unusual."""
        if len(slots) == 1:
            [at] = slots
            table, counts = self._tables[at], self._counts[at]
            return PlainCheck(plain_check(self._slots[at], table, self._lock, self._clock, counts, fallback))
        known = [PlainRule(self._slots[at], self._tables[at], self._counts[at]) for at in slots]
        return PlainCheck(plain_checks(known, self._lock, self._clock, fallback))

    def counts(self) -> list[tuple[str, int, int, int]]:
        """Counters of the checks decided by prepared checks, per slot: rule name, allowed, refused, shadow refused."""
        return [(slot.rule.name, *counts) for slot, counts in zip(self._slots, self._counts, strict=True)]  # type: ignore[misc]

    async def adecide(self, request: StoreRequest) -> StoreResult:
        return self.decide(request)

    def close(self) -> None:
        """Nothing to close."""

    async def aclose(self) -> None:
        """Nothing to close."""


class PlainCheck:
    """A prepared check and its twin for asyncio."""

    __slots__ = ("check",)

    def __init__(self, check: Check) -> None:
        self.check = check

    async def acheck(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        return self.check(key, cost, now_us)


def apply_rules(
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
    after: list[State | None]
    if request.op == RESET:
        after = [None] * len(slots)
    elif request.op == CHARGE:
        after = [charge_units(quota, state, now_us, cost) for quota, state in zip(quotas, states, strict=True)]
    else:
        after = [return_units(quota, state, now_us, cost) for quota, state in zip(quotas, states, strict=True)]
    return [peek_verdict(quota, state, now_us, 1) for quota, state in zip(quotas, after, strict=True)], after
