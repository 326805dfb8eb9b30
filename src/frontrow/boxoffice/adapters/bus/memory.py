"""The bus inside one process: a bounded log and, per group, what each reader has in hand.

A restart forgets it, and with `finish_within_s` that loses nothing: publishing then returns only when every group is
done with the facts, so the relay marks them in the outbox no earlier, and unfinished ones come out of it again.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from frontrow.boxoffice.model.messages import BusFact
from frontrow.core.errors import Overloaded, Unavailable

MAX_KEPT: Final = 100_000


class _Group:
    """One group: facts in line for it and facts in its readers' hands."""

    def __init__(self, kept: Iterable[BusFact]) -> None:
        self.line: deque[BusFact] = deque(kept)
        self.in_hand = 0
        self.news = asyncio.Event()

    @property
    def unfinished(self) -> int:
        return len(self.line) + self.in_hand


class MemoryBus:
    """A Bus for one process. `groups` are known from the start, so that nothing is published before they listen."""

    def __init__(
        self, groups: Sequence[str] = (), *, max_kept: int = MAX_KEPT, finish_within_s: float | None = None
    ) -> None:
        self._max_kept, self._finish_within_s = max_kept, finish_within_s
        self._kept: deque[BusFact] = deque(maxlen=max_kept)
        self._groups: dict[str, _Group] = {name: _Group(()) for name in groups}
        self._finished = asyncio.Event()

    async def publish(self, facts: Sequence[BusFact]) -> None:
        for name, group in self._groups.items():
            if group.unfinished + len(facts) > self._max_kept:
                raise Overloaded(f"{name} has {group.unfinished:,} facts to work on; wait", retry_after_s=1.0)
        self._kept.extend(facts)
        for group in self._groups.values():
            group.line.extend(facts)
            group.news.set()
        if self._finish_within_s is not None and not await self.drained(self._finish_within_s):
            raise Unavailable("consumers in this process are slow; the facts stay in the outbox", retry_after_s=1.0)

    async def drained(self, timeout_s: float) -> bool:
        """Whether every group finished everything within this time."""
        try:
            async with asyncio.timeout(timeout_s):
                while any(group.unfinished for group in self._groups.values()):  # bounded by the timeout
                    self._finished.clear()
                    await self._finished.wait()
        except TimeoutError:
            return False
        return True

    async def reader(self, group: str) -> "MemoryReader":
        if group not in self._groups:
            self._groups[group] = _Group(self._kept)
        return MemoryReader(self._groups[group], self._finished)

    async def aclose(self) -> None:
        self._groups.clear()


class MemoryReader:
    """A member of a group; what it has in hand when it closes goes back to the front of the line."""

    def __init__(self, group: _Group, finished: asyncio.Event) -> None:
        self._group, self._finished = group, finished
        self._hand: dict[int, BusFact] = {}

    async def read(self, limit: int, wait_s: float) -> list[BusFact]:
        group = self._group
        if not group.line and wait_s > 0:
            group.news.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await group.news.wait()
            except TimeoutError:
                return []
        got = [group.line.popleft() for _ in range(min(limit, len(group.line)))]
        self._hand.update((fact.number, fact) for fact in got)
        group.in_hand += len(got)
        return got

    async def done(self, facts: Sequence[BusFact]) -> None:
        for fact in facts:
            if self._hand.pop(fact.number, None) is not None:
                self._group.in_hand -= 1
        if not self._group.unfinished:
            self._finished.set()

    async def aclose(self) -> None:
        self._group.in_hand -= len(self._hand)
        self._group.line.extendleft(sorted(self._hand.values(), key=lambda fact: -fact.number))
        self._hand.clear()
        if self._group.line:
            self._group.news.set()
