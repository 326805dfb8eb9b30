"""Callers that wait a moment for a slot: bounded, by class, the newest first.

The newest first, because under overload the oldest has little patience left: serving in order would make everybody wait
for as long as possible, and some in vain. When the line is full, the oldest caller of the lowest class gives way. The
owner's lock guards everything here except `wake`.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Slot = TypeVar("Slot")


class WaitingCaller(Generic[Slot]):
    """One caller in line. It has a slot once one was given to it."""

    __slots__ = ("partition", "rank", "slot", "wake")

    def __init__(self, rank: int, partition: str | None, wake: Callable[[], object]) -> None:
        self.rank, self.partition, self.wake = rank, partition, wake
        self.slot: Slot | None = None


class WaitingCallers(Generic[Slot]):
    """The callers in line, by class."""

    __slots__ = ("_by_rank", "_most", "_number")

    def __init__(self, classes: int, most: int) -> None:
        self._by_rank: list[deque[WaitingCaller[Slot]]] = [deque() for _ in range(classes)]
        self._most, self._number = most, 0

    def __len__(self) -> int:
        return self._number

    def clear(self) -> None:
        for line in self._by_rank:
            line.clear()
        self._number = 0

    def add(self, caller: WaitingCaller[Slot]) -> WaitingCaller[Slot] | None:
        """Put a caller in line. Returns who had to give way: an older or lower one, or the caller itself."""
        gives_way = None
        if self._number >= self._most:
            line = next((line for line in self._by_rank[: caller.rank + 1] if line), None)
            if line is None:
                return caller
            gives_way = line.popleft()
            self._number -= 1
        self._by_rank[caller.rank].append(caller)
        self._number += 1
        return gives_way

    def remove(self, caller: WaitingCaller[Slot]) -> None:
        """Take a caller out of the line, if it is still there."""
        try:
            self._by_rank[caller.rank].remove(caller)
        except ValueError:
            return  # it gave way, or got a slot
        self._number -= 1

    def newest_first(self) -> Iterator[WaitingCaller[Slot]]:
        """The callers in the order in which they get slots. The line must not change meanwhile."""
        for line in reversed(self._by_rank):
            yield from reversed(line)
