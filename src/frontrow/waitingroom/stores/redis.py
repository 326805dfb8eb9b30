"""The store in Redis or Valkey: alone, Sentinel or Cluster. Every method is one script and one round trip.

All keys of a room have the hash tag `{room:<event>}`, so they share a slot and a room's scripts are atomic. Different
rooms (and the shards of one, see `sharding`) spread over slots and servers. Keys: the room's hash, `took` (at most 64
fields), `visits`, `kept` and `left` (at most one entry per person in the shop), `ended` (visits that ended before their
pass expires), `handed` (hand-overs exchanged in the last minute), `reports` (of at most 64 servers of the shop),
`codes`, idempotency keys that expire, and chunks of 8 bytes per admitted position. Nothing is stored for people who
wait. `ends` counts passes that were claimed under an older version.
"""

import asyncio
import functools
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import resources
from typing import Any

import redis.exceptions

from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.core.redis_url import call, call_many, connect, disconnect, is_cluster
from frontrow.shared.coalescer import Coalescer
from frontrow.shared.redis_breaker import RedisBreaker
from frontrow.waitingroom.model.config import MAX_LANES, Phase, RoomConfig
from frontrow.waitingroom.model.errors import CodeUsed, RoomClosed, RoomOverflow, RoomRecovering
from frontrow.waitingroom.model.idle_visits import AWAY_S, PATIENCE_S
from frontrow.waitingroom.model.inflow import MAX_REPORTERS, REPORT_TTL_US, ShopReport
from frontrow.waitingroom.model.phases import change_config, change_phase
from frontrow.waitingroom.model.room_record import config_fields, fields_of, ring_text, state_of
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
    VisitReply,
)
from frontrow.waitingroom.stores.memory import CHUNK, ENDED_S, KEY_TTL_US, KNOCK_TTL_S

MAX_CONFIGURE_TRIES = 20
PEOPLE_PER_CALL = 1_000
SNAPSHOTS_PER_CALL = 64
MAX_LAST_READ = 10_000  # rooms
SWEPT = b"swept"


@functools.cache
def script(name: str) -> tuple[str, str]:
    """A script with its common beginning and the numbers of the model, and its SHA-1."""
    folder = resources.files("frontrow.waitingroom.stores") / "lua"
    numbers = f"local PATIENCE_S, AWAY_S = {PATIENCE_S}, {AWAY_S}\n"
    text = numbers + (folder / "common.lua").read_text("utf-8") + (folder / f"{name}.lua").read_text("utf-8")
    return text, hashlib.sha1(text.encode()).hexdigest()  # noqa: S324  # Redis names scripts by SHA-1


class RedisRoomStore:
    """Implements `RoomStore`."""

    def __init__(
        self, url: str, *, timeout_s: float = 1.0, clock: Clock | None = None, one_place_per_person: bool = False
    ) -> None:
        """`clock` replaces the server's clock: for tests only."""
        self.one_place_per_person = one_place_per_person
        self._redis: Any = connect(url, timeout_s=timeout_s)
        self._breaker = None if is_cluster(url) else RedisBreaker("the waiting room")
        self._clock = clock
        self._snapshots: Coalescer[str, Any] = Coalescer(
            self._read_many, max_batch=SNAPSHOTS_PER_CALL, max_in_flight=8, name="room snapshots"
        )
        self._last_read: dict[str, tuple[Any, RoomState]] = {}  # room -> the last reply and the state made from it
        self.calls = 0

    async def create(self, event: str, room: Recovered) -> bool:
        fields = [part for pair in fields_of(room.state).items() for part in pair]
        took = [part for pair in room.state.took.items() for part in pair]
        chunks = [_chunk(event, row.place) for row in room.claims]
        entries: list[Any] = []
        for row in room.claims:
            entries += [_member(row.place), _offset(row.place), row.expires_s or ENDED_S, row.tag]
        ended = [f"{_member(one.place)}:{one.expires_s}:{int(one.timed_out) + int(one.idle)}" for one in room.ended]
        parts = ("", "took", "codes", "ends", "knocks", "visits", "kept", "ended", "left")
        keys = [room_key(event, part) for part in parts] + chunks
        args = [len(fields), *fields, len(took), *took, len(room.codes), *room.codes, len(ended), *ended, *entries]
        created = bool(await self._run("create", keys, args))
        for start in range(0, len(room.people), PEOPLE_PER_CALL):  # safe to repeat, so not part of the script
            for lane in range(MAX_LANES):
                people = [who for who in room.people[start : start + PEOPLE_PER_CALL] if who.lane == lane]
                scores = [part for who in people for part in (who.position, who.person)]
                if scores:
                    await self._send("ZADD", roster_key(event, lane), "NX", *scores)
        return created

    async def forget(self, event: str, epoch: int) -> None:
        await self._run("forget", [room_key(event)], [epoch])

    async def lift(self, event: str, lanes: Sequence[LaneState]) -> None:
        await self._run("lift", [room_key(event)], [x for lane in lanes for x in (lane.issued, lane.hi, lane.lo)])

    async def snapshot(self, event: str) -> RoomState | None:
        reply = await self._snapshots.ask(event)
        read = _snapshot_of(reply)
        if read is None:
            return None
        if len(self._last_read) >= MAX_LAST_READ:
            self._last_read.clear()
        self._last_read[event] = _without_time(reply), read[0]
        return read[0]

    async def unchanged_at_us(self, event: str, state: RoomState) -> int:
        reply = await self._snapshots.ask(event)
        fields, read = self._last_read.get(event, (None, None))
        return int(reply[0]) if reply is not None and read is state and _without_time(reply) == fields else 0

    async def join(
        self, event: str, commands: Sequence[JoinCommand], seen: Sequence[int] = ()
    ) -> Sequence[JoinReply | FrontrowError]:
        are_alike = list(commands).count(commands[0]) == len(commands)  # usually, and then one check is enough
        alike = commands[:1] if are_alike else commands
        plain = all(
            not (command.key or command.code_id or (command.person and self._one_place(command))) for command in alike
        )
        floor = [*seen, *[0] * MAX_LANES][:MAX_LANES]
        return await (self._join_counted(event, commands, floor) if plain else self._join_each(event, commands, floor))

    async def _join_counted(
        self, event: str, commands: Sequence[JoinCommand], floor: list[int]
    ) -> Sequence[JoinReply | FrontrowError]:
        lanes = [command.lane for command in commands]
        people = [lanes.count(lane) for lane in range(1 + max(lanes))]
        try:
            reply = await self._run("count_join", [room_key(event)], [*floor, *people])
        except RoomClosed as error:
            return [error] * len(commands)
        epoch, at_us = int(reply[0]), int(reply[1])
        nexts = [last - count + 1 for last, count in zip(reply[2::2], reply[3::2], strict=True)]
        lasts = reply[2::2]
        if len(people) == 1 and reply[3] == people[0]:
            return [JoinReply(0, position, epoch, at_us) for position in range(nexts[0], lasts[0] + 1)]
        answers: list[JoinReply | FrontrowError] = []
        for lane in lanes:
            position = nexts[lane]
            if position > lasts[lane]:
                answers.append(RoomOverflow("too many people are waiting; try again later", retry_after_s=30))
                continue
            nexts[lane] += 1
            answers.append(JoinReply(lane, position, epoch, at_us))
        return answers

    async def _join_each(
        self, event: str, commands: Sequence[JoinCommand], floor: list[int]
    ) -> Sequence[JoinReply | FrontrowError]:
        own = [room_key(event, f"k:{command.key}") if command.key else room_key(event) for command in commands]
        keys = [
            room_key(event),
            room_key(event, "codes"),
            *(roster_key(event, lane) for lane in range(MAX_LANES)),
            *own,
        ]
        args: list[Any] = [*floor, KEY_TTL_US // 1000, int(any(map(self._one_place, commands)))]
        for command in commands:
            args += [command.lane, command.person, command.code_id]
        return [_join_answer(reply) for reply in await self._run("join", keys, args)]

    def _one_place(self, command: JoinCommand) -> bool:
        return command.one_place or self.one_place_per_person

    async def visit(self, event: str, commands: Sequence[VisitCommand]) -> Sequence[VisitReply]:
        parts = ("", "ends", "took", "knocks", "visits", "kept", "ended", "left", "handed")
        keys = [room_key(event, part) for part in parts]
        keys += [_chunk(event, command.place) for command in commands]
        args: list[Any] = [KNOCK_TTL_S]
        for command in commands:
            place = command.place
            args += [command.op.value, place.lane, place.epoch, place.position, _offset(place)]
            args += [command.ttl_s, command.until_s, command.tag, command.slide_no, command.hold]
        replies = await self._run("visit", keys, args)
        return [VisitReply(VisitResult(word.decode()), *map(int, numbers)) for word, *numbers in replies]

    async def ended(self, event: str, after: int, most: int) -> tuple[int, Sequence[EndedVisit]]:
        keys = [room_key(event, part) for part in ("", "ends", "knocks", "visits", "kept", "ended", "left")]
        last, entries = await self._run("ended", keys, [after, most])
        return int(last), [_ended_visit(entry.decode()) for entry in entries]

    async def kept(self, event: str) -> Sequence[KeptVisit]:
        flat = [part.decode() for part in await self._run("kept", [room_key(event), room_key(event, "kept")], [])]
        return [_kept_visit(member, value) for member, value in zip(flat[::2], flat[1::2], strict=True)]

    async def take_lead(self, event: str, owner: str, ttl_us: int) -> bool:
        return bool(await self._run("leadership", [room_key(event)], [owner, ttl_us]))

    async def resign(self, event: str, owner: str) -> None:
        try:
            await self._run("leadership", [room_key(event)], [owner, 0])
        except RoomRecovering:
            return

    async def slide(self, event: str, owner: str, plan: SlidePlan) -> SlideResult:
        oldest = plan.ring[0].number if plan.ring else 0
        args = [owner, plan.expected_slide_no, plan.due, ring_text(plan.ring), oldest]
        args += [plan.bucket_milli, plan.bucket_at_us, plan.note]
        args += [edge for pair in zip(plan.his, plan.los, strict=True) for edge in pair]
        return SlideResult((await self._run("slide", [room_key(event), room_key(event, "took")], args)).decode())

    async def put_report(self, event: str, report: ShopReport) -> bool:
        figures = f"{report.p95_ms} {report.requests} {report.errors}"
        args = [report.reporter, report.number, figures, MAX_REPORTERS, REPORT_TTL_US]
        return bool(await self._run("put_report", [room_key(event), room_key(event, "reports")], args))

    async def reports(self, event: str) -> Sequence[ShopReport]:
        flat = [part.decode() for part in await self._run("reports", [room_key(event), room_key(event, "reports")], [])]
        return [
            ShopReport(name, *map(int, figures.split())) for name, figures in zip(flat[::2], flat[1::2], strict=True)
        ]

    async def configure(
        self,
        event: str,
        *,
        config: RoomConfig | None = None,
        changes: Mapping[str, Any] | None = None,
        phase: Phase | None = None,
        beacon: str | None = None,
    ) -> RoomState:
        for _ in range(MAX_CONFIGURE_TRIES):
            read = await self._read(event)
            if read is None:
                raise RoomRecovering(f"the store does not know room {event!r} (yet)", retry_after_s=1)
            state, revision = read
            wanted = (config or state.config).changed(**changes) if changes else config
            fresh = change_config(state, wanted) if wanted is not None else state
            draws = phase not in (None, state.phase) and state.phase is Phase.PREQUEUE
            if phase is not None and phase is not state.phase:
                fresh = change_phase(fresh, phase, state.now_us, beacon or "")
            if await self._replace(event, state.slide_no, revision, fresh, draws=draws):
                done = await self.snapshot(event)
                if done is not None:
                    return done
        raise Unavailable(f"room {event!r} kept changing; try again", retry_after_s=1)

    async def _replace(self, event: str, slide_no: int, revision: int, fresh: RoomState, *, draws: bool) -> bool:
        fields = config_fields(fresh.config) | {
            "phase": fresh.phase.value,
            "held_at": fresh.held_at_us,
            "ring": ring_text(fresh.ring),
            "slid_at": fresh.slid_at_us,
            "bucket_at": fresh.bucket_at_us,
            "message_no": fresh.message_no,
            "beacon": fresh.beacon,
        }
        args = [slide_no, revision, int(draws), *(part for pair in fields.items() for part in pair)]
        return bool(await self._run("configure", [room_key(event)], args))

    async def rank(self, event: str, lane: int, person: str) -> int | None:
        found = await self._run("rank", [room_key(event), roster_key(event, lane)], [lane, person])
        return None if found is None else int(found)

    async def leave(self, event: str, lane: int, person: str) -> bool:
        return int(await self._send("ZREM", roster_key(event, lane), person)) == 1

    async def aclose(self) -> None:
        await self._snapshots.aclose()
        await disconnect(self._redis)

    # -- parts ---------------------------------------------------------------------------------------------------------

    async def _read(self, event: str) -> tuple[RoomState, int] | None:
        return _snapshot_of(await self._run("snapshot", _snapshot_keys(event), []))

    async def _read_many(self, events: Sequence[str]) -> list[Any]:
        """The replies of the script. Rooms that are asked for at the same moment are read with one call; on a Cluster
        each has its own."""
        if len(events) == 1 or self._breaker is None:
            return await self._read_each(events)
        sha, now = script("snapshot")[1], self._clock() if self._clock else ""
        keys = [_snapshot_keys(event) for event in events]
        commands = [("EVALSHA", sha, len(own), *own, now) for own in keys]
        replies: list[Any] = await self._guard(lambda: call_many(self._redis, commands))
        if any(isinstance(reply, Exception) for reply in replies):  # a server that has not cached the script yet
            return await self._read_each(events)
        return replies

    async def _read_each(self, events: Sequence[str]) -> list[Any]:
        reads = [self._run("snapshot", _snapshot_keys(event), []) for event in events]
        return await asyncio.gather(*reads, return_exceptions=True)

    async def _run(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run a script by its hash; send its text if the server has not cached it."""
        text, sha = script(name)
        words = [len(keys), *keys, self._clock() if self._clock else "", *args]
        try:
            return await self._send("EVALSHA", sha, *words)
        except redis.exceptions.NoScriptError:
            return await self._send("EVAL", text, *words)

    async def _send(self, *words: Any) -> Any:
        return await self._guard(lambda: call(self._redis, *words))

    async def _guard(self, send: Callable[[], Awaitable[Any]]) -> Any:
        """The reply to `send()`. Raises RoomRecovering, RoomClosed or Unavailable."""
        self.calls += 1
        try:
            if self._breaker is None:  # a lost node of a Cluster affects only its own rooms
                return await send()
            return await self._breaker.call(send)
        except (redis.exceptions.NoScriptError, Unavailable):
            raise
        except redis.exceptions.ResponseError as error:
            if "ROOMLESS" in str(error):
                raise RoomRecovering("the store does not know this room (yet)", retry_after_s=1) from None
            if "CLOSED" in str(error):
                raise RoomClosed("this room is closed") from None
            raise Unavailable(f"the room's store refused: {error}", retry_after_s=1) from error
        except (redis.exceptions.RedisError, OSError, TimeoutError) as error:
            raise Unavailable(f"the room's store did not answer: {error}", retry_after_s=1) from error


def _snapshot_keys(event: str) -> list[str]:
    return [room_key(event, part) for part in ("", "ends", "took", "knocks", "visits", "kept", "ended", "left")]


def _snapshot_of(reply: Any) -> tuple[RoomState, int] | None:
    """The room and its revision from the reply of the script."""
    if reply is None:
        return None
    now_us, flat, took = int(reply[0]), [part.decode() for part in reply[1]], [int(part) for part in reply[2]]
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    state = state_of(fields, dict(zip(took[::2], took[1::2], strict=True)), now_us, int(reply[3]))
    return state, int(fields.get("rev", 0))


def _without_time(reply: Any) -> list[Any]:
    """The reply of the script without the times that always change: now, and the last sweep."""
    fields = list(reply[1])
    if SWEPT in fields:
        fields[fields.index(SWEPT) + 1] = b""
    return [fields, *reply[2:]]


def room_key(event: str, part: str = "") -> str:
    return f"{{room:{event}}}:{part}" if part else f"{{room:{event}}}"


def roster_key(event: str, lane: int) -> str:
    return room_key(event, f"p:{lane}")


def _chunk(event: str, place: PlaceKey) -> str:
    return room_key(event, f"v:{place.lane}:{place.epoch}:{place.position // CHUNK}")


def _member(place: PlaceKey) -> str:
    return f"{place.lane}:{place.epoch}:{place.position}"


def _ended_visit(text: str) -> EndedVisit:
    lane, epoch, position, expires_s, how = map(int, text.split(":"))
    return EndedVisit(PlaceKey(lane, epoch, position), expires_s, how > 0, how > 1)


def _kept_visit(member: str, value: str) -> KeptVisit:
    lane, epoch, position = map(int, member.split(":"))
    until_s, _, hold = value.partition(" ")
    return KeptVisit(PlaceKey(lane, epoch, position), int(until_s), hold)


def _offset(place: PlaceKey) -> int:
    return place.position % CHUNK * 8


def _join_answer(reply: Any) -> JoinReply | FrontrowError:
    if reply[0] == b"closed":
        return RoomClosed("this room is closed")
    if reply[0] == b"overflow":
        return RoomOverflow("too many people are waiting; try again later", retry_after_s=30)
    if reply[0] == b"used":
        return CodeUsed("this code was used before", param="code")
    fresh, lane, position, epoch, at_us = reply
    return JoinReply(lane, position, epoch, int(at_us), fresh=bool(fresh))
