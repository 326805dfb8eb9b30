"""Per-key states of one quota in this process's memory, in plain Python (the fallback for the compiled kernel).

Idle keys leave in generations. A state is written to the young generation. Every `life_us` the young one becomes the
old one, and the old one is freed, a few keys per check, so no check waits for a sweep. A state that was not touched for
a whole life equals no state, so nothing that matters is forgotten. One jump of the clock turns only one generation.

At `max_keys` a new key takes the place of another, so nobody is refused because others came first. The table looks at
the next few keys of each generation and forgets those that have used least, one per newcomer. A client who has used
much therefore stays known while many others ask once.
"""

from collections.abc import Callable
from typing import Any

from frontrow.limits.algorithms import SPECIFICATION, State
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Quota

FREED_PER_CHECK = 32
SAMPLED_PER_GENERATION = 32
KEPT_OF_SAMPLE = 8  # candidates of one sample; each makes room for one newcomer


class Generation:
    """Keys that were written in the same stretch of time, and a round of them to take samples from."""

    __slots__ = ("_hand", "_round", "states")

    def __init__(self) -> None:
        self.states: dict[StoreKey, State] = {}
        self._round: list[StoreKey] = []
        self._hand = 0

    def add(self, key: StoreKey, state: State) -> None:
        """Add a key that this generation does not have."""
        self._round.append(key)
        self.states[key] = state

    def sample(self) -> list[StoreKey]:
        """The next few keys of the round. Keys that moved on leave the round on the way."""
        found = []
        for _ in range(min(SAMPLED_PER_GENERATION, len(self._round))):
            at = self._hand = (self._hand + 1) % len(self._round)
            key = self._round[at]
            if key in self.states:
                found.append(key)
            else:
                self._leave_round(at)
        return found

    def _leave_round(self, at: int) -> None:
        last = self._round.pop()
        if at < len(self._round):
            self._round[at] = last


class KeyTable:
    """The states of one quota's keys."""

    __slots__ = (
        "_candidates",
        "_doomed",
        "_left",
        "_life_us",
        "_max_keys",
        "_turn_at_us",
        "idle_from_us",
        "idle_until_us",
        "old",
        "young",
    )

    def __init__(self, quota: Quota, life_us: int, max_keys: int) -> None:
        self._life_us = life_us
        self._max_keys = max_keys
        self.young = Generation()
        self.old = Generation()
        self._left = _left_in(quota)
        self._candidates: list[tuple[int, Generation, StoreKey]] = []
        self._doomed: list[dict[StoreKey, State]] = []
        self._turn_at_us: int | None = None
        self.idle_from_us = self.idle_until_us = 0  # between these times `advance_generation` has nothing to do

    def __len__(self) -> int:
        return len(self.young.states) + len(self.old.states) + sum(map(len, self._doomed))

    def advance_generation(self, now_us: int) -> None:
        """Turn a generation when it is due, and free a few keys of the doomed ones."""
        if self._turn_at_us is None or now_us < self._turn_at_us - 2 * self._life_us:
            self._turn_at_us = now_us + self._life_us
        elif now_us >= self._turn_at_us:
            self._turn_at_us = now_us + self._life_us
            if self.old.states:
                self._doomed.append(self.old.states)
            self.old, self.young = self.young, Generation()
        self._free_doomed()
        self.idle_from_us = self._turn_at_us - 2 * self._life_us
        self.idle_until_us = self.idle_from_us if self._doomed else self._turn_at_us

    def get(self, key: StoreKey) -> State | None:
        state = self.young.states.get(key)
        return self.old.states.get(key) if state is None else state

    def write(self, key: StoreKey, state: State, now_us: int) -> None:
        if key in self.young.states:
            self.young.states[key] = state
            return
        if self.old.states.pop(key, None) is None and len(self) >= self._max_keys:
            self._make_room(now_us)
        self.young.add(key, state)

    def forget(self, key: StoreKey) -> None:
        if self.young.states.pop(key, None) is None:
            self.old.states.pop(key, None)

    def keep_for(self, life_us: int) -> None:
        """Keep idle keys at least this long from now on."""
        self._life_us = max(self._life_us, life_us)

    def _free_doomed(self) -> int:
        """Free a few keys whose state equals none. Returns how many."""
        if not self._doomed:
            return 0
        last = self._doomed[-1]
        freed = min(FREED_PER_CHECK, len(last))
        for _ in range(freed):
            last.popitem()
        if not last:
            self._doomed.pop()
        return freed

    def _make_room(self, now_us: int) -> None:
        """Forget one key: a doomed one, else of a sample one that has used least."""
        if self._free_doomed():
            return
        while self._candidates:
            if self._forget(*self._candidates.pop(), now_us):
                return
        self._candidates = self._find_least_used(now_us)
        if self._candidates:
            self._forget(*self._candidates.pop(), now_us)
        else:  # the whole sample had moved on
            max(self.old.states, self.young.states, key=len).popitem()

    def _forget(self, left: int, generation: Generation, key: StoreKey, now_us: int) -> bool:
        """Forget a candidate, unless it moved on or has used more since."""
        state = generation.states.get(key)
        if state is None or (generation is not self.old and generation is not self.young):
            return False
        if self._left(state, now_us) < left:
            return False
        del generation.states[key]
        return True

    def _find_least_used(self, now_us: int) -> list[tuple[int, Generation, StoreKey]]:
        """Those keys of a sample that have most left, all of them as much."""
        found: list[tuple[int, Generation, StoreKey]] = []
        for generation in (self.old, self.young):
            states = generation.states
            found += [(self._left(states[key], now_us), generation, key) for key in generation.sample()]
        most = max((left for left, _, _ in found), default=0)
        return [candidate for candidate in found if candidate[0] == most][:KEPT_OF_SAMPLE]


def _left_in(quota: Quota) -> Callable[[Any, int], int]:
    """The function that computes how much a client has left."""
    specified = SPECIFICATION[quota.algorithm]
    if not quota.is_bucket:
        return lambda state, now_us: specified(quota, state, now_us, 0)[0].remaining
    leak, unit = quota.drip
    full = quota.capacity * unit

    def left(state: Any, now_us: int) -> int:
        then, debt = state
        if then < now_us:
            debt -= (now_us - then) * leak
        return full // unit if debt <= 0 else (full - debt) // unit

    return left
