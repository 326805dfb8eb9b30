"""The bus inside one process: a bounded log and, per group, what each reader has in hand.

A restart forgets the log. With `finish_within_s` that loses nothing: publishing returns only when every group is done
with the facts, so the relay marks them in the outbox only then, and unfinished facts are published again.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from frontrow.boxoffice.facts.model import BusFact
from frontrow.core.errors import Overloaded, Unavailable

MAX_KEPT: Final = 100_000


class _Group:
    """One group: the facts that wait for it and the number that its readers work on."""

    def __init__(self, kept: Iterable[BusFact]) -> None:
        self.line: deque[BusFact] = deque(kept)
        self.in_progress = 0
        self.new_facts = asyncio.Event()

    @property
    def unfinished(self) -> int:
        return len(self.line) + self.in_progress


class MemoryBus:
    """A bus for one process. `groups` exist from the start, so that they miss nothing that is published."""

    def __init__(
        self, groups: Sequence[str] = (), *, max_kept: int = MAX_KEPT, finish_within_s: float | None = None
    ) -> None:
        self._max_kept, self._finish_within_s = max_kept, finish_within_s
        self._log: deque[BusFact] = deque(maxlen=max_kept)
        self._groups: dict[str, _Group] = {name: _Group(()) for name in groups}
        self._finished = asyncio.Event()

    async def publish(self, facts: Sequence[BusFact]) -> None:
        for name, group in self._groups.items():
            if group.unfinished + len(facts) > self._max_kept:
                raise Overloaded(f"{name} has {group.unfinished:,} facts to work on; wait", retry_after_s=1.0)
        self._log.extend(facts)
        for group in self._groups.values():
            group.line.extend(facts)
            group.new_facts.set()
        if self._finish_within_s is not None and not await self.drained(self._finish_within_s):
            raise Unavailable("consumers in this process are slow; the facts stay in the outbox", retry_after_s=1.0)

    async def drained(self, timeout_s: float) -> bool:
        """Wait until every group has finished everything. False if that takes longer than the timeout."""
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
            self._groups[group] = _Group(self._log)
        return MemoryReader(self._groups[group], self._finished)

    async def measure_lag(self, groups: Sequence[str]) -> dict[tuple[str, str], int]:
        return {(name, "all"): self._groups[name].unfinished for name in groups if name in self._groups}

    async def aclose(self) -> None:
        self._groups.clear()


class MemoryReader:
    """A member of a group; what it has in hand when it closes goes back to the front of the line."""

    def __init__(self, group: _Group, finished: asyncio.Event) -> None:
        self._group, self._finished = group, finished
        self.is_new_group = False  # what this process forgot was never marked as published
        self._in_progress: dict[int, BusFact] = {}

    async def read(self, limit: int, wait_s: float) -> list[BusFact]:
        group = self._group
        if not group.line and wait_s > 0:
            group.new_facts.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await group.new_facts.wait()
            except TimeoutError:
                return []
        facts = [group.line.popleft() for _ in range(min(limit, len(group.line)))]
        self._in_progress.update((fact.number, fact) for fact in facts)
        group.in_progress += len(facts)
        return facts

    async def done(self, facts: Sequence[BusFact]) -> None:
        for fact in facts:
            if self._in_progress.pop(fact.number, None) is not None:
                self._group.in_progress -= 1
        if not self._group.unfinished:
            self._finished.set()

    def stop_waiting(self) -> None:
        self._group.new_facts.set()

    async def aclose(self) -> None:
        self._group.in_progress -= len(self._in_progress)
        self._group.line.extendleft(sorted(self._in_progress.values(), key=lambda fact: -fact.number))
        self._in_progress.clear()
        if self._group.line:
            self._group.new_facts.set()
