"""Per-key states of one quota in this process's memory, in plain Python (the fallback for the compiled kernel).

Idle keys leave in generations. A state is written to the young table. Every `life_us` the young table becomes the old
one, and the old one is freed, a few keys per check, so no check waits for a sweep. A state that was not touched for a
whole life equals no state, so nothing that matters is forgotten. One jump of the clock turns only one generation.

At `max_keys` a new key shares one of a few overflow states (a sixteenth of the cap, at most 1,024) with other new keys.
It may be refused because of them, but no existing key is forgotten and nobody gets more than the quota.
"""

from frontrow.limits.algorithms import State
from frontrow.limits.keys import StoreKey

FREED_PER_CHECK = 32
MAX_OVERFLOW = 1024


class KeyTable:
    """The states of one quota's keys."""

    __slots__ = ("_doomed", "_life_us", "_max_keys", "_old", "_overflow", "_turn_at_us", "_young")

    def __init__(self, life_us: int, max_keys: int) -> None:
        self._life_us = life_us
        self._overflow = min(MAX_OVERFLOW, max(1, max_keys // 16))
        self._max_keys = max_keys - self._overflow
        self._young: dict[StoreKey, State] = {}
        self._old: dict[StoreKey, State] = {}
        self._doomed: list[dict[StoreKey, State]] = []
        self._turn_at_us: int | None = None

    def __len__(self) -> int:
        return len(self._young) + len(self._old) + sum(map(len, self._doomed))

    def advance_generation(self, now_us: int) -> None:
        """Turn a generation when it is due, and free a few keys of the doomed ones."""
        if self._turn_at_us is None or now_us < self._turn_at_us - 2 * self._life_us:
            self._turn_at_us = now_us + self._life_us
        elif now_us >= self._turn_at_us:
            self._turn_at_us = now_us + self._life_us
            if self._old:
                self._doomed.append(self._old)
            self._old, self._young = self._young, {}
        if self._doomed:
            last = self._doomed[-1]
            for _ in range(min(FREED_PER_CHECK, len(last))):
                last.popitem()
            if not last:
                self._doomed.pop()

    def get(self, key: StoreKey) -> State | None:
        state = self._young.get(key)
        return self._old.get(key) if state is None else state

    def find_home(self, key: StoreKey) -> StoreKey:
        """`key` itself, or an overflow key when it is new and the table is full."""
        if key in self._young or key in self._old or len(self) < self._max_keys:
            return key
        return b"~%d" % (hash(key) % self._overflow)

    def write(self, key: StoreKey, state: State) -> None:
        self._old.pop(key, None)
        self._young[key] = state
