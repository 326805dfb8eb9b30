"""Keeps the claim store consistent with the ledger (F1): detects that it is lost, refills it, repairs differences.

A store that was flushed, restarted or failed over refuses by itself (503). This service fills it from the ledger under
a new epoch. The two can also drift apart: a process died between its two writes, or a hold was placed while the store
was being filled. `reconcile` compares them. Seats that only the ledger has are added to the store. Seats that only the
store has are released once they are older than any write that may be under way. So no seat stays lost, and none is sold
twice meanwhile, because the ledger decides every hold.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import msgspec

from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.claims import SOLD_UNTIL_US, ClaimKind, TakenSeat
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.core.background_tasks import start_loop
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError
from frontrow.core.failures import note_failure, note_success
from frontrow.shared.coalescer import Coalescer
from frontrow.shared.log_lines import CLAIMS_REBUILT

WRITE_GRACE_US = 10_000_000  # a claim younger than this may still be on its way to the ledger
MANY = 20  # events; with more, those without sales get less attention
ROUNDS = 10  # turns until each of many events was checked once
CHECK_EVERY = 5  # turns at once; an event in doubt is checked at once
QUIET_ROUNDS = 20  # a quiet event among many is reconciled once in this many rounds


class Repairs(msgspec.Struct, frozen=True):
    """How many seats a comparison added to the store, and how many it released."""

    put: int
    released: int


class RecoveryStats(msgspec.Struct):
    rebuilds: int = 0
    mended: int = 0
    failures: int = 0


class Recovery:
    """Watches the claim store of the events on sale on this server."""

    def __init__(
        self,
        sales: Sales,
        claims: SeatClaims,
        ledger: Ledger,
        clock: Clock,
        *,
        check_s: float = 0.2,
        reconcile_every: int = 150,
    ) -> None:
        self._sales, self._claims, self._ledger, self._clock = sales, claims, ledger, clock
        self._check_s, self._reconcile_every = check_s, reconcile_every
        self._lost: Coalescer[str, bool] = Coalescer(self._are_lost, name="claim checks")
        self._doubts: set[str] = set()
        self._doubted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._checked = self._turn = 0  # how many events were checked so far, and turns taken
        self._taken: dict[str, int] = {}  # event -> its taken seats when it was reconciled last
        self.stats = RecoveryStats()

    def doubt(self, event_id: str) -> None:
        """Check the store of this event now: it was found lost or wrong."""
        self._doubts.add(event_id)
        self._doubted.set()

    async def check(self, event_id: str) -> bool:
        """Fill the store if it is lost; return whether the event can be sold."""
        if not await self._lost.ask(event_id):
            return True
        if await self._claims.rebuild(event_id, lambda: self._ledger_seats(event_id), self._clock()):
            self.stats.rebuilds += 1
            CLAIMS_REBUILT(event_id=event_id)
            await self.reconcile(event_id)  # the ledger may have changed while the store was being filled
            return True
        return not await self._claims.lost(event_id)

    async def _are_lost(self, event_ids: Sequence[str]) -> list[bool]:
        """Events that are opened at the same time are checked together."""
        lost = await self._claims.lost_among(event_ids)
        return [event_id in lost for event_id in event_ids]

    async def reconcile(self, event_id: str) -> Repairs:
        """Compare the store with the ledger and repair the store."""
        now_us = self._clock()
        stored = await self._claims.states(event_id, now_us)
        actual = {seat.seat: seat async for seat in self._ledger_seats(event_id)}
        missing = [seat for seat in actual.values() if not _is_same_claim(stored.get(seat.seat), seat)]
        if missing:
            await self._claims.put(event_id, missing, now_us)
        orphans = [
            seat for seat in stored.values() if seat.seat not in actual and seat.placed_at_us + WRITE_GRACE_US <= now_us
        ]
        for orphan in orphans:
            await self._claims.release(event_id, (orphan.seat,), orphan.booking_id)
        self._sales.get(event_id).seats.replace_states(
            [orphan.seat for orphan in orphans] + [seat.seat for seat in missing],
            {seat.seat: seat for seat in missing},
            now_us,
        )
        self.stats.mended += len(missing) + len(orphans)
        return Repairs(len(missing), len(orphans))

    async def _ledger_seats(self, event_id: str) -> AsyncIterator[TakenSeat]:
        async for seat in self._ledger.active_seats(event_id, self._clock()):
            is_sold = seat.state is BookingState.CONFIRMED
            kind = ClaimKind.SOLD if is_sold else ClaimKind.HELD
            ends_at_us = SOLD_UNTIL_US if is_sold else seat.expires_at_us
            yield TakenSeat(seat.seat_index, kind, seat.fan, seat.booking_id, 0, ends_at_us)

    async def start(self) -> None:
        """Prepare every event for sale, then keep watching in the background."""
        for event_id in await self._claims.lost_among(list(self._sales)):
            await self.check(event_id)
        self._stopping = False
        self._task = start_loop(self._watch, "claim recovery")

    async def stop(self) -> None:
        if self._task is not None:
            self._stopping = True  # a client library below may swallow the cancellation
            self._doubted.set()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _watch(self) -> None:
        while not self._stopping:
            with contextlib.suppress(TimeoutError):  # wait_for of Python 3.11 can swallow a cancellation
                async with asyncio.timeout(CHECK_EVERY * self._check_s):
                    await self._doubted.wait()
            is_due = not self._doubted.is_set()
            self._doubted.clear()
            doubts, self._doubts = self._doubts, set()
            await self._check_some(doubts & set(self._sales), CHECK_EVERY if is_due else 1)
            if doubts:  # thousands may arrive: check at most a few times per second
                await asyncio.sleep(self._check_s / 4)

    async def _check_some(self, doubts: set[str], turns: int = 1) -> None:
        """Check the events in doubt and the next of the others, and reconcile those of the next turns."""
        events = list(self._sales)
        checked: list[str] = []
        if self._turn % CHECK_EVERY + turns >= CHECK_EVERY:
            checked = _next_of(events, self._checked, max(MANY, -(-len(events) // ROUNDS)))
            self._checked += len(checked)
        try:
            asked = [*dict.fromkeys((*doubts, *checked))]
            lost = await self._claims.lost_among(asked) if asked else set()
            if lost and len(asked) < len(events):  # a store that lost one event may have lost them all
                lost = await self._claims.lost_among(events)
        except FrontrowError as error:  # the store is unavailable: the next turn tries again
            self.stats.failures += 1
            self._doubts |= doubts
            note_failure(error)
            return
        note_success()
        for event_id in sorted(lost):
            await self._attempt(self.check, event_id)
        due = set[str]().union(*(self._due_for_reconciling(events) for _ in range(turns)))
        for event_id in sorted(doubts - lost | due):
            await self._attempt(self.reconcile, event_id)

    def _due_for_reconciling(self, events: list[str]) -> set[str]:
        """The events whose turn it is. One that changes is compared about twice per minute, a quiet one rarely."""
        self._turn += 1
        due = set(events[self._turn % self._reconcile_every :: self._reconcile_every])
        if len(events) > MANY and self._turn // self._reconcile_every % QUIET_ROUNDS:
            due = {one for one in due if self._taken.get(one) != self._sales.get(one).seats.taken}
        if len(self._taken) > len(events):  # some have ended
            self._taken = {event_id: taken for event_id, taken in self._taken.items() if event_id in self._sales}
        self._taken |= {event_id: self._sales.get(event_id).seats.taken for event_id in due}
        return due

    async def _attempt(self, action: Callable[[str], Awaitable[object]], event_id: str) -> None:
        try:
            await action(event_id)
        except Exception as error:  # the store or the ledger is unavailable, or a bug: a later turn tries again
            self.stats.failures += 1
            note_failure(error, event_id=event_id)


def _next_of(events: list[str], start: int, count: int) -> list[str]:
    """`count` of the events from position `start` on, beginning again at the end."""
    if count >= len(events):
        return events
    first = start % len(events)
    return (events[first:] + events[:first])[:count]


def _is_same_claim(stored: TakenSeat | None, actual: TakenSeat) -> bool:
    return (
        stored is not None
        and stored.booking_id == actual.booking_id
        and stored.kind is actual.kind
        and stored.expires_at_us == actual.expires_at_us
    )
