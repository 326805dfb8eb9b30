"""The durable record (W13): joins as runs of positions, slides, claims, used codes, and the last state of each room.

It is also the audit of queue positions (SPEC B20): `room_joins` says who got which position when, and `room_claims` who
was admitted. Joins of people without an account have no person.

Rows are written in batches: rows appended during one transaction are written by the next (group commit). The statements
use the common subset of SQLite and PostgreSQL; `sqlite.py` and `postgres.py` run them. `recover` rebuilds a room after
its store was lost.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import msgspec

from frontrow.shared.coalescer import Coalescer
from frontrow.waitingroom.model.room_record import fields_of, state_of
from frontrow.waitingroom.model.room_state import RoomState, raise_windows
from frontrow.waitingroom.model.window import Window
from frontrow.waitingroom.ports import (
    AuditRow,
    ClaimRow,
    CodeRow,
    EndedVisit,
    ImportRow,
    JoinRow,
    PersonAt,
    PlaceKey,
    Recovered,
    RoomRow,
)

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS room_state (event TEXT PRIMARY KEY, epoch BIGINT NOT NULL, at_us BIGINT NOT NULL,"
    " fields TEXT NOT NULL, took TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS room_slides (event TEXT NOT NULL, epoch BIGINT NOT NULL, slide_no BIGINT NOT NULL,"
    " at_us BIGINT NOT NULL, his TEXT NOT NULL, los TEXT NOT NULL, PRIMARY KEY (event, epoch, slide_no))",
    "CREATE TABLE IF NOT EXISTS room_joins (event TEXT NOT NULL, epoch BIGINT NOT NULL, lane BIGINT NOT NULL,"
    " first BIGINT NOT NULL, last BIGINT NOT NULL, at_us BIGINT NOT NULL, people TEXT NOT NULL,"
    " PRIMARY KEY (event, epoch, lane, first))",
    "CREATE TABLE IF NOT EXISTS room_claims (event TEXT NOT NULL, epoch BIGINT NOT NULL, lane BIGINT NOT NULL,"
    " position BIGINT NOT NULL, expires_s BIGINT NOT NULL, at_us BIGINT NOT NULL, person TEXT NOT NULL,"
    " tag BIGINT NOT NULL, PRIMARY KEY (event, epoch, lane, position, at_us, expires_s))",
    "CREATE TABLE IF NOT EXISTS room_codes (event TEXT NOT NULL, code_id BIGINT NOT NULL, at_us BIGINT NOT NULL,"
    " PRIMARY KEY (event, code_id))",
    "CREATE TABLE IF NOT EXISTS room_imported_codes (event TEXT NOT NULL, digest TEXT NOT NULL, lane BIGINT NOT NULL,"
    " PRIMARY KEY (event, digest))",
)
PUT_STATE = (
    "INSERT INTO room_state (event, epoch, at_us, fields, took) VALUES (?, ?, ?, ?, ?) ON CONFLICT (event) DO UPDATE"
    " SET epoch = excluded.epoch, at_us = excluded.at_us, fields = excluded.fields, took = excluded.took"
    " WHERE excluded.epoch > room_state.epoch"
    " OR (excluded.epoch = room_state.epoch AND excluded.at_us >= room_state.at_us)"
)
PUT_SLIDE = "INSERT INTO room_slides VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
PUT_JOIN = "INSERT INTO room_joins VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
PUT_CLAIM = "INSERT INTO room_claims VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
PUT_CODE = "INSERT INTO room_codes VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
PUT_IMPORTED = (
    "INSERT INTO room_imported_codes VALUES (?, ?, ?) ON CONFLICT (event, digest) DO UPDATE SET lane = excluded.lane"
)
GET_IMPORTED = "SELECT lane FROM room_imported_codes WHERE event = ? AND digest = ?"
COUNT_IMPORTED = "SELECT lane, COUNT(*) FROM room_imported_codes WHERE event = ? GROUP BY lane ORDER BY lane"
STATES_AT_ONCE = 32
GET_STATE = "SELECT event, fields, took, at_us FROM room_state WHERE event = ?"
GET_STATES = GET_STATE.replace("= ?", f"IN ({', '.join('?' * STATES_AT_ONCE)})")
GET_SLIDES = "SELECT his, los FROM room_slides WHERE event = ? ORDER BY epoch DESC, slide_no DESC LIMIT 8"
GET_ISSUED = "SELECT lane, MAX(last) FROM room_joins WHERE event = ? GROUP BY lane"
GET_PEOPLE = "SELECT epoch, lane, first, at_us, people FROM room_joins WHERE event = ? AND people <> '[]'"
GET_CLAIMS = (
    "SELECT epoch, lane, position, expires_s, at_us, person, tag FROM room_claims WHERE event = ?"
    " ORDER BY epoch, lane, position, at_us, expires_s DESC"
)
COUNT_USED = "SELECT COUNT(*) FROM room_codes WHERE event = ?"
GET_CODES = "SELECT code_id FROM room_codes WHERE event = ?"

Statement = tuple[str, tuple[Any, ...]]
RowsByStatement = dict[str, list[tuple[Any, ...]]]


def statements(event: str, row: AuditRow) -> list[Statement]:
    """The statements that write one row."""
    match row:
        case JoinRow():
            people = msgspec.json.encode(row.people).decode()
            return [(PUT_JOIN, (event, row.epoch, row.lane, row.first, row.last, row.at_us, people))]
        case ClaimRow():
            place = row.place
            about = (place.epoch, place.lane, place.position, row.expires_s, row.at_us, row.person, row.tag)
            return [(PUT_CLAIM, (event, *about))]
        case CodeRow():
            return [(PUT_CODE, (event, row.code_id, row.at_us))]
        case ImportRow():
            return [(PUT_IMPORTED, (event, digest, lane)) for digest, lane in row.lanes.items()]
        case RoomRow():
            return _state_statements(event, row)


def _state_statements(event: str, row: RoomRow) -> list[Statement]:
    state = row.state
    fields = msgspec.json.encode({name: str(value) for name, value in fields_of(state).items()}).decode()
    took = msgspec.json.encode(dict(state.took)).decode()
    his, los = (msgspec.json.encode([getattr(x, edge) for x in state.lanes]).decode() for edge in ("hi", "lo"))
    return [
        (PUT_STATE, (event, state.epoch, row.at_us, fields, took)),
        (PUT_SLIDE, (event, state.epoch, state.slide_no, row.at_us, his, los)),
    ]


class AuditDatabase(Protocol):
    """A database that holds the tables of `SCHEMA`. Statements mark their values with `?`."""

    async def write(self, rows_by_statement: RowsByStatement) -> None:
        """Run all statements in one transaction. Raises Unavailable."""

    async def query(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        """The rows of one SELECT. Raises Unavailable."""

    async def aclose(self) -> None:
        """Close the connections."""


class SqlAudit:
    """Implements `Audit` over any `AuditDatabase`."""

    def __init__(self, database: AuditDatabase) -> None:
        self._database = database
        self._writer: Coalescer[Sequence[Statement], None] = Coalescer(
            self._write_batch, max_batch=1_000, name="room audit"
        )
        self._states: Coalescer[str, tuple[Any, ...] | None] = Coalescer(
            self._read_states, max_batch=STATES_AT_ONCE, name="room states"
        )

    async def append(self, event: str, rows: Sequence[AuditRow]) -> None:
        await self._writer.ask([statement for row in rows for statement in statements(event, row)])

    async def recover(self, event: str, now_s: int, *, with_people: bool = True) -> Recovered | None:
        query = self._database.query
        found = await self._states.ask(event)
        if found is None:
            return None
        state = _read_state(found)
        issued = {int(lane): int(last) for lane, last in await query(GET_ISSUED, event)}
        state = _raise_lanes(state, issued, await self.windows(event))
        los = [lane.lo for lane in state.lanes]
        rows = await query(GET_CLAIMS, event)
        claims, ended = _standing_claims(rows, los, now_s), _ended_visits(rows, now_s)
        codes = tuple(int(code) for (code,) in await query(GET_CODES, event))
        people: tuple[PersonAt, ...] = ()
        if with_people or state.config.one_place_per_person:
            people = _people_in_queue(await query(GET_PEOPLE, event), los)
        return Recovered(state, claims, codes, people, ended)

    async def windows(self, event: str) -> Sequence[Window]:
        slides = await self._database.query(GET_SLIDES, event)
        his, los = ([msgspec.json.decode(slide[edge], type=list[int]) for slide in slides] for edge in (0, 1))
        return [Window(max(lows), max(highs)) for lows, highs in zip(_by_lane(los), _by_lane(his), strict=True)]

    async def imported_lane(self, event: str, digest: str) -> int | None:
        found = await self._database.query(GET_IMPORTED, event, digest)
        return int(found[0][0]) if found else None

    async def imported_counts(self, event: str) -> dict[int, int]:
        return {int(lane): int(count) for lane, count in await self._database.query(COUNT_IMPORTED, event)}

    async def used_codes(self, event: str) -> int:
        return int((await self._database.query(COUNT_USED, event))[0][0])

    async def aclose(self) -> None:
        await self._states.aclose()
        await self._writer.aclose()
        await self._database.aclose()

    async def _read_states(self, events: Sequence[str]) -> Sequence[tuple[Any, ...] | None]:
        """The rows of these rooms; None for a room that has none. A server reads hundreds when it starts."""
        if len(events) == 1:
            found = await self._database.query(GET_STATE, events[0])
        else:  # the statement always has the same length, so it is prepared once
            found = await self._database.query(GET_STATES, *events, *[events[0]] * (STATES_AT_ONCE - len(events)))
        rows = {event: row for event, *row in found}
        return [tuple(rows[event]) if event in rows else None for event in events]

    async def _write_batch(self, batch: Sequence[Sequence[Statement]]) -> Sequence[None]:
        rows_by_statement: RowsByStatement = {}
        for sql, values in (statement for group in batch for statement in group):
            rows_by_statement.setdefault(sql, []).append(values)
        await self._database.write(rows_by_statement)
        return [None] * len(batch)


def _read_state(row: tuple[Any, ...]) -> RoomState:
    took = {int(number): int(count) for number, count in msgspec.json.decode(row[1]).items()}
    return state_of(msgspec.json.decode(row[0]), took, int(row[2]))


def _by_lane(edges: list[list[int]]) -> list[list[int]]:
    """Edges of windows by slide, turned into edges by lane. Lanes were only ever added."""
    most = max(map(len, edges), default=0)
    return [[edge[lane] for edge in edges if lane < len(edge)] for lane in range(most)]


def _raise_lanes(state: RoomState, issued: dict[int, int], windows: Sequence[Window]) -> RoomState:
    """Each counter at its maximum in any row, so that nobody's position gets worse by a loss."""
    lanes = raise_windows(state.lanes, windows)
    last = [max(lane.issued, issued.get(index, 0)) for index, lane in enumerate(lanes)]
    return replace(state, lanes=tuple(replace(lane, issued=most) for lane, most in zip(lanes, last, strict=True)))


def _standing_claims(rows: list[tuple[Any, ...]], los: list[int], now_s: int) -> tuple[ClaimRow, ...]:
    """The last row of each claimed place whose pass is valid or that could be claimed again. Passes that were issued
    without a place have epoch 0 and are left out."""
    last: dict[PlaceKey, ClaimRow] = {}
    for epoch, lane, position, expires_s, at_us, person, tag in rows:
        if not epoch:
            continue
        place = PlaceKey(int(lane), int(epoch), int(position))
        last[place] = ClaimRow(place, int(expires_s), int(at_us), person, int(tag))
    return tuple(row for row in last.values() if row.expires_s > now_s or row.place.position > los[row.place.lane])


def _ended_visits(rows: list[tuple[Any, ...]], now_s: int) -> tuple[EndedVisit, ...]:
    """The visits that ended before their pass expires; the pass stays refused."""
    latest: dict[PlaceKey, int] = {}  # the latest expiry of any pass of this place
    over: dict[PlaceKey, bool] = {}
    for epoch, lane, position, expires_s, *_ in rows:
        place = PlaceKey(int(lane), int(epoch), int(position))
        latest[place] = max(latest.get(place, 0), int(expires_s))
        over[place] = not expires_s
    return tuple(EndedVisit(place, latest[place]) for place in over if over[place] and latest[place] > now_s)


def _people_in_queue(rows: list[tuple[Any, ...]], los: list[int]) -> tuple[PersonAt, ...]:
    """The people whose place has not expired; anonymous joins in the same run have no name."""
    found = []
    for epoch, lane, first, at_us, people in rows:
        for position, person in enumerate(msgspec.json.decode(people), int(first)):
            if person and position > los[int(lane)]:
                found.append(PersonAt(person, int(lane), int(epoch), position, int(at_us)))
    return tuple(found)
