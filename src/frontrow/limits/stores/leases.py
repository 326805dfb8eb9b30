"""Blocks of a hot rule's quota, taken from the shared store at once and spent in this process.

A global rule is one key that every request of every server asks for. With `lease=n` a process charges n units in one
call and then decides n requests without any. It never over-admits: what is spent was charged before, and a block ends
with its fixed window (counted from when it was asked for, so never later than the store's own window). What a process
has not spent by then is lost to everybody until the window ends: that is the price, at most `lease` per process.
"""

import asyncio
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from frontrow.core.clock import Clock
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Decision
from frontrow.limits.stores.protocol import CHECK, Answer, Ask, Line, Store

MAX_TRIES = 8  # of getting a share of blocks that others empty at the same time
MAX_BLOCKS = 10_000


@dataclass(slots=True)
class Block:
    """What is left of one key's block, and until when it may be spent."""

    left: int = 0
    until_us: int = 0
    told: Decision | None = None
    filling: threading.Lock = field(default_factory=threading.Lock)
    loops: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]" = field(
        default_factory=weakref.WeakKeyDictionary
    )

    @property
    def afilling(self) -> asyncio.Lock:
        """The running event loop's own lock: one fill at a time per loop."""
        return self.loops.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def take(self, cost: int, now_us: int) -> Decision | None:
        """Spend `cost` of the block, if it has that much. Called with the leases' lock held."""
        if self.told is None or now_us >= self.until_us or self.left < cost:
            return None
        self.left -= cost
        remaining = self.told.remaining + self.left
        return self.told._replace(remaining=remaining, reset_after_us=self.until_us - now_us)


class Taken(NamedTuple):
    """Units spent of a block, with the block's end: they go back only into the same window."""

    block: Block
    until_us: int
    told: Decision


class LeasingStore:
    """Decides leased rules from their blocks and everything else by `inner`."""

    def __init__(self, inner: Store, lines: Sequence[Line], clock: Clock) -> None:
        self._inner = inner
        self._lines = tuple(lines)
        self._clock = clock
        self._blocks: dict[tuple[int, StoreKey], Block] = {}
        self._lock = threading.Lock()
        self.tag_parts = inner.tag_parts

    def decide(self, ask: Ask) -> Answer:
        leased = self._leased(ask)
        if not leased:
            return self._inner.decide(ask)
        taken: list[Taken] = []
        for at in leased:
            block = self._block(ask.lines[at], ask.keys[at])
            for attempt in range(MAX_TRIES):
                told = self._take(block, ask.cost)
                if told is not None:
                    taken.append(told)
                    break
                with block.filling:
                    if self._has(block, ask.cost):
                        continue
                    fill = self._fill_ask(ask, at, attempt)
                    sent_at_us = self._clock()
                    refusal = self._filled(block, fill, self._inner.decide(fill), sent_at_us, ask.cost)
                if refusal is not None:
                    return self._undo(taken, ask.cost, refusal)
            else:
                return self._undo(taken, ask.cost, self._inner.decide(ask))
        rest = self._rest(ask, leased)
        return self._finish(taken, ask.cost, None if rest is None else self._inner.decide(rest))

    async def adecide(self, ask: Ask) -> Answer:
        leased = self._leased(ask)
        if not leased:
            return await self._inner.adecide(ask)
        taken: list[Taken] = []
        for at in leased:
            block = self._block(ask.lines[at], ask.keys[at])
            for attempt in range(MAX_TRIES):
                told = self._take(block, ask.cost)
                if told is not None:
                    taken.append(told)
                    break
                async with block.afilling:
                    if self._has(block, ask.cost):
                        continue
                    fill = self._fill_ask(ask, at, attempt)
                    sent_at_us = self._clock()
                    refusal = self._filled(block, fill, await self._inner.adecide(fill), sent_at_us, ask.cost)
                if refusal is not None:
                    return self._undo(taken, ask.cost, refusal)
            else:
                return self._undo(taken, ask.cost, await self._inner.adecide(ask))
        rest = self._rest(ask, leased)
        return self._finish(taken, ask.cost, None if rest is None else await self._inner.adecide(rest))

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        await self._inner.aclose()

    # -- the steps both share ------------------------------------------------------------------------------------

    def _leased(self, ask: Ask) -> list[int]:
        if ask.op != CHECK or ask.now_us is not None:
            return []
        return [at for at, line in enumerate(ask.lines) if self._lines[line].rule.lease > 1]

    def _block(self, line: int, key: StoreKey) -> Block:
        with self._lock:
            block = self._blocks.get((line, key))
            if block is None:
                if len(self._blocks) >= MAX_BLOCKS:
                    self._blocks.pop(next(iter(self._blocks)))
                block = self._blocks[(line, key)] = Block()
            return block

    def _take(self, block: Block, cost: int) -> Taken | None:
        with self._lock:
            told = block.take(cost, self._clock())
            return None if told is None else Taken(block, block.until_us, told)

    def _has(self, block: Block, cost: int) -> bool:
        return block.left >= cost and self._clock() < block.until_us

    def _fill_ask(self, ask: Ask, at: int, attempt: int) -> Ask:
        """Ask for a whole block; when that did not fit, for smaller ones down to what is needed."""
        line = self._lines[ask.lines[at]]
        size = max(ask.cost, min(line.rule.lease >> attempt, line.quota.capacity))
        return Ask((ask.lines[at],), (ask.keys[at],), size, tag=ask.tag)

    def _filled(self, block: Block, fill: Ask, answer: Answer, sent_at_us: int, cost: int) -> Answer | None:
        """Put what was charged into the block; the refusal when not even `cost` was to be had, else `None`."""
        told = answer.decision
        if told.source != "store":
            return answer  # the store is down: its policy has spoken, and blocks need a store
        if not told.allowed:
            return answer if fill.cost == cost else None
        with self._lock:
            fresh = self._clock() >= block.until_us
            block.left = fill.cost + (0 if fresh else block.left)
            block.until_us = sent_at_us + told.reset_after_us
            block.told = told
        return None

    def _rest(self, ask: Ask, leased: list[int]) -> Ask | None:
        others = [at for at in range(len(ask.lines)) if at not in leased]
        if not others:
            return None
        return ask._replace(lines=tuple(ask.lines[at] for at in others), keys=tuple(ask.keys[at] for at in others))

    def _undo(self, taken: list[Taken], cost: int, answer: Answer) -> Answer:
        with self._lock:
            for block, until_us, _ in taken:
                if block.until_us == until_us:
                    block.left += cost
        return answer

    def _finish(self, taken: list[Taken], cost: int, rest: Answer | None) -> Answer:
        if rest is not None and not rest.decision.allowed:
            return self._undo(taken, cost, rest)
        told = min((each.told for each in taken), key=lambda decision: decision.remaining)
        if rest is not None and rest.decision.remaining <= told.remaining:
            return rest
        return Answer(told._replace(delay_us=rest.decision.delay_us if rest is not None else 0))
