"""Joining the line: everybody who arrives during a round trip shares one store call, in the order they came.

`join` is for callers that await; `join_into` for the hot lane, which brings its own slot and gets the answer without
a future or a task. A plain join (no key, no code) is one shared question, so a batch of them is a number.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from frontrow.core.clock import Clock
from frontrow.core.coalescer import Coalescer, ResultSlot
from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.core.guest_identity import is_reserved
from frontrow.waitingroom.credentials.fan_codes import Codes, digest_of, imported, read_csv
from frontrow.waitingroom.credentials.key_binding import check_thumbprint, key_digest
from frontrow.waitingroom.credentials.places import MAX_PERSON_CHARS, Place, PlaceSigner
from frontrow.waitingroom.model.errors import CodeInvalid, CodeNeeded, CodeOver, PersonNeeded, RoomRecovering
from frontrow.waitingroom.model.results import Joined
from frontrow.waitingroom.ports import CodeRow, ImportRow, JoinAnswer, JoinAsk, JoinRow
from frontrow.waitingroom.service.control import Organiser
from frontrow.waitingroom.service.room_cache import KnownRoom

Answer = TypeVar("Answer")

MAX_BATCH = 2_000
PLAIN = JoinAsk(0)


class Joining(Organiser):
    """What people do first."""

    places: PlaceSigner
    codes: Codes
    sale_clock: Clock  # by which presales end

    def __init__(self, *given: Any, durable_joins: bool = False, **named: Any) -> None:
        super().__init__(*given, **named)
        self._durable_joins = durable_joins
        self._joins: dict[str, Coalescer[JoinAsk, JoinAnswer]] = {}

    async def join(
        self,
        event: str,
        person: str = "",
        ip: str = "",
        code: str | None = None,
        idempotency_key: str | None = None,
        cnf: str | None = None,
    ) -> Joined:
        """A place at the end of the line. `person` may be empty (anonymous); `code` picks a lane; `cnf` is the RFC 7638
        thumbprint of the browser's key; `ip` only spreads people over shards. Raises RoomUnknown, RoomClosed,
        RoomOverflow, CodeInvalid, CodeUsed, CodeNeeded, CodeOver, PersonNeeded, Unavailable."""
        known = self.known(event)
        self._check_welcome(known, person, with_code=bool(code))
        jkt = check_thumbprint(cnf) if cnf else ""
        lane, code_id = await self._lane_of(known, code) if code else (0, 0)
        ask = _ask(known, person, idempotency_key, jkt, lane, code_id)
        answer = await self._line_of(known).submit(ask)
        if code_id and answer.fresh:
            await self.audit.append(event, [CodeRow(code_id, answer.at_us)])
        place = _place(known, answer, person, jkt)
        return Joined(self.places.mint(place), known.status(place), answer.fresh)

    def join_soon(
        self, event: str, person: str = "", idempotency_key: str | None = None
    ) -> "asyncio.Future[JoinAnswer]":
        """`join` without a code or a key binding, for callers that want no task of their own; `joined` makes a place
        of the answer."""
        known = self.known(event)
        self._check_welcome(known, person)
        return self._line_of(known).submit(_ask(known, person, idempotency_key))

    def join_into(self, event: str, slot: ResultSlot, person: str = "", idempotency_key: str | None = None) -> None:
        """`join_soon` into the caller's slot; `joined_json` makes the answer's body."""
        known = self.known(event)
        self._check_welcome(known, person)
        ask = _ask(known, person, idempotency_key) if person or idempotency_key else PLAIN
        joins = self._joins.get(event)
        (joins if joins is not None else self._line_of(known)).submit_into(ask, slot)

    def joined(self, event: str, answer: JoinAnswer, person: str) -> Joined:
        """The place that the store's answer to `join_soon` stands for."""
        known = self.known(event)
        place = _place(known, answer, person, "")
        return Joined(self.places.mint(place), known.status(place), answer.fresh)

    def joined_json(self, event: str, answer: JoinAnswer, person: str) -> bytes:
        """`joined` as the JSON that people get."""
        known = self.known(event)
        place = _place(known, answer, person, "")
        return b'{"place":"%b",%b' % (self.places.mint_bytes(place), known.status_json(place)[1:])

    async def import_codes(self, event: str, lines: Iterable[str]) -> int:
        """Take over an organiser's own codes (CSV: `code,lane`), for all processes at once; returns how many."""
        config = self.known(event).state.config
        lanes = read_csv(lines, {rule.name: number for number, rule in enumerate(config.lanes)})
        if lanes:
            await self.audit.append(event, [ImportRow(lanes)])
        return len(lanes)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _check_welcome(self, known: KnownRoom, person: str, *, with_code: bool = False) -> None:
        """Refuse who may not join now: without a code during a presale, with one after it, without a name where
        everybody has one place."""
        config = known.state.config
        if config.one_place_per_person and not person:
            raise PersonNeeded("sign in first: in this line everybody has one place")
        if not config.codes_until_us or self.sale_clock() < config.codes_until_us:
            if config.codes_until_us and not with_code:
                at_s = config.codes_until_us // 1_000_000
                raise CodeNeeded(
                    "this is a presale: join with the code you got, or come back when the general sale begins",
                    param="code",
                    general_sale_at_s=at_s,
                )
        elif with_code:
            raise CodeOver("the presale has ended: join without a code", param="code")

    async def _lane_of(self, known: KnownRoom, code: str) -> tuple[int, int]:
        """The lane a code leads to, and the number it is used up by (never 0)."""
        try:
            genuine = self.codes.check(known.event, code)
        except CodeInvalid:
            digest = digest_of(code)
            found = await self.audit.imported_lane(known.event, digest)
            if found is None:
                raise
            genuine = imported(digest, found)
        return min(genuine.lane, len(known.state.lanes) - 1), genuine.id + 1

    def _line_of(self, known: KnownRoom) -> Coalescer[JoinAsk, JoinAnswer]:
        joins = self._joins.get(known.event)
        if joins is None:

            async def send(asks: Sequence[JoinAsk]) -> Sequence[JoinAnswer | BaseException]:
                return await self._send_joins(known, asks)

            joins = self._joins[known.event] = Coalescer(send, max_batch=MAX_BATCH, name=f"joins of {known.event}")
        return joins

    async def _send_joins(self, known: KnownRoom, asks: Sequence[JoinAsk]) -> Sequence[JoinAnswer | BaseException]:
        answers = await self._with_recovery(known, lambda: self.store.join(known.event, asks, tuple(known.issued)))
        rows = self._join_rows(known, asks, answers)
        if rows and self._durable_joins:
            await self.audit.append(known.event, rows)
        elif rows:
            self.append_later(known.event, rows)
        return answers

    def _join_rows(
        self, known: KnownRoom, asks: Sequence[JoinAsk], answers: Sequence[JoinAnswer | FrontrowError]
    ) -> list[JoinRow]:
        """The fresh positions of a batch as runs: one row a lane, whatever the number of people."""
        first, last = answers[0], answers[-1]
        if list(asks).count(PLAIN) == len(asks) and isinstance(first, JoinAnswer) and isinstance(last, JoinAnswer):
            known.issued[0] = max(known.issued[0], last.position)
            self.counts["joins"] += len(asks)
            return [JoinRow(last.epoch, 0, first.position, last.position, last.at_us)]
        runs: dict[tuple[int, int], list[tuple[int, str]]] = {}
        at_us = 0
        for ask, answer in zip(asks, answers, strict=True):
            if isinstance(answer, JoinAnswer) and answer.fresh:
                runs.setdefault((answer.epoch, answer.lane), []).append((answer.position, ask.person))
                at_us = answer.at_us
                if answer.position > known.issued[answer.lane]:
                    known.issued[answer.lane] = answer.position
        by_identity = self._by_identity(known)
        self.counts["joins"] += sum(len(run) for run in runs.values())
        return [
            JoinRow(epoch, lane, run[0][0], run[-1][0], at_us, tuple(who for _, who in run) if by_identity else ())
            for (epoch, lane), run in runs.items()
        ]

    def _by_identity(self, known: KnownRoom) -> bool:
        """Whether everybody has one place in this room: the store does so for all rooms, or this room's settings."""
        return bool(getattr(self.store, "one_place_per_person", False) or known.state.config.one_place_per_person)

    async def _with_recovery(
        self, known: KnownRoom, call: Callable[[], Awaitable[Sequence[Answer]]]
    ) -> Sequence[Answer]:
        """The call's answer; if the store lost the room, rebuild it and ask once more."""
        try:
            return await call()
        except RoomRecovering:
            await self.recover(known.event)
            return await call()


def _ask(
    known: KnownRoom, person: str, idempotency_key: str | None, jkt: str = "", lane: int = 0, code_id: int = 0
) -> JoinAsk:
    if len(person) > MAX_PERSON_CHARS:
        raise InvalidInput(f"a person is named by at most {MAX_PERSON_CHARS} characters", param="person")
    if is_reserved(person):
        raise InvalidInput("names that begin with place: belong to people without an account", param="person")
    key = key_digest(idempotency_key, person, jkt) if idempotency_key else ""
    return JoinAsk(lane, key, person, code_id, known.state.config.one_place_per_person)


def _place(known: KnownRoom, answer: JoinAnswer, person: str, jkt: str) -> Place:
    return Place(known.event, answer.lane, answer.epoch, answer.position, answer.at_us // 1_000_000, person, jkt)
