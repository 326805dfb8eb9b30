"""The claim store in Redis: a key per seat, sections spread over one or several servers (or a Cluster).

A section lives on one shard, chosen by its tag. Claims that arrive together go out as one script call per shard. A
group that spans sections is first claimed section by section as tentative, for a few seconds and shown to nobody. Then
it is made final. When a part is refused, the earlier parts are released.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from frontrow.boxoffice.adapters.claims.redis_best_seats import BestRequest, BestSeatRequests
from frontrow.boxoffice.adapters.claims.redis_encoding import (
    EventKeys,
    Op,
    SeatRequest,
    SectionKeys,
    claim_state,
    decode_claim,
    encode_claim,
    encode_time,
    epoch_number,
    lifetime_ms,
    owner_mark,
)
from frontrow.boxoffice.adapters.claims.redis_rebuild import Rebuild, find_lost
from frontrow.boxoffice.adapters.claims.redis_shard import Shard
from frontrow.boxoffice.holds.model.claims import (
    BestClaim,
    ClaimedSeats,
    ClaimKind,
    ClaimRefused,
    ClaimsLost,
    SeatClaim,
    TakenSeat,
    check_claim,
    check_name,
)
from frontrow.boxoffice.seats.model.best_seats import SectionLayout, layouts
from frontrow.boxoffice.seats.model.map_format import SeatState
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.core.errors import FrontrowError, NotFound
from frontrow.core.redis_url import call
from frontrow.shared.coalescer import ResultSlot, move_result

TENTATIVE_US = 5_000_000  # how long the seats of a half-claimed group stay blocked when its process dies
READ_CHUNK = 1_000  # seats per read
MAX_PUT = 256  # seats of one booking per request
Part = tuple[SectionKeys, list[int]]  # some seats of one section


class RedisClaims:
    """SeatClaims in Redis. `urls`: one server, several (sections are spread over them), or one Cluster or Sentinel."""

    def __init__(
        self, urls: str | Sequence[str], *, timeout_s: float = 1.0, max_batch: int = 256, max_waiting: int = 100_000
    ) -> None:
        all_urls = [urls] if isinstance(urls, str) else list(urls)
        self._shards = [Shard(u, timeout_s=timeout_s, max_batch=max_batch, max_waiting=max_waiting) for u in all_urls]
        self._best_requests = [BestSeatRequests(shard) for shard in self._shards]
        self._events: dict[str, EventKeys] = {}
        self._layouts: dict[str, tuple[SectionLayout, ...]] = {}

    def learn(self, event_id: str, plan: Plan) -> None:
        current = self._events.get(event_id)
        if current is None or current.plan != plan:
            self._events[event_id] = EventKeys(event_id, plan)
            self._layouts[event_id] = layouts(plan)

    def forget(self, event_id: str) -> None:
        self._events.pop(event_id, None)
        self._layouts.pop(event_id, None)

    def _event(self, event_id: str) -> EventKeys:
        try:
            return self._events[event_id]
        except KeyError:
            raise NotFound(f"there is no event {event_id} here", event=event_id) from None

    def _shard_number(self, section: SectionKeys) -> int:
        return section.spread % len(self._shards)

    async def claim(self, claim: SeatClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        event, parts = self._parts(claim.event_id, claim.seats)
        if len(parts) == 1:
            return await self._submit(event, Op.CLAIM, claim, claim.seats, now_us)
        return await self._claim_group(event, parts, claim, now_us)

    def claim_into(self, claim: SeatClaim, now_us: int, slot: ResultSlot) -> None:
        seats = claim.seats
        if len(seats) == 1:
            event = self._event(claim.event_id)
            event.plan.check_index(seats[0])
            self._submit_into(event, Op.CLAIM, claim, seats, now_us, slot)
            return
        event, parts = self._parts(claim.event_id, seats)
        if len(parts) == 1:
            self._submit_into(event, Op.CLAIM, claim, seats, now_us, slot)
            return
        group = asyncio.ensure_future(self._claim_group(event, parts, claim, now_us))
        group.add_done_callback(lambda task: move_result(task, slot))

    async def _claim_group(
        self, event: EventKeys, parts: list[tuple[int, ...]], claim: SeatClaim, now_us: int
    ) -> ClaimedSeats | ClaimRefused:
        ends_us = min(claim.expires_at_us, now_us + TENTATIVE_US)
        sent: list[tuple[int, ...]] = []
        try:
            for op, until_us in ((Op.CLAIM, ends_us), (Op.EXTEND, claim.expires_at_us)):
                kind = ClaimKind.TENTATIVE if op is Op.CLAIM else ClaimKind.HELD
                for part in parts:
                    sent.append(part)
                    result = await self._submit(event, op, claim, part, now_us, kind=kind, expires_at_us=until_us)
                    if isinstance(result, ClaimRefused):
                        await self._undo(claim, sent)
                        return result
        except BaseException:
            await self._undo(claim, sent)
            raise
        return ClaimedSeats(claim.seats)

    async def _undo(self, claim: SeatClaim, parts: list[tuple[int, ...]]) -> None:
        for part in dict.fromkeys(parts):
            with contextlib.suppress(FrontrowError):  # a tentative claim that cannot be released expires
                await self.release(claim.event_id, part, claim.booking_id)

    def _parts(self, event_id: str, seats: Sequence[int]) -> tuple[EventKeys, list[tuple[int, ...]]]:
        """The seats grouped by section, in plan order."""
        event = self._event(event_id)
        for seat in seats:
            event.plan.check_index(seat)
        section_of = event.section_of
        if len(seats) == 1:
            return event, [(seats[0],)]
        parts: dict[int, list[int]] = {}
        for seat in sorted(seats):
            parts.setdefault(section_of[seat], []).append(seat)
        return event, [tuple(part) for part in parts.values()]

    def _submit(
        self,
        event: EventKeys,
        op: Op,
        claim: SeatClaim,
        seats: tuple[int, ...],
        now_us: int,
        *,
        kind: ClaimKind = ClaimKind.HELD,
        expires_at_us: int = 0,
    ) -> "asyncio.Future[ClaimedSeats | ClaimRefused]":
        """Queue the part of a claim that lies in one section."""
        future: asyncio.Future[ClaimedSeats | ClaimRefused] = asyncio.get_running_loop().create_future()
        self._submit_into(event, op, claim, seats, now_us, future, kind=kind, expires_at_us=expires_at_us)
        return future

    def _submit_into(
        self,
        event: EventKeys,
        op: Op,
        claim: SeatClaim,
        seats: tuple[int, ...],
        now_us: int,
        slot: ResultSlot,
        *,
        kind: ClaimKind = ClaimKind.HELD,
        expires_at_us: int = 0,
    ) -> None:
        check_claim(claim)
        fan, booking_id, ends_us = claim.fan, claim.booking_id, expires_at_us or claim.expires_at_us
        section = event.sections[event.section_of[seats[0]]]
        value = encode_claim(fan, now_us, booking_id, ends_us, kind)
        keys = [event.keys[seats[0]]] if len(seats) == 1 else [event.keys[seat] for seat in seats]
        mark_from, mark_length = owner_mark(fan, booking_id)
        life_ms = lifetime_ms(ends_us, now_us)
        request = SeatRequest(op, section, keys, value, mark_from, mark_length, now_us, life_ms, seats)
        self._shards[section.spread % len(self._shards)].requests.submit_into(request, slot)

    async def claim_best(self, claim: BestClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        event = self._event(claim.event_id)
        check_name(claim.fan, "fan")
        check_name(claim.booking_id, "booking")
        section = event.sections[claim.section]
        value = encode_claim(claim.fan, now_us, claim.booking_id, claim.expires_at_us, ClaimKind.HELD)
        request = BestRequest(
            section,
            self._layouts[claim.event_id][claim.section],
            claim,
            value,
            owner_mark(claim.fan, claim.booking_id),
            event.keys,
            now_us,
        )
        return await self._best_requests[self._shard_number(section)].claim(request)

    async def release(self, event_id: str, seats: Sequence[int], booking_id: str) -> int:
        event, parts = self._parts(event_id, seats) if seats else (self._event(event_id), [])
        mark = f"|{booking_id}|".encode()
        freed = 0
        for part in parts:
            section = event.sections[event.section_of[part[0]]]
            request = SeatRequest(Op.RELEASE, section, [event.keys[seat] for seat in part], mark, 1, len(mark))
            reply = await self._shards[self._shard_number(section)].requests.ask(request)
            freed += int(reply)
        return freed

    async def put(self, event_id: str, seats: Sequence[TakenSeat], now_us: int) -> None:
        event = self._event(event_id)
        requests: list[SeatRequest] = []
        for seat in seats:
            section = event.sections[event.section_of[event.plan.check_index(seat.seat)]]
            value = encode_claim(seat.fan, seat.placed_at_us, seat.booking_id, seat.expires_at_us, seat.kind)
            key = event.keys[seat.seat]
            last = requests[-1] if requests else None
            if last and last.value == value and last.section is section and len(last.keys) < MAX_PUT:
                last.keys.append(key)  # the seats of a booking together
                continue
            life_ms = lifetime_ms(seat.expires_at_us, now_us)
            requests.append(SeatRequest(Op.PUT, section, [key], value, 1, 0, now_us=now_us, lifetime_ms=life_ms))
        put = [self._shards[self._shard_number(one.section)].requests.submit(one) for one in requests]
        await (put[0] if len(put) == 1 else asyncio.gather(*put))

    async def states(self, event_id: str, now_us: int, seats: Sequence[int] | None = None) -> dict[int, TakenSeat]:
        event = self._event(event_id)
        found: dict[int, TakenSeat] = {}
        for shard, parts in self._split_reads(event, seats):
            for seat, value in await self._read_values(event, shard, parts):
                if value is not None:
                    taken = decode_claim(seat, value)
                    if taken.kind is not ClaimKind.TENTATIVE and taken.live(now_us):
                        found[seat] = taken
        return found if len(self._shards) == 1 else dict(sorted(found.items()))  # one server answers in their order

    async def map_states(self, event_id: str, now_us: int, seats: Sequence[int] | None = None) -> dict[int, SeatState]:
        event = self._event(event_id)
        now = encode_time(now_us)
        found: dict[int, SeatState] = {}
        for shard, parts in self._split_reads(event, seats):
            for seat, value in await self._read_values(event, shard, parts):
                if value is not None:
                    state = claim_state(value, now)
                    if state:
                        found[seat] = state
        return found

    def _split_reads(self, event: EventKeys, wanted: Sequence[int] | None) -> Iterator[tuple[Shard, list[Part]]]:
        """The seats (None: all) in groups of at most READ_CHUNK per call; sections on one server share a call."""
        by_section: dict[int, list[int]] = {}
        for seat in range(event.plan.size) if wanted is None else wanted:
            by_section.setdefault(event.section_of[seat], []).append(seat)
        waiting: dict[Shard, list[Part]] = {}
        seats: dict[Shard, int] = {}  # how many wait
        for number, own in by_section.items():
            section = event.sections[number]
            shard = self._shards[self._shard_number(section)]
            for first in range(0, len(own), READ_CHUNK):
                part = own[first : first + READ_CHUNK]
                if shard in waiting and (shard.cluster or seats[shard] + len(part) > READ_CHUNK):
                    yield shard, waiting.pop(shard)
                    seats[shard] = 0
                waiting.setdefault(shard, []).append((section, part))
                seats[shard] = seats.get(shard, 0) + len(part)
        yield from waiting.items()

    async def _read_values(
        self, event: EventKeys, shard: Shard, parts: list[Part]
    ) -> Iterator[tuple[int, bytes | None]]:
        """The stored value of each seat."""
        seats = [seat for _, own in parts for seat in own]
        values = await _read_keys(shard, [s.epoch_key for s, _ in parts] + [event.keys[seat] for seat in seats])
        identity = await shard.get_identity()
        for (section, _), epoch in zip(parts, values[: len(parts)], strict=True):
            if epoch is None or epoch.decode() != f"{epoch_number(epoch)}:{identity}":
                raise ClaimsLost(section.event_id)
        return zip(seats, values[len(parts) :], strict=True)

    async def lost(self, event_id: str) -> bool:
        return bool(await self.lost_among((event_id,)))

    async def lost_among(self, event_ids: Sequence[str]) -> set[str]:
        sections = [section for event_id in event_ids for section in self._event(event_id).sections]
        lost: set[str] = set()
        for number, shard in enumerate(self._shards):
            mine = [section for section in sections if self._shard_number(section) == number]
            if mine:
                lost |= {section.event_id for section in await find_lost(shard, mine)}
        return lost

    async def rebuild(self, event_id: str, read: Callable[[], AsyncIterator[TakenSeat]], now_us: int) -> bool:
        event = self._event(event_id)
        shards = [self._shards[self._shard_number(section)] for section in event.sections]
        return await Rebuild(event, shards, now_us).run(read)

    async def aclose(self) -> None:
        for requests in self._best_requests:
            await requests.aclose()
        for shard in self._shards:
            await shard.aclose()


async def _read_keys(shard: Shard, keys: list[bytes]) -> list[bytes | None]:
    return list(await shard.ask(lambda: call(shard.client, "MGET", *keys)))
