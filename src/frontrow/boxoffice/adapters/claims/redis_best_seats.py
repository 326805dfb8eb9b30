"""Requests for the best seats, grouped by section: one call of lua/best.lua serves all that arrive together.

The script needs the keys of every seat it may choose. It gets a seated section whole. An area may have tens of
thousands of places, so it gets one window of them at a time, beginning with the window where places were found last.
"""

import asyncio
import struct
from collections.abc import Sequence
from typing import Any, Final

from frontrow.boxoffice.adapters.claims.redis_encoding import STALE, SectionKeys, adopt_epoch, decode_claim, lifetime_ms
from frontrow.boxoffice.adapters.claims.redis_shard import Shard
from frontrow.boxoffice.holds.model.claims import BestClaim, ClaimedSeats, ClaimRefused, ClaimsLost, TakenSeat
from frontrow.boxoffice.seats.model.best_seats import SectionLayout
from frontrow.shared.coalescer import Coalescer

BEST_HEAD: Final = struct.Struct(">HBHIBB")  # count, worst grade, mask, lifetime_ms, start and length of the owner mark
RUN: Final = struct.Struct(">IIIi")
WINDOW: Final = 1_024  # places of an area per call
BestReply = ClaimedSeats | ClaimRefused | bytes  # bytes: the store has this other epoch


class BestRequest:
    """One caller's wish for seats in one window of one section."""

    __slots__ = ("claim", "keys", "layout", "mark", "now_us", "section", "value", "window")

    def __init__(
        self,
        section: SectionKeys,
        layout: SectionLayout,
        claim: BestClaim,
        value: bytes,
        mark: tuple[int, int],
        keys: list[bytes],
        now_us: int,
    ) -> None:
        self.section, self.layout, self.claim, self.value, self.mark = section, layout, claim, value, mark
        self.keys, self.now_us, self.window = keys, now_us, 0


class BestSeatRequests:
    """The requests for the best seats on one shard."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._requests: Coalescer[BestRequest, BestReply] = Coalescer(self._send, max_batch=256, name="best seats")
        self._start: dict[SectionKeys, int] = {}

    async def claim(self, request: BestRequest) -> ClaimedSeats | ClaimRefused:
        """Try each window at most once, beginning where places were found last."""
        windows = -(-request.section.size // WINDOW) if request.layout.is_area else 1
        start = self._start.get(request.section, 0)
        taken: list[TakenSeat] = []
        for turn in range(windows):
            request.window = (start + turn) % windows
            result = await self._claim_in_window(request)
            if isinstance(result, ClaimedSeats):
                self._start[request.section] = request.window
                return result
            taken += result.taken
        return ClaimRefused(tuple(taken))

    async def _claim_in_window(self, request: BestRequest) -> ClaimedSeats | ClaimRefused:
        reply = await self._requests.ask(request)
        if isinstance(reply, bytes):
            adopt_epoch(request.section, reply)
            reply = await self._requests.ask(request)
            if isinstance(reply, bytes):
                raise ClaimsLost(request.claim.event_id)
        return reply

    async def _send(self, requests: Sequence[BestRequest]) -> Sequence[BestReply | BaseException]:
        by_window: dict[tuple[SectionKeys, int], list[int]] = {}
        for at, request in enumerate(requests):
            by_window.setdefault((request.section, request.window), []).append(at)
        calls = [self._call([requests[at] for at in group]) for group in by_window.values()]
        replies: list[BestReply | BaseException] = [b""] * len(requests)
        results = await asyncio.gather(*calls, return_exceptions=True)
        for group, result in zip(by_window.values(), results, strict=True):
            for position, at in enumerate(group):
                replies[at] = result if isinstance(result, BaseException) else result[position]
        return replies

    async def _call(self, requests: list[BestRequest]) -> list[BestReply]:
        one = requests[0]  # all are for the same section and window
        first, size, runs = _window_of(one)
        masks: dict[bytes, int] = {}
        heads: list[bytes] = []
        for request in requests:
            claim = request.claim
            mask = masks.setdefault(claim.mask[first : first + size], len(masks) + 1)
            life_ms = lifetime_ms(claim.expires_at_us, request.now_us)
            heads.append(BEST_HEAD.pack(claim.count, claim.worst, mask, life_ms, *request.mark))
        now_us = max(request.now_us for request in requests)
        low = one.section.first + first
        await self._shard.get_identity()
        args: list[Any] = [b"%016d" % now_us, self._shard.epoch_text(one.section), int(one.layout.is_area), runs]
        args += [b"".join(heads), len(masks), *masks, *(request.value for request in requests)]
        replies = await self._shard.run("best", [one.section.epoch_key, *one.keys[low : low + size]], args)
        taken = _read_taken(low, replies[len(requests)]) if len(replies) > len(requests) else ()
        return [_read_reply(low, reply, taken) for reply in replies[: len(requests)]]

    async def aclose(self) -> None:
        await self._requests.aclose()


def _window_of(request: BestRequest) -> tuple[int, int, bytes]:
    """The first offset, the number of seats and the packed runs of the seats that may be chosen."""
    if not request.layout.is_area:
        return 0, request.section.size, b"".join(RUN.pack(*run) for run in request.layout.runs)
    first = request.window * WINDOW
    size = min(WINDOW, request.section.size - first)
    return first, size, RUN.pack(0, size, 0, 0)


def _read_reply(low: int, reply: Any, taken: tuple[TakenSeat, ...]) -> BestReply:
    if reply == 0:
        return ClaimRefused(taken)
    if reply.startswith(STALE):
        return bytes(reply)
    return ClaimedSeats(tuple(low + int(offset) for offset in reply.split(b",")))


def _read_taken(low: int, lines: bytes) -> tuple[TakenSeat, ...]:
    pairs = (line.partition(b":") for line in lines.split(b"\n") if line)
    return tuple(decode_claim(low + int(offset), value) for offset, _, value in pairs)
