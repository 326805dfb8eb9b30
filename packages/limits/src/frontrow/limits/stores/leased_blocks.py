"""Leases: blocks of a hot rule's quota, charged to the shared store at once and spent in this process.

A global rule is one key that every request of every server needs. With `lease=n` a process charges n units in one call
and then decides n requests without a call. It never over-admits: units are charged before they are spent, and a block
ends with its fixed window (counted from when it was requested, so never later than the store's own window). Units that
a process has not spent by then are lost until the window ends. That is the price: at most `lease` units per process.

While the store is down there are no blocks. What is left of one is spent, and after that the policies of the rules
decide each request at its own cost.
"""

import asyncio
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from frontrow.core.clock import Clock
from frontrow.core.forks import begin_in_child, fork_safe_lock
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Decision, StoreDown
from frontrow.limits.stores.protocol import CHECK, RESET, QuotaSlot, StoreRequest, StoreResult
from frontrow.limits.stores.resilient import SharedStore

MAX_TRIES = 8  # attempts to spend from blocks that other callers empty at the same time
MAX_BLOCKS = 10_000


@dataclass(slots=True)
class Block:
    """The units left in one key's block, and until when they may be spent."""

    left: int = 0
    until_us: int = 0
    decision: Decision | None = None
    filling: threading.Lock = field(default_factory=threading.Lock)
    loops: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]" = field(
        default_factory=weakref.WeakKeyDictionary
    )

    @property
    def afilling(self) -> asyncio.Lock:
        """The running event loop's own lock: one fill at a time per loop."""
        return self.loops.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def spend(self, cost: int, now_us: int) -> Decision | None:
        """Spend `cost` of the block, if it has that much. Called with the leases' lock held."""
        if self.decision is None or now_us >= self.until_us or self.left < cost:
            return None
        self.left -= cost
        remaining = self.decision.remaining + self.left
        return self.decision._replace(remaining=remaining, reset_after_us=self.until_us - now_us)


class SpentUnits(NamedTuple):
    """Units spent from a block, with the block's end, because they can be returned only within the same window."""

    block: Block
    until_us: int
    decision: Decision


class LeasingStore:
    """Decides leased rules from their blocks and sends everything else to `inner`."""

    def __init__(self, inner: SharedStore, slots: Sequence[QuotaSlot], clock: Clock) -> None:
        self._inner = inner
        self._slots = tuple(slots)
        self._clock = clock
        self._lock = fork_safe_lock()
        begin_in_child(self._begin)
        self._begin()
        self.tag_parts = inner.tag_parts

    def _begin(self) -> None:
        """Begin without blocks. In a forked child, the parent's are the parent's to spend."""
        self._blocks: dict[tuple[int, StoreKey], Block] = {}

    def decide(self, request: StoreRequest) -> StoreResult:
        leased = self._leased_positions(request)
        if not leased:
            self._drop_blocks(request)
            return self._inner.decide(request)
        spent: list[SpentUnits] = []
        try:
            return self._spend_all(request, leased, spent)
        except StoreDown:
            self._return_spent(spent, request.cost)
            return self._inner.apply_down_policy(request)
        except BaseException:  # interrupted: nobody will use what was spent
            self._return_spent(spent, request.cost)
            raise

    def _spend_all(self, request: StoreRequest, leased: list[int], spent: list[SpentUnits]) -> StoreResult:
        """Spend from the blocks of the leased rules, then decide the others. `spent` says what must be returned."""
        for at in leased:
            block = self._find_block(request.slots[at], request.keys[at])
            for attempt in range(MAX_TRIES):
                units = self._spend(block, request.cost)
                if units is not None:
                    spent.append(units)
                    break
                with block.filling:
                    if self._has_units(block, request.cost):
                        continue
                    fill = self._block_request(request, at, attempt)
                    sent_at_us = self._clock()
                    filled = self._inner.decide_block(fill)
                    refusal = self._fill_block(block, fill, filled, sent_at_us, request.cost)
                if refusal is not None:
                    self._return_spent(spent, request.cost)
                    return refusal
            else:
                self._return_spent(spent, request.cost)
                return self._inner.decide(request)
        rest = self._without_leased(request, leased)
        return self._combine(spent, request.cost, None if rest is None else self._inner.decide(rest))

    async def adecide(self, request: StoreRequest) -> StoreResult:
        leased = self._leased_positions(request)
        if not leased:
            self._drop_blocks(request)
            return await self._inner.adecide(request)
        spent: list[SpentUnits] = []
        try:
            return await self._aspend_all(request, leased, spent)
        except StoreDown:
            self._return_spent(spent, request.cost)
            return self._inner.apply_down_policy(request)
        except BaseException:  # interrupted: nobody will use what was spent
            self._return_spent(spent, request.cost)
            raise

    async def _aspend_all(self, request: StoreRequest, leased: list[int], spent: list[SpentUnits]) -> StoreResult:
        """`_spend_all` for asyncio."""
        for at in leased:
            block = self._find_block(request.slots[at], request.keys[at])
            for attempt in range(MAX_TRIES):
                units = self._spend(block, request.cost)
                if units is not None:
                    spent.append(units)
                    break
                async with block.afilling:
                    if self._has_units(block, request.cost):
                        continue
                    fill = self._block_request(request, at, attempt)
                    sent_at_us = self._clock()
                    filled = await self._inner.adecide_block(fill)
                    refusal = self._fill_block(block, fill, filled, sent_at_us, request.cost)
                if refusal is not None:
                    self._return_spent(spent, request.cost)
                    return refusal
            else:
                self._return_spent(spent, request.cost)
                return await self._inner.adecide(request)
        rest = self._without_leased(request, leased)
        return self._combine(spent, request.cost, None if rest is None else await self._inner.adecide(rest))

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        await self._inner.aclose()

    # -- the steps both share ------------------------------------------------------------------------------------

    def _leased_positions(self, request: StoreRequest) -> list[int]:
        if request.op != CHECK or request.now_us is not None:
            return []
        return [at for at, slot in enumerate(request.slots) if self._slots[slot].rule.lease > 1]

    def _drop_blocks(self, request: StoreRequest) -> None:
        """After a reset the units of a block are counted nowhere, so they must not be spent."""
        if request.op == RESET:
            with self._lock:
                for slot, key in zip(request.slots, request.keys, strict=True):
                    self._blocks.pop((slot, key), None)

    def _find_block(self, slot: int, key: StoreKey) -> Block:
        with self._lock:
            block = self._blocks.get((slot, key))
            if block is None:
                if len(self._blocks) >= MAX_BLOCKS:
                    self._blocks.pop(next(iter(self._blocks)))
                block = self._blocks[(slot, key)] = Block()
            return block

    def _spend(self, block: Block, cost: int) -> SpentUnits | None:
        with self._lock:
            decision = block.spend(cost, self._clock())
            return None if decision is None else SpentUnits(block, block.until_us, decision)

    def _has_units(self, block: Block, cost: int) -> bool:
        return block.left >= cost and self._clock() < block.until_us

    def _block_request(self, request: StoreRequest, at: int, attempt: int) -> StoreRequest:
        """The request for a block: a whole one first, then smaller ones down to what is needed."""
        slot = self._slots[request.slots[at]]
        size = max(request.cost, min(slot.rule.lease >> attempt, slot.quota.capacity))
        return StoreRequest((request.slots[at],), (request.keys[at],), size, tag=request.tag)

    def _fill_block(
        self, block: Block, fill: StoreRequest, result: StoreResult, sent_at_us: int, cost: int
    ) -> StoreResult | None:
        """Put the charged units into the block. Returns the refusal if not even `cost` was available, else `None`."""
        decision = result.decision
        if not decision.allowed:
            return result if fill.cost == cost else None
        with self._lock:
            fresh = self._clock() >= block.until_us
            block.left = fill.cost + (0 if fresh else block.left)
            block.until_us = sent_at_us + decision.reset_after_us
            block.decision = decision
        return None

    def _without_leased(self, request: StoreRequest, leased: list[int]) -> StoreRequest | None:
        others = [at for at in range(len(request.slots)) if at not in leased]
        if not others:
            return None
        return request._replace(
            slots=tuple(request.slots[at] for at in others), keys=tuple(request.keys[at] for at in others)
        )

    def _return_spent(self, spent: list[SpentUnits], cost: int) -> None:
        """Put what was spent back into its blocks, once."""
        with self._lock:
            while spent:
                block, until_us, _ = spent.pop()
                if block.until_us == until_us:
                    block.left += cost

    def _combine(self, spent: list[SpentUnits], cost: int, rest: StoreResult | None) -> StoreResult:
        if rest is not None and not rest.decision.allowed:
            self._return_spent(spent, cost)
            return rest
        decision = min((each.decision for each in spent), key=lambda decision: decision.remaining)
        if rest is not None and rest.decision.remaining <= decision.remaining:
            return rest
        return StoreResult(decision._replace(delay_us=rest.decision.delay_us if rest is not None else 0))
