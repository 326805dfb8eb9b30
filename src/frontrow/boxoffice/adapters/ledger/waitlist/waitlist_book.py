"""The ledger's waitlist: entries in line, their offers, and the reads that decide who is next.

The contract is in `waitlist/ports.py`.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.batched_reads import ReadsByKey
from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram, RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.events.event_status import status_facts
from frontrow.boxoffice.adapters.ledger.waitlist import waitlist_transactions as programs
from frontrow.boxoffice.adapters.ledger.waitlist.waitlist_transactions import entry_of, offer_of
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.waitlist.model.offers import EndedEntries, NewOffer, Offer
from frontrow.boxoffice.waitlist.model.waitlist import NewEntry, WaitlistEntry, WaitlistSummary, WaitOrder, WaitRules
from frontrow.core.errors import FrontrowError, InvalidInput

MAX_LINE_PAGE: Final = 1_000
SEATS_PER_READ: Final = 5_000


class SqlWaitlistBook:
    """Entries in line and their offers (`waitlist.ports.WaitlistBook`)."""

    def __init__(self, store: LedgerStore, line: CommitLine, reads: ReadsByKey) -> None:
        self._store, self._line, self._reads = store, line, reads

    async def put_waitlist_rules(self, rules: WaitRules, now_us: int) -> WaitRules:
        row = (rules.event_id, rules.order.value, rules.seed, rules.seed_hash, now_us)
        note = {
            "act": "put_waitlist_rules",
            "event": rules.event_id,
            "order": rules.order,
            "seed_hash": rules.seed_hash,
        }
        text = msgspec.json.encode(note).decode()
        await self._line.submit(RunStatements((Query("put_waitlist_rules", [row]),), text, now_us))
        return await self.waitlist_rules(rules.event_id)

    async def waitlist_rules(self, event_id: str) -> WaitRules:
        rows = await self._store.read(Query("waitlist_rules_of", params=(event_id,)))
        return WaitRules(rows[0][0], WaitOrder(rows[0][1]), rows[0][2], rows[0][3]) if rows else WaitRules(event_id)

    async def join_waitlist(self, new: NewEntry, now_us: int) -> WaitlistEntry:
        new.check()
        return cast(WaitlistEntry, await self._run(now_us, programs.join, new, now_us))

    async def leave_waitlist(self, entry_id: str, fan: str, now_us: int) -> WaitlistEntry:
        return cast(WaitlistEntry, await self._run(now_us, programs.leave, entry_id, fan, now_us))

    async def end_line(self, event_id: str, limit: int, now_us: int) -> EndedEntries:
        limit = max(1, min(limit, MAX_LINE_PAGE))
        return cast(EndedEntries, await self._run(now_us, programs.end_line, event_id, limit, now_us))

    async def entry(self, entry_id: str) -> WaitlistEntry | None:
        rows = await self._store.read(Query("entries_by_id", [(entry_id,)]))
        return entry_of(rows[0]) if rows else None

    async def entry_of_fan(self, event_id: str, fan: str) -> WaitlistEntry | None:
        rows = await self._store.read(Query("entry_of_fan", params=(event_id, fan)))
        return entry_of(rows[0]) if rows else None

    async def entries_ahead(self, entry: WaitlistEntry) -> int:
        rows = await self._store.read(Query("entries_ahead", params=(entry.event_id, entry.rank, entry.number)))
        return int(rows[0][0])

    async def waiting_page(
        self, event_id: str, free: Mapping[str, int], after: tuple[int, int], limit: int
    ) -> list[WaitlistEntry]:
        if not free or not 1 <= limit <= MAX_LINE_PAGE:
            raise InvalidInput(f"name sections, and ask for 1 to {MAX_LINE_PAGE} entries", param="limit")
        rows = await self._store.read(Query("waiting_page", sorted(free.items()), (event_id, *after, limit)))
        return [entry_of(row) for row in rows]

    async def read_waitlist_summary(self, event_id: str, now_us: int) -> WaitlistSummary:
        rows = await self._store.read(Query("read_waitlist_summary", params=(event_id, now_us)))
        return WaitlistSummary(int(rows[0][0]), bool(rows[0][1]))

    async def events_to_serve(self, event_ids: Sequence[str]) -> set[str]:
        if not event_ids:
            return set()
        rows = await self._store.read(Query("events_to_serve", [(event_id,) for event_id in event_ids]))
        return {event_id for event_id, status, waiting in rows if waiting or status != EventStatus.ON_SALE}

    async def last_fans(self, event_id: str, seats: Sequence[int]) -> dict[int, str]:
        newest: dict[int, tuple[int, str]] = {}
        for start in range(0, len(seats), SEATS_PER_READ):
            part = [(seat,) for seat in seats[start : start + SEATS_PER_READ]]
            for seat, fence, fan in await self._store.read(Query("last_bookings", part, (event_id,))):
                newest[seat] = max(newest.get(seat, (0, "")), (fence, fan))
        return {seat: fan for seat, (_, fan) in newest.items()}

    async def make_offers(self, news: Sequence[NewOffer]) -> list[Offer | FrontrowError]:
        for new in news:
            new.hold.check()
        if not news:
            return []
        holds = tuple(new.hold for new in news)
        run = RunProgram(functools.partial(programs.make_offers, tuple(news)), holds[0].now_us, holds)
        return cast("list[Offer | FrontrowError]", await self._line.submit(run))

    async def claim_offer(self, offer_id: str, fan: str, now_us: int, hold_until_us: int) -> Offer:
        return cast(Offer, await self._run(now_us, programs.claim, offer_id, fan, now_us, hold_until_us))

    async def decline_offer(self, offer_id: str, fan: str, now_us: int) -> Offer:
        return cast(Offer, await self._run(now_us, programs.decline, offer_id, fan, now_us))

    async def end_finished_offers(self, now_us: int, limit: int) -> list[Offer]:
        return cast(list[Offer], await self._run(now_us, programs.end_due_offers, now_us, max(1, min(limit, 1_000))))

    async def offer(self, offer_id: str) -> Offer | None:
        rows = await self._store.read(Query("offers_by_id", [(offer_id,)]))
        return offer_of(rows[0]) if rows else None

    async def offers_of(self, event_id: str, fan: str, limit: int = 100) -> list[Offer]:
        params = (event_id, fan, max(1, min(limit, 1_000)))
        return [offer_of(row) for row in await self._store.read(Query("offers_of_fan", params=params))]

    async def shift_event(self, event_id: str, was: EventStatus, to: EventStatus, now_us: int) -> Event | None:
        rows = await self._reads["events_by_id"].read(event_id)
        event = msgspec.json.decode(rows[0][1], type=Event) if rows else None
        if event is None or event.status is not was:
            return None
        moved = dataclasses.replace(event, status=to)
        document = msgspec.json.encode(moved).decode()
        note = msgspec.json.encode({"act": "shift_event", "event": event_id, "status": to, "at_us": now_us}).decode()
        query = Query("swap_event", [(event_id, rows[0][1], document, to.value, now_us)])
        return (
            moved
            if await self._line.submit(RunStatements((query,), note, now_us, status_facts(moved, now_us)))
            else None
        )

    async def _run(self, now_us: int, program: Any, *arguments: Any) -> Any:
        return await self._line.submit(RunProgram(functools.partial(program, *arguments), now_us))
