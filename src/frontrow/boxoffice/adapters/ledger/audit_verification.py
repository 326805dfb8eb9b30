"""Verifies a ledger: no seat sold twice, seats and bookings consistent, audit chains unbroken and complete.

`verify` reads the whole log. `ChainCheck` is for pages: one check runs at a time, within a time limit, and its result
is cached for a minute.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

import msgspec

from frontrow.boxoffice.adapters.ledger.audit_chain import GENESIS, AuditEntry, problems
from frontrow.boxoffice.adapters.ledger.engine.group_commit import LedgerStore
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.core.clock import US_PER_S, Clock

CACHED_US: Final = 60 * US_PER_S
PAGE: Final = 2_000
SHOWN: Final = 100  # problems per kind

Heads = Mapping[str, tuple[int, str]]


async def verify(store: LedgerStore, kept: Heads | None = None) -> tuple[list[str], int]:
    """The problems, and the number of audit entries read. `kept` are heads that were stored outside earlier."""
    wrong: list[str] = []
    for event_id, seat, count in await store.read(Query("seats_sold_twice", params=(SHOWN,))):
        wrong.append(f"event {event_id}, seat {seat}: {count} active bookings")
    for booking_id, seat in await store.read(Query("seats_out_of_step", params=(SHOWN,))):
        wrong.append(f"booking {booking_id}, seat {seat}: the seat is active, the booking is not")
    for booking_id, count in await store.read(Query("bookings_out_of_step", params=(SHOWN,))):
        wrong.append(f"booking {booking_id}: says {count} seats, has another number of active ones")
    for booking_id, event_id in await store.read(Query("bookings_without_event", params=(SHOWN,))):
        wrong.append(f"booking {booking_id}: the directory of bookings does not say that its event is {event_id}")
    # Heads first: entries written meanwhile then only add to what the heads say.
    heads = {row[0]: (int(row[1]), str(row[2])) for row in await store.read(Query("audit_heads"))}
    audit, read = await _audit(store, heads, kept or {})
    return wrong + audit, read


async def _audit(store: LedgerStore, heads: Heads, kept: Heads) -> tuple[list[str], int]:
    wrong: list[str] = []
    last: dict[str, AuditEntry] = {}
    hash_at: dict[tuple[str, int], str] = {}
    marks = {(chain, seq) for chain, (seq, _) in [*heads.items(), *kept.items()]}
    read = 0
    async for page in _pages(store):
        read += len(page)
        for entry in page:
            before = last.get(entry.chain)
            wrong += problems(entry, before.seq if before else 0, before.hash if before else GENESIS)
            last[entry.chain] = entry
            if (entry.chain, entry.seq) in marks:
                hash_at[entry.chain, entry.seq] = entry.hash
    for what, given in (("its head", heads), ("the head kept outside", kept)):
        for chain, (seq, wanted) in given.items():
            if hash_at.get((chain, seq)) != wanted:
                wrong.append(f"chain {chain}: entry {seq} is not what {what} says")
    if last.keys() - heads.keys():  # chains that began during the read have a head by now
        later = {row[0] for row in await store.read(Query("audit_heads"))}
        wrong += [f"chain {chain}: has no head" for chain in sorted(last.keys() - later)]
    return wrong[:SHOWN], read


async def _pages(store: LedgerStore) -> AsyncIterator[list[AuditEntry]]:
    chain, seq = "", 0
    while True:  # ends with the log
        rows = await store.read(Query("audit_page", params=(chain, seq, PAGE)))
        if not rows:
            return
        page = [AuditEntry(*row) for row in rows]
        yield page
        chain, seq = page[-1].chain, page[-1].seq


class ChainState(msgspec.Struct, frozen=True):
    """The result of a check: the entries read and the number of problems. `frontrow ledger verify` names them."""

    at_us: int
    entries: int
    wrong: int


class ChainCheck:
    """Whether a ledger is intact, for pages. `read` is `verify` of that ledger."""

    def __init__(self, read: Callable[[], Awaitable[tuple[list[str], int]]], clock: Clock) -> None:
        self._read, self._clock = read, clock
        self._cached: ChainState | None = None
        self._checking = asyncio.Lock()

    async def check(self, within_s: float) -> ChainState | None:
        """A result that is at most a minute old. None when the log could not be read in time."""
        try:
            async with asyncio.timeout(within_s), self._checking:
                if self._cached is None or self._clock() - self._cached.at_us >= CACHED_US:
                    wrong, entries = await self._read()
                    self._cached = ChainState(self._clock(), entries, len(wrong))
                return self._cached
        except TimeoutError:
            return None
