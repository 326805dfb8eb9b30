"""The store in this process' memory: a few integers per room, eight bytes per claimed position.

No method awaits, so each is atomic in its event loop. The Redis scripts do the same; one contract suite runs over both.
"""

import copy
import itertools
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from frontrow.core.clock import Clock, SystemClock
from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.errors import CodeUsed, RoomClosed, RoomOverflow, RoomRecovering
from frontrow.waitingroom.model.idle_visits import AWAY_S, PATIENCE_S
from frontrow.waitingroom.model.inflow import MAX_REPORTERS, REPORT_TTL_US, ShopReport
from frontrow.waitingroom.model.phases import change_config, change_phase
from frontrow.waitingroom.model.room_state import LaneState, RoomState, SlidePlan, VisitResult
from frontrow.waitingroom.ports import (
    EndedVisit,
    JoinCommand,
    JoinReply,
    KeptVisit,
    PlaceKey,
    Recovered,
    SlideResult,
    VisitCommand,
    VisitOp,
    VisitReply,
)

CHUNK = 1024
ENDED_S = 1  # the expiry written for a pass that was given back
KNOCKED_S = 2  # the expiry written for a place that found the shop full; its tag is the end of the knock
KNOCK_TTL_S = 30
KEY_TTL_US = 600_000_000
MAX_KEYS = 100_000


@dataclass(slots=True)
class MemoryRoom:
    """One room. Fields that change with every person are plain; the rest is in the frozen `state`."""

    state: RoomState
    issued: list[int]
    released: int = 0
    took: dict[int, int] = field(default_factory=dict)
    visits: dict[tuple[int, int, int], "array[int]"] = field(default_factory=dict)
    ends: dict[PlaceKey, int] = field(default_factory=dict)  # live visits -> when they end without a request
    due: dict[int, dict[PlaceKey, None]] = field(default_factory=dict)  # second -> visits that end then
    kept: dict[PlaceKey, tuple[int, str]] = field(default_factory=dict)  # visits kept by a hold -> until when, by which
    left: dict[PlaceKey, int] = field(default_factory=dict)  # visits whose page was closed -> when
    ended: deque[EndedVisit] = field(default_factory=deque)  # the last one has the number `ended_no`
    ended_no: int = 0
    handed: dict[str, int] = field(default_factory=dict)  # hand-overs that were exchanged -> when they expire
    knocks: dict[int, int] = field(default_factory=dict)  # second -> knocks that end then
    swept_s: int = 0
    wanted_since_s: int = 0  # since when somebody waits without a break; 0 while nobody does
    codes: set[int] = field(default_factory=set)
    keys: dict[str, tuple[int, JoinReply]] = field(default_factory=dict)
    reports: dict[str, ShopReport] = field(default_factory=dict)  # reporter -> its last one
    people: dict[str, JoinReply] = field(default_factory=dict)
    lines: dict[int, list[int]] = field(default_factory=dict)  # lane -> positions of the people in its queue, ascending

    @property
    def active(self) -> int:
        return len(self.ends)

    @property
    def waiting(self) -> int:
        return sum(max(0, n - lane.hi) for n, lane in zip(self.issued, self.state.lanes, strict=True))

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for a place in the shop. The same as `RoomState.is_wanted`."""
        return self.state.phase is Phase.OPEN and bool(self.waiting or self.knocks)


class MemoryRoomStore:
    """Implements `RoomStore`."""

    def __init__(self, clock: Clock | None = None, *, one_place_per_person: bool = False) -> None:
        self.one_place_per_person = one_place_per_person
        self._clock = clock or SystemClock()
        self._rooms: dict[str, MemoryRoom] = {}

    async def create(self, event: str, room: Recovered) -> bool:
        if event in self._rooms:
            return False
        now_us, state = self._clock(), room.state
        fresh = replace(state, active=0, kept=0, ended_no=0, took={}, leader="", leader_until_us=0, now_us=0)
        if not fresh.slid_at_us:
            fresh = replace(fresh, slid_at_us=now_us - state.config.interval_us, bucket_at_us=now_us)
        fresh_room = self._rooms[event] = MemoryRoom(
            fresh, [lane.issued for lane in state.lanes], released=state.released
        )
        fresh_room.took, fresh_room.codes, fresh_room.swept_s = dict(state.took), set(room.codes), now_us // 1_000_000
        for row in room.claims:
            self._write_entry(fresh_room, row.place, row.expires_s or ENDED_S, row.tag)
            if row.expires_s > fresh_room.swept_s:
                self._schedule_end(
                    fresh_room, row.place, self._idle_end(fresh_room, row.expires_s, 0, fresh_room.swept_s)
                )
        fresh_room.ended.extend(room.ended)
        fresh_room.ended_no = len(room.ended)
        for who in sorted(room.people, key=lambda who: who.position):
            fresh_room.people[who.person] = JoinReply(who.lane, who.position, who.epoch, who.at_us)
            fresh_room.lines.setdefault(who.lane, []).append(who.position)
        return True

    async def forget(self, event: str, epoch: int) -> None:
        if event in self._rooms and self._rooms[event].state.epoch == epoch:
            del self._rooms[event]

    async def lift(self, event: str, lanes: Sequence[LaneState]) -> None:
        room = self._room(event)
        pairs = zip(room.state.lanes, lanes, strict=True)
        lifted = (replace(a, issued=max(a.issued, b.issued), hi=max(a.hi, b.hi), lo=max(a.lo, b.lo)) for a, b in pairs)
        room.state = replace(room.state, lanes=tuple(lifted))

    async def snapshot(self, event: str) -> RoomState | None:
        room = self._rooms.get(event)
        return self._snapshot(room) if room else None

    async def unchanged_at_us(self, event: str, state: RoomState) -> int:
        now = await self.snapshot(event)
        return now.now_us if now is not None and replace(now, now_us=state.now_us) == state else 0

    async def join(
        self, event: str, commands: Sequence[JoinCommand], seen: Sequence[int] = ()
    ) -> Sequence[JoinReply | FrontrowError]:
        room, now_us = self._room(event), self._clock()
        if any(issued < last for issued, last in zip(room.issued, seen, strict=False)):
            raise RoomRecovering(f"the store lost positions of room {event!r}", retry_after_s=1)
        return [self._join(room, command, now_us) for command in commands]

    def _join(self, room: MemoryRoom, command: JoinCommand, now_us: int) -> JoinReply | FrontrowError:
        state = room.state
        earlier = self._find_earlier_reply(room, command, now_us)
        if earlier is not None:
            return JoinReply(earlier.lane, earlier.position, earlier.epoch, earlier.at_us, fresh=False)
        if state.phase is Phase.CLOSED:
            return RoomClosed("this room is closed")
        if state.config.depth_cap and room.waiting >= state.config.depth_cap:
            return RoomOverflow("too many people are waiting; try again later", retry_after_s=30)
        if command.code_id:
            if command.code_id in room.codes:
                return CodeUsed("this code was used before", param="code")
            room.codes.add(command.code_id)
        room.issued[command.lane] += 1
        reply = JoinReply(command.lane, room.issued[command.lane], state.epoch, now_us)
        if command.key:
            if len(room.keys) >= MAX_KEYS:
                room.keys.pop(next(iter(room.keys)))
            room.keys[command.key] = (now_us + KEY_TTL_US, reply)
        if command.person and (command.one_place or self.one_place_per_person):
            room.people[command.person] = reply
            room.lines.setdefault(command.lane, []).append(reply.position)
        return reply

    def _find_earlier_reply(self, room: MemoryRoom, command: JoinCommand, now_us: int) -> JoinReply | None:
        """The reply given before to the same key or person, unless that place has expired."""
        until_us, reply = room.keys.get(command.key, (0, None)) if command.key else (0, None)
        if reply is not None and now_us < until_us:
            return reply
        earlier = room.people.get(command.person) if command.person else None
        expired = earlier is not None and earlier.position <= room.state.lanes[earlier.lane].lo
        return None if expired else earlier

    async def visit(self, event: str, commands: Sequence[VisitCommand]) -> Sequence[VisitReply]:
        room = self._room(event)
        self._sweep(room)
        return [self._visit(room, command) for command in commands]

    def _visit(self, room: MemoryRoom, command: VisitCommand) -> VisitReply:
        expires_s, tag = self._read_entry(room, command.place)
        now_s = self._clock() // 1_000_000
        if command.op is VisitOp.CLAIM:
            return self._claim(room, command, expires_s, tag, now_s)
        if command.op is VisitOp.GIVE_BACK and command.place.epoch == 0:  # issued without a place: it has no capacity
            self._remember_ended(room, EndedVisit(command.place, command.until_s), now_s)
            return VisitReply(VisitResult.OK, command.until_s, room.active)
        if expires_s == ENDED_S:
            return VisitReply(VisitResult.ALREADY if command.op is VisitOp.GIVE_BACK else VisitResult.ENDED)
        if expires_s <= now_s:
            return VisitReply(VisitResult.ENDED)
        if command.op is VisitOp.GIVE_BACK:
            self._finish(room, command.place, expires_s, tag, now_s)
            return VisitReply(VisitResult.OK, expires_s, room.active)
        if command.op is VisitOp.HAND_OVER and (refused := self._hand_over(room, command, now_s)) is not None:
            return VisitReply(refused)
        return self._stay(room, command, expires_s, tag, now_s)

    @staticmethod
    def _hand_over(room: MemoryRoom, command: VisitCommand, now_s: int) -> VisitResult | None:
        """None if this hand-over is exchanged now; else why not."""
        if command.until_s <= now_s or command.ttl_s != room.state.epoch:
            return VisitResult.EXPIRED
        handed = room.handed
        while handed and handed[oldest := next(iter(handed))] <= now_s:
            del handed[oldest]
        if command.hold in handed:
            return VisitResult.ALREADY
        handed[command.hold] = command.until_s
        return None

    def _stay(self, room: MemoryRoom, command: VisitCommand, expires_s: int, tag: int, now_s: int) -> VisitReply:
        """Change the end of a live visit."""
        place, was_s = command.place, expires_s
        kept_s, hold = room.kept.get(place, (0, ""))
        result, ends_s = VisitResult.OK, room.ends[place]
        if command.op is VisitOp.KEEP and command.until_s and (command.hold == hold or command.until_s >= kept_s):
            kept_s = command.until_s
            room.kept[place] = (kept_s, command.hold)
            expires_s = max(expires_s, kept_s)
            ends_s = max(ends_s, kept_s)
        elif command.op is VisitOp.KEEP and (command.until_s or command.hold != hold or place not in room.kept):
            result = VisitResult.REPEATED  # another hold keeps the visit, or none does
        elif command.op is VisitOp.LEAVE:
            room.left[place] = now_s
            ends_s = min(ends_s, max(now_s + room.state.config.leave_s, kept_s))
        elif command.op is VisitOp.KEEP:
            del room.kept[place]
            kept_s = 0
            ends_s = self._idle_end(room, expires_s, 0, now_s)
            if place in room.left:
                ends_s = min(ends_s, now_s + room.state.config.leave_s)
        elif command.op is VisitOp.HEAR and 0 < command.until_s <= room.left.get(place, 0):
            result = VisitResult.REPEATED  # the request was made before the page was closed
        elif command.op is not VisitOp.LOOK:
            room.left.pop(place, None)
            if command.op is VisitOp.RENEW:
                expires_s = max(expires_s, min(now_s + command.ttl_s, command.until_s))
                result = VisitResult.OK if expires_s > was_s else VisitResult.REPEATED
            ends_s = self._idle_end(room, expires_s, kept_s, now_s)
        if expires_s != was_s:
            self._write_entry(room, place, expires_s, tag)
        self._schedule_end(room, place, ends_s)
        return VisitReply(result, expires_s, room.active, ends_s, kept_s)

    @staticmethod
    def _idle_end(room: MemoryRoom, expires_s: int, kept_s: int, now_s: int) -> int:
        """The end of a visit whose visitor made a request now."""
        idle_s = room.state.config.idle_s
        return max(kept_s, min(expires_s, now_s + idle_s) if idle_s else expires_s)

    def _schedule_end(self, room: MemoryRoom, place: PlaceKey, ends_s: int) -> None:
        """Schedule the end of a live or a new visit."""
        self._unschedule(room, place)
        room.ends[place] = ends_s
        room.due.setdefault(ends_s, {})[place] = None

    @staticmethod
    def _unschedule(room: MemoryRoom, place: PlaceKey) -> None:
        was_s = room.ends.pop(place, 0)
        if was_s:
            del room.due[was_s][place]
            if not room.due[was_s]:
                del room.due[was_s]

    def _finish(
        self,
        room: MemoryRoom,
        place: PlaceKey,
        expires_s: int,
        tag: int,
        now_s: int,
        *,
        timed_out: bool = False,
        idle: bool = False,
    ) -> None:
        """End a visit: free its capacity and refuse its pass from now on."""
        self._unschedule(room, place)
        room.kept.pop(place, None)
        room.left.pop(place, None)
        room.released += 1
        if expires_s > now_s:
            self._write_entry(room, place, ENDED_S, tag)
        self._remember_ended(room, EndedVisit(place, expires_s, timed_out, idle), now_s)

    @staticmethod
    def _remember_ended(room: MemoryRoom, ended: EndedVisit, now_s: int) -> None:
        if ended.expires_s > now_s:
            room.ended.append(ended)
            room.ended_no += 1

    def _claim(self, room: MemoryRoom, command: VisitCommand, expires_s: int, tag: int, now_s: int) -> VisitReply:
        state, lane = room.state, room.state.lanes[command.place.lane]
        knocking = expires_s == KNOCKED_S and tag > now_s
        if expires_s not in (0, KNOCKED_S):
            if not (command.tag and command.tag == tag and expires_s > now_s):
                return VisitReply(VisitResult.ALREADY)
            return VisitReply(VisitResult.REPEATED, expires_s, room.active, room.ends[command.place])
        if command.place.position <= lane.lo and not knocking:
            return VisitReply(VisitResult.EXPIRED)
        if command.place.position > lane.hi:
            return VisitReply(VisitResult.WAITING)
        if state.phase is Phase.QUEUE_ALL:
            return VisitReply(VisitResult.HELD)
        if knocking:
            _add(room.knocks, tag, -1)
        if command.slide_no and not expires_s:
            _add(room.took, command.slide_no, +1)
        if room.active >= state.config.capacity:
            self._write_entry(room, command.place, KNOCKED_S, now_s + KNOCK_TTL_S)
            _add(room.knocks, now_s + KNOCK_TTL_S, +1)
            return VisitReply(VisitResult.FULL, 0, room.active)
        expires_s = now_s + command.ttl_s
        self._write_entry(room, command.place, expires_s, command.tag)
        self._schedule_end(room, command.place, self._idle_end(room, expires_s, 0, now_s))
        return VisitReply(VisitResult.OK, expires_s, room.active, room.ends[command.place])

    async def ended(self, event: str, after: int, most: int) -> tuple[int, Sequence[EndedVisit]]:
        room = self._room(event)
        self._sweep(room)
        first = room.ended_no - len(room.ended)  # the number before the oldest one in the list
        skip = max(0, after - first)
        some = tuple(itertools.islice(room.ended, skip, skip + most))
        return max(first, after) + len(some), some

    async def kept(self, event: str) -> Sequence[KeptVisit]:
        return tuple(KeptVisit(place, until_s, hold) for place, (until_s, hold) in self._room(event).kept.items())

    async def take_lead(self, event: str, owner: str, ttl_us: int) -> bool:
        room, now_us = self._room(event), self._clock()
        if room.state.leader not in ("", owner) and now_us < room.state.leader_until_us:
            return False
        room.state = replace(room.state, leader=owner, leader_until_us=now_us + ttl_us)
        return True

    async def resign(self, event: str, owner: str) -> None:
        room = self._rooms.get(event)
        if room and room.state.leader == owner:
            room.state = replace(room.state, leader="", leader_until_us=0)

    async def slide(self, event: str, owner: str, plan: SlidePlan) -> SlideResult:
        room, now_us = self._room(event), self._clock()
        state = room.state
        if state.leader != owner or now_us >= state.leader_until_us:
            return SlideResult.NOT_LEADER
        if state.slide_no != plan.expected_slide_no or state.phase is not Phase.OPEN:
            return SlideResult.CHANGED
        used_us = plan.due * state.config.interval_us
        if plan.due < 1 or now_us < state.slid_at_us + used_us:
            return SlideResult.NOT_DUE
        edges = list(zip(state.lanes, plan.his, plan.los, strict=True))
        steps = zip(edges, room.issued, strict=True)
        if any(not (x.hi <= hi <= max(issued, x.hi) and x.lo <= lo <= hi) for (x, hi, lo), issued in steps):
            return SlideResult.TOO_FAR
        room.state = replace(
            state,
            lanes=tuple(replace(x, hi=hi, lo=lo) for x, hi, lo in edges),
            ring=plan.ring,
            note=plan.note,
            slide_no=state.slide_no + 1,
            slid_at_us=state.slid_at_us + used_us,
            bucket_milli=plan.bucket_milli,
            bucket_at_us=plan.bucket_at_us,
        )
        oldest = plan.ring[0].number if plan.ring else 0
        room.took = {number: count for number, count in room.took.items() if number >= oldest}
        return SlideResult.SLID

    async def put_report(self, event: str, report: ShopReport) -> bool:
        room, now_us = self._room(event), self._clock()
        held = room.reports.get(report.reporter)
        if held is not None and held.number >= report.number:
            return False
        if held is None and len(room.reports) >= MAX_REPORTERS:
            fresh = {name: one for name, one in room.reports.items() if now_us - one.at_us < REPORT_TTL_US}
            room.reports = fresh
            if len(fresh) >= MAX_REPORTERS:
                return False
        room.reports[report.reporter] = replace(report, at_us=now_us)
        return True

    async def reports(self, event: str) -> Sequence[ShopReport]:
        return tuple(self._room(event).reports.values())

    async def configure(
        self,
        event: str,
        *,
        config: RoomConfig | None = None,
        changes: Mapping[str, Any] | None = None,
        phase: Phase | None = None,
        beacon: str | None = None,
    ) -> RoomState:
        room, now_us = self._room(event), self._clock()
        room.state = self._snapshot(room)
        if changes:
            config = (config or room.state.config).changed(**changes)
        if config is not None:
            room.state = change_config(room.state, config)
            room.issued = [lane.issued for lane in room.state.lanes]
        if phase is not None and phase is not room.state.phase:
            room.state = change_phase(room.state, phase, now_us, beacon or "")
        return self._snapshot(room)

    async def rank(self, event: str, lane: int, person: str) -> int | None:
        room = self._room(event)
        held = room.people.get(person)
        if held is None or held.lane != lane:
            return None
        line, hi = room.lines[lane], room.state.lanes[lane].hi
        return max(0, bisect_left(line, held.position) - bisect_left(line, hi + 1))

    async def leave(self, event: str, lane: int, person: str) -> bool:
        room = self._room(event)
        held = room.people.get(person)
        if held is None or held.lane != lane:
            return False
        del room.people[person]
        line = room.lines[lane]
        line.pop(bisect_left(line, held.position))
        return True

    async def aclose(self) -> None:
        """Nothing to close."""

    def _room(self, event: str) -> MemoryRoom:
        room = self._rooms.get(event)
        if room is None:
            raise RoomRecovering(f"the store does not know room {event!r} (yet)", retry_after_s=1)
        return room

    def _snapshot(self, room: MemoryRoom) -> RoomState:
        self._sweep(room)
        took: Mapping[int, int] = copy.copy(room.took)
        lanes = (replace(lane, issued=issued) for lane, issued in zip(room.state.lanes, room.issued, strict=True))
        return replace(
            room.state,
            lanes=tuple(lanes),
            active=room.active,
            released=room.released,
            took=took,
            ended_no=room.ended_no,
            kept=len(room.kept),
            knocking=sum(room.knocks.values()),
            now_us=self._clock(),
        )

    def _sweep(self, room: MemoryRoom) -> None:
        """End the visits that are due, and drop ended visits whose pass has expired."""
        now_s = self._clock() // 1_000_000
        if now_s <= room.swept_s:
            return
        away, room.swept_s = now_s > room.swept_s + AWAY_S, now_s
        for second in [second for second in room.knocks if second <= now_s]:
            del room.knocks[second]
        if not room.is_wanted:
            room.wanted_since_s = 0
        elif away or not room.wanted_since_s:
            room.wanted_since_s = now_s
        for second in sorted(second for second in room.due if second <= now_s):
            for place in tuple(room.due[second]):
                self._end_or_spare(room, place, now_s, away=away)
        while room.ended and room.ended[0].expires_s <= now_s:
            room.ended.popleft()

    def _end_or_spare(self, room: MemoryRoom, place: PlaceKey, now_s: int, *, away: bool) -> None:
        """End a visit that is due. An idle one goes on while nobody has waited for `PATIENCE_S`, and every one goes on
        for so long after nobody could reach this store (`away`)."""
        expires_s, tag = self._read_entry(room, place)
        left = place in room.left
        stays_until_s = 0 if left else (room.wanted_since_s or now_s) + PATIENCE_S
        if away:
            stays_until_s = now_s + PATIENCE_S
        if min(expires_s, stays_until_s) > now_s:
            self._schedule_end(room, place, min(expires_s, stays_until_s))
        else:
            self._finish(room, place, expires_s, tag, now_s, timed_out=True, idle=not left)
            if not left:
                room.state = replace(room.state, admitted_at_idle_end=room.state.admitted)

    def _read_entry(self, room: MemoryRoom, place: PlaceKey) -> tuple[int, int]:
        chunk = room.visits.get((place.lane, place.epoch, place.position // CHUNK))
        packed = chunk[place.position % CHUNK] if chunk else 0
        return packed >> 32, packed & 0xFFFF_FFFF

    def _write_entry(self, room: MemoryRoom, place: PlaceKey, expires_s: int, tag: int) -> None:
        key = (place.lane, place.epoch, place.position // CHUNK)
        chunk = room.visits.get(key)
        if chunk is None:
            chunk = room.visits[key] = array("Q", bytes(8 * CHUNK))
        chunk[place.position % CHUNK] = expires_s << 32 | tag


def _add(counts: dict[int, int], key: int, change: int) -> None:
    """Count up or down; a count of zero is deleted."""
    counts[key] = counts.get(key, 0) + change
    if not counts[key]:
        del counts[key]
