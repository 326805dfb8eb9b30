"""Asks for the best seats, gathered by section: one call of lua/best.lua for all who want the same one at once.

The script must be told the keys of every seat it may choose. A seated section is told whole; an area, which may have
tens of thousands of places, in windows: the call starts at the window where places were found last.
"""

import asyncio
import struct
from collections.abc import Sequence
from typing import Any, Final

from frontrow.boxoffice.adapters.claims.redis_encoding import STALE, SectionKeys, adopt, decode, lifetime_ms
from frontrow.boxoffice.adapters.claims.redis_shard import Shard
from frontrow.boxoffice.model.best_seats import SectionLayout
from frontrow.boxoffice.model.claims import BestClaim, Claimed, ClaimRefused, ClaimsLost, TakenSeat
from frontrow.core.coalescer import Coalescer

HEAD: Final = struct.Struct(">HBHIBB")  # count, worst grade, mask, lifetime_ms, where the owner mark starts, its length
RUN: Final = struct.Struct(">IIIi")
WINDOW: Final = 1_024
Answer = Claimed | ClaimRefused | bytes  # bytes: the epoch found instead of ours


class BestAsk:
    """One caller's wish in one window of one section."""

    __slots__ = ("keys", "layout", "mark", "now_us", "section", "value", "window", "wish")

    def __init__(
        self,
        section: SectionKeys,
        layout: SectionLayout,
        wish: BestClaim,
        value: bytes,
        mark: tuple[int, int],
        keys: list[bytes],
        now_us: int,
    ) -> None:
        self.section, self.layout, self.wish, self.value, self.mark = section, layout, wish, value, mark
        self.keys, self.now_us, self.window = keys, now_us, 0


class BestAsks:
    """Best-available asks to one shard."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._asks: Coalescer[BestAsk, Answer] = Coalescer(self._send, max_batch=256, name="best seats")
        self._start: dict[SectionKeys, int] = {}

    async def ask(self, ask: BestAsk) -> Claimed | ClaimRefused:
        """Try window after window, each at most once, beginning where places were found last."""
        windows = -(-ask.section.size // WINDOW) if ask.layout.is_area else 1
        start = self._start.get(ask.section, 0)
        taken: list[TakenSeat] = []
        for turn in range(windows):
            ask.window = (start + turn) % windows
            answer = await self._answer(ask)
            if isinstance(answer, Claimed):
                self._start[ask.section] = ask.window
                return answer
            taken += answer.taken
        return ClaimRefused(tuple(taken))

    async def _answer(self, ask: BestAsk) -> Claimed | ClaimRefused:
        answer = await self._asks.ask(ask)
        if isinstance(answer, bytes):
            adopt(ask.section, answer)
            answer = await self._asks.ask(ask)
            if isinstance(answer, bytes):
                raise ClaimsLost(ask.wish.event_id)
        return answer

    async def _send(self, asks: Sequence[BestAsk]) -> Sequence[Answer | BaseException]:
        places: dict[tuple[SectionKeys, int], list[int]] = {}
        for place, ask in enumerate(asks):
            places.setdefault((ask.section, ask.window), []).append(place)
        calls = [self._call([asks[place] for place in own]) for own in places.values()]
        answers: list[Answer | BaseException] = [b""] * len(asks)
        for own, told in zip(places.values(), await asyncio.gather(*calls, return_exceptions=True), strict=True):
            for position, place in enumerate(own):
                answers[place] = told if isinstance(told, BaseException) else told[position]
        return answers

    async def _call(self, asks: list[BestAsk]) -> list[Answer]:
        one = asks[0]
        first, size, runs = _window(one)
        masks: dict[bytes, int] = {}
        heads: list[bytes] = []
        for ask in asks:
            mask = masks.setdefault(ask.wish.mask[first : first + size], len(masks) + 1)
            life_ms = lifetime_ms(ask.wish.expires_at_us, ask.now_us)
            heads.append(HEAD.pack(ask.wish.count, ask.wish.worst, mask, life_ms, *ask.mark))
        now_us = max(ask.now_us for ask in asks)
        low = one.section.first + first
        await self._shard.recognised()
        args: list[Any] = [b"%016d" % now_us, self._shard.epoch_text(one.section), int(one.layout.is_area), runs]
        args += [b"".join(heads), len(masks), *masks, *(ask.value for ask in asks)]
        told = await self._shard.run("best", [one.section.epoch_key, *one.keys[low : low + size]], args)
        taken = _taken(low, told[len(asks)]) if len(told) > len(asks) else ()
        return [_read(low, answer, taken) for answer in told[: len(asks)]]

    async def aclose(self) -> None:
        await self._asks.aclose()


def _window(ask: BestAsk) -> tuple[int, int, bytes]:
    """The first offset, the number of seats and the packed runs of what the ask may choose from."""
    if not ask.layout.is_area:
        return 0, ask.section.size, b"".join(RUN.pack(*run) for run in ask.layout.runs)
    first = ask.window * WINDOW
    size = min(WINDOW, ask.section.size - first)
    return first, size, RUN.pack(0, size, 0, 0)


def _read(low: int, answer: Any, taken: tuple[TakenSeat, ...]) -> Answer:
    if answer == 0:
        return ClaimRefused(taken)
    if answer.startswith(STALE):
        return bytes(answer)
    return Claimed(tuple(low + int(offset) for offset in answer.split(b",")))


def _taken(low: int, lines: bytes) -> tuple[TakenSeat, ...]:
    pairs = (line.partition(b":") for line in lines.split(b"\n") if line)
    return tuple(decode(low + int(offset), value) for offset, _, value in pairs)
