"""Joining the queue: everybody who arrives during a round trip shares one store call, in the order of arrival.

`join` is for callers that await. `join_into` is for the fast path: it puts the reply into the caller's slot, without a
future or a task. All plain joins (no key, no code) are the same command, so a batch of them is a count.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.shared.coalescer import Coalescer, ResultSlot
from frontrow.shared.guest_identity import is_reserved
from frontrow.waitingroom.credentials.fan_codes import Codes, digest_of, imported, read_csv
from frontrow.waitingroom.credentials.key_binding import check_thumbprint, key_digest
from frontrow.waitingroom.credentials.places import MAX_PERSON_CHARS, Place, PlaceSigner
from frontrow.waitingroom.model.errors import CodeInvalid, CodeNeeded, CodeOver, PersonNeeded
from frontrow.waitingroom.model.results import Joined
from frontrow.waitingroom.ports import Audit, CodeRow, ImportRow, JoinCommand, JoinReply, JoinRow, RoomStore
from frontrow.waitingroom.service.audit_writer import AuditWriter
from frontrow.waitingroom.service.recovery import RoomRecovery
from frontrow.waitingroom.service.room_cache import CachedRoom, RoomCache

MAX_BATCH = 2_000
PLAIN = JoinCommand(0)


class Joins:
    """Issues places, in batches per room."""

    def __init__(
        self,
        *,
        store: RoomStore,
        audit: Audit,
        writer: AuditWriter,
        cache: RoomCache,
        recovery: RoomRecovery,
        places: PlaceSigner,
        codes: Codes,
        sale_clock: Clock,
        counts: Counter[str],
        durable: bool,
    ) -> None:
        """Presales end by `sale_clock`. `durable`: a join is answered after its audit row is on disk."""
        self._store = store
        self._audit = audit
        self._writer = writer
        self._cache = cache
        self._recovery = recovery
        self._places = places
        self._codes = codes
        self._sale_clock = sale_clock
        self._counts = counts
        self._durable = durable
        self._batches: dict[str, Coalescer[JoinCommand, JoinReply]] = {}

    async def join(
        self,
        event: str,
        person: str = "",
        ip: str = "",
        code: str | None = None,
        idempotency_key: str | None = None,
        cnf: str | None = None,
    ) -> Joined:
        """Issue a place at the end of the queue. `person` may be empty (anonymous); `code` picks a lane; `cnf` is the
        RFC 7638 thumbprint of the browser's key; `ip` only spreads people over shards. Raises RoomUnknown, RoomClosed,
        RoomOverflow, CodeInvalid, CodeUsed, CodeNeeded, CodeOver, PersonNeeded, Unavailable."""
        room = self._cache.find(event)
        self._check_may_join(room, person, with_code=bool(code))
        jkt = check_thumbprint(cnf) if cnf else ""
        lane, code_id = await self._find_lane(room, code) if code else (0, 0)
        command = _command(room, person, idempotency_key, jkt, lane, code_id)
        reply = await self._batches_of(room).submit(command)
        if code_id and reply.fresh:
            await self._audit.append(event, [CodeRow(code_id, reply.at_us)])
        place = _place(room, reply, person, jkt)
        return Joined(self._places.mint(place), room.status(place), reply.fresh)

    def join_into(self, event: str, slot: ResultSlot, person: str = "", idempotency_key: str | None = None) -> None:
        """`join` without a code or a key binding. The caller's slot gets the store's reply; `joined_json` makes the
        body of it."""
        room = self._cache.find(event)
        self._check_may_join(room, person)
        command = _command(room, person, idempotency_key) if person or idempotency_key else PLAIN
        batches = self._batches.get(event)
        (batches if batches is not None else self._batches_of(room)).submit_into(command, slot)

    def joined_json(self, event: str, reply: JoinReply, person: str) -> bytes:
        """The JSON body for the store's reply to `join_into`."""
        room = self._cache.find(event)
        place = _place(room, reply, person, "")
        return b'{"place":"%b",%b' % (self._places.mint_bytes(place), room.status_json(place)[1:])

    async def import_codes(self, event: str, lines: Iterable[str]) -> int:
        """Import an organiser's own codes (CSV: `code,lane`) for all processes at once; returns how many."""
        config = self._cache.find(event).state.config
        lanes = read_csv(lines, {rule.name: number for number, rule in enumerate(config.lanes)})
        if lanes:
            await self._audit.append(event, [ImportRow(lanes)])
        return len(lanes)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _check_may_join(self, room: CachedRoom, person: str, *, with_code: bool = False) -> None:
        """Refuse a join without a code during a presale, with a code after it, and without a person in a room with one
        place per person."""
        room.use()
        config = room.state.config
        if config.one_place_per_person and not person:
            raise PersonNeeded("sign in first: in this line everybody has one place")
        if not config.codes_until_us or self._sale_clock() < config.codes_until_us:
            if config.codes_until_us and not with_code:
                at_s = config.codes_until_us // 1_000_000
                raise CodeNeeded(
                    "this is a presale: join with the code you got, or come back when the general sale begins",
                    param="code",
                    general_sale_at_s=at_s,
                )
        elif with_code:
            raise CodeOver("the presale has ended: join without a code", param="code")

    async def _find_lane(self, room: CachedRoom, code: str) -> tuple[int, int]:
        """The lane of a code, and the id under which the store marks it as used (never 0)."""
        try:
            valid = self._codes.check(room.event, code)
        except CodeInvalid:
            digest = digest_of(code)
            lane = await self._audit.imported_lane(room.event, digest)
            if lane is None:
                raise
            valid = imported(digest, lane)
        return min(valid.lane, len(room.state.lanes) - 1), valid.id + 1

    def _batches_of(self, room: CachedRoom) -> Coalescer[JoinCommand, JoinReply]:
        batches = self._batches.get(room.event)
        if batches is None:

            async def send(commands: Sequence[JoinCommand]) -> Sequence[JoinReply | BaseException]:
                return await self._send(room, commands)

            batches = Coalescer(send, max_batch=MAX_BATCH, name=f"joins of {room.event}")
            self._batches[room.event] = batches
        return batches

    async def _send(self, room: CachedRoom, commands: Sequence[JoinCommand]) -> Sequence[JoinReply | BaseException]:
        replies = await self._recovery.call_with_rebuild(
            room.event, lambda: self._store.join(room.event, commands, tuple(room.issued))
        )
        rows = self._audit_rows(room, commands, replies)
        if rows and self._durable:
            await self._audit.append(room.event, rows)
        elif rows:
            self._writer.append_later(room.event, rows)
        return replies

    def _audit_rows(
        self, room: CachedRoom, commands: Sequence[JoinCommand], replies: Sequence[JoinReply | FrontrowError]
    ) -> list[JoinRow]:
        """The fresh positions of a batch as runs: one row per lane, whatever the number of people. A run names its
        people if any of them has a name (SPEC B20)."""
        first, last = replies[0], replies[-1]
        if (
            list(commands).count(PLAIN) == len(commands)
            and isinstance(first, JoinReply)
            and isinstance(last, JoinReply)
        ):
            room.issued[0] = max(room.issued[0], last.position)
            self._counts["joins"] += len(commands)
            return [JoinRow(last.epoch, 0, first.position, last.position, last.at_us)]
        runs: dict[tuple[int, int], list[tuple[int, str]]] = {}
        at_us = 0
        for command, reply in zip(commands, replies, strict=True):
            if isinstance(reply, JoinReply) and reply.fresh:
                runs.setdefault((reply.epoch, reply.lane), []).append((reply.position, command.person))
                at_us = reply.at_us
                if reply.position > room.issued[reply.lane]:
                    room.issued[reply.lane] = reply.position
        self._counts["joins"] += sum(len(run) for run in runs.values())
        return [
            JoinRow(epoch, lane, run[0][0], run[-1][0], at_us, _people_of(run)) for (epoch, lane), run in runs.items()
        ]


def _people_of(run: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    """Who joined, in order, with "" for anonymous people; nothing if all of them are anonymous."""
    people = tuple(person for _, person in run)
    return people if any(people) else ()


def _command(
    room: CachedRoom, person: str, idempotency_key: str | None, jkt: str = "", lane: int = 0, code_id: int = 0
) -> JoinCommand:
    if len(person) > MAX_PERSON_CHARS:
        raise InvalidInput(f"a person is named by at most {MAX_PERSON_CHARS} characters", param="person")
    if is_reserved(person):
        raise InvalidInput("names that begin with place: belong to people without an account", param="person")
    key = key_digest(idempotency_key, person, jkt) if idempotency_key else ""
    return JoinCommand(lane, key, person, code_id, room.state.config.one_place_per_person)


def _place(room: CachedRoom, reply: JoinReply, person: str, jkt: str) -> Place:
    return Place(room.event, reply.lane, reply.epoch, reply.position, reply.at_us // 1_000_000, person, jkt)
