"""The in-process store, in plain Python: one lock, one table per quota, the algorithms as they are specified."""

import threading
from collections.abc import Sequence

from frontrow.core.clock import Clock
from frontrow.limits.algorithms import SPECIFICATION, State, Verdict, give_back, look
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Decision
from frontrow.limits.stores.key_table import Table
from frontrow.limits.stores.protocol import CHECK, PEEK, Answer, Ask, Line, summarise

DEFAULT_MAX_KEYS = 2_000_000


class MemoryStore:
    """Exact under any number of threads; holds at most `max_keys` keys per quota."""

    tag_parts = None

    def __init__(
        self, lines: Sequence[Line], clock: Clock, max_keys: int = DEFAULT_MAX_KEYS, keep_idle_us: int = 0
    ) -> None:
        self._lines = tuple(lines)
        self._clock = clock
        self._lock = threading.Lock()
        self._tables = [Table(max(line.quota.life_us, keep_idle_us), max_keys) for line in self._lines]

    def __len__(self) -> int:
        """How many keys are remembered, over all quotas."""
        return sum(map(len, self._tables))

    def decide(self, ask: Ask) -> Answer:
        """Charge every rule or none, in one step."""
        if ask.op == CHECK and len(ask.lines) == 1:
            return self._check_one(ask.lines[0], ask.keys[0], ask.cost, ask.now_us)
        with self._lock:
            now_us = self._clock() if ask.now_us is None else ask.now_us
            lines = [self._lines[at] for at in ask.lines]
            tables = [self._tables[at] for at in ask.lines]
            for table in tables:
                table.tick(now_us)
            keys = [table.home(key) for table, key in zip(tables, ask.keys, strict=True)]
            states = [table.get(key) for table, key in zip(tables, keys, strict=True)]
            verdicts, after = _judge(ask, lines, states, now_us)
            for table, key, state in zip(tables, keys, after, strict=True):
                if state is not None:
                    table.put(key, state)
        return summarise(lines, verdicts)

    def _check_one(self, at: int, key: StoreKey, cost: int, now_us: int | None) -> Answer:
        """`decide` for the most common question: one rule, to be charged."""
        line, table = self._lines[at], self._tables[at]
        quota = line.quota
        with self._lock:
            now_us = self._clock() if now_us is None else now_us
            table.tick(now_us)
            key = table.home(key)
            verdict, after = SPECIFICATION[quota.algorithm](quota, table.get(key), now_us, cost)
            if after is not None:
                table.put(key, after)
        allowed, remaining, reset_after_us, retry_after_us, delay_us = verdict
        if line.rule.shadow:
            allowed, retry_after_us, delay_us = True, 0, 0
        decision = Decision(
            allowed, line.rule.name, quota.capacity, remaining, reset_after_us, retry_after_us, delay_us
        )
        return Answer(decision, () if verdict.allowed or not line.rule.shadow else (0,))

    async def adecide(self, ask: Ask) -> Answer:
        return self.decide(ask)

    def close(self) -> None:
        """Nothing to close."""

    async def aclose(self) -> None:
        """Nothing to close."""


def _judge(
    ask: Ask, lines: Sequence[Line], states: Sequence[State | None], now_us: int
) -> tuple[list[Verdict], list[State | None]]:
    """Each rule's verdict and the states to write: all new ones, or none when a rule refused."""
    nothing: list[State | None] = [None] * len(lines)
    if ask.op == PEEK:
        return [look(ln.quota, st, now_us, ask.cost) for ln, st in zip(lines, states, strict=True)], nothing
    if ask.op == CHECK:
        both = [
            SPECIFICATION[ln.quota.algorithm](ln.quota, st, now_us, ask.cost)
            for ln, st in zip(lines, states, strict=True)
        ]
        verdicts = [verdict for verdict, _ in both]
        if all(verdict.allowed or line.rule.shadow for verdict, line in zip(verdicts, lines, strict=True)):
            return verdicts, [state for _, state in both]
        # a refused rule writes only when its clock was set back; the others are told as they stand, uncharged
        told = [
            look(line.quota, state, now_us, ask.cost) if verdict.allowed else verdict
            for line, state, verdict in zip(lines, states, verdicts, strict=True)
        ]
        return told, [None if verdict.allowed else state for verdict, state in both]
    returned = [give_back(ln.quota, st, now_us, ask.cost) for ln, st in zip(lines, states, strict=True)]
    return [look(ln.quota, st, now_us, 1) for ln, st in zip(lines, returned, strict=True)], returned
