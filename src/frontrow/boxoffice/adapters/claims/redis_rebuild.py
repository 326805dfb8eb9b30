"""Fills the sections of an event in Redis from the ledger under a new epoch, and checks whether that is needed.

Epochs are times in microseconds: they grow, and the age of an epoch shows whether a rebuild was left half done by a
dead process. Every section refuses from `begin` until its `finish`. A later `begin` overtakes an earlier rebuild at its
next step.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from frontrow.boxoffice.adapters.claims.redis_encoding import (
    EventKeys,
    SectionKeys,
    encode_claim,
    epoch_number,
    lifetime_ms,
)
from frontrow.boxoffice.adapters.claims.redis_shard import Shard
from frontrow.boxoffice.holds.model.claims import TakenSeat
from frontrow.core.redis_url import call

FRESH_US = 2_000_000  # a rebuild that began within this time is still running
STEP_SEATS = 2_000  # per script call
MAX_PARALLEL_STEPS = 16


async def read_epochs(shard: Shard, sections: Sequence[SectionKeys]) -> list[bytes | None]:
    """The values of the sections' epoch keys."""
    if shard.cluster:
        keys = [section.epoch_key for section in sections]
        return list(await asyncio.gather(*(shard.ask(functools.partial(shard.client.get, key)) for key in keys)))
    return list(await shard.ask(lambda: call(shard.client, "MGET", *(section.epoch_key for section in sections))))


async def find_lost(shard: Shard, sections: Sequence[SectionKeys]) -> list[SectionKeys]:
    """Those of the sections that were never filled on this server, or are being filled."""
    if shard.cluster:
        found, identity = await read_epochs(shard, sections), await shard.read_identity()
    else:
        found, identity = await shard.read_with_identity([section.epoch_key for section in sections])
    return [
        section
        for section, text in zip(sections, found, strict=True)
        if text is None or text != f"{epoch_number(text)}:{identity}".encode()
    ]


class Rebuild:
    """One rebuild of one event: `shards` has the shard of each section."""

    def __init__(self, event: EventKeys, shards: Sequence[Shard], now_us: int) -> None:
        self.event, self.shards, self.now_us = event, shards, now_us
        self.epoch = 0
        self._parallel_steps = asyncio.Semaphore(MAX_PARALLEL_STEPS)

    async def run(self, read: Callable[[], AsyncIterator[TakenSeat]]) -> bool:
        """Run the rebuild. False: a newer one overtook it."""
        if not await self._begin():
            return False
        taken: list[list[TakenSeat]] = [[] for _ in self.event.sections]
        async for seat in read():
            taken[self.event.section_of[self.event.plan.check_index(seat.seat)]].append(seat)
        filled = await asyncio.gather(*(self._fill(section, taken[section.number]) for section in self.event.sections))
        return all(filled)

    async def _begin(self) -> bool:
        found: list[bytes | None] = []
        for shard in dict.fromkeys(self.shards):
            await shard.read_identity()
            found += await read_epochs(shard, [s for s in self.event.sections if self.shards[s.number] is shard])
        numbers = [epoch_number(text) for text in found if text is not None]
        self.epoch = max([self.now_us, *(number + 1 for number in numbers)])
        running = [epoch_number(text) for text in found if text is not None and text.startswith(b"r")]
        if any(abs(self.now_us - number) < FRESH_US and number != self.event.attempt for number in running):
            return False
        self.event.attempt = self.epoch
        begun = await asyncio.gather(*(self._step(section, "begin") for section in self.event.sections))
        return all(begun)

    async def _fill(self, section: SectionKeys, seats: list[TakenSeat]) -> bool:
        by_step: dict[int, list[Any]] = {}
        for seat in seats:
            step, position = divmod(seat.seat - section.first, STEP_SEATS)
            value = encode_claim(seat.fan, seat.placed_at_us, seat.booking_id, seat.expires_at_us, seat.kind)
            by_step.setdefault(step, []).extend((position, value, lifetime_ms(seat.expires_at_us, self.now_us)))
        for step, first in enumerate(range(section.first, section.first + section.size, STEP_SEATS)):
            keys = self.event.keys[first : min(first + STEP_SEATS, section.first + section.size)]
            if not await self._step(section, "fill", keys, by_step.get(step, [])):
                return False
        if not await self._step(section, "finish"):
            return False
        section.epoch = self.epoch
        return True

    async def _step(
        self, section: SectionKeys, step: str, keys: Sequence[bytes] = (), more: Sequence[Any] = ()
    ) -> bool:
        shard = self.shards[section.number]
        args = [self.epoch, f"{self.epoch}:{shard.identity}", step, *more]
        async with self._parallel_steps:
            reply = await shard.run("rebuild", [section.epoch_key, *keys], args)
        return int(reply) == self.epoch
