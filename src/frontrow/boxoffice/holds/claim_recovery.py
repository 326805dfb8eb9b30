"""Keeping the claim store true to the ledger (F1): noticing that it is lost, filling it, mending what drifted apart.

A store that was flushed, restarted or failed over refuses by itself (503); this service fills it from the ledger under
a new epoch. Apart from that the two can drift: a process died between its two writes, or a hold passed while the store
was being filled. `reconcile` compares and mends: what the ledger knows is put into the store, what the ledger does not
know and is older than any write on its way is released. So no seat is lost for ever, and none sold twice meanwhile,
because the ledger judges every hold.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec

from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.model.bookings import BookingState
from frontrow.boxoffice.model.claims import SOLD_UNTIL_US, ClaimKind, TakenSeat
from frontrow.boxoffice.ports.ledger import Ledger
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError

ON_ITS_WAY_US = 10_000_000  # a claim this young may still be on its way into the ledger


class Mended(msgspec.Struct, frozen=True):
    """What a comparison put into the store and what it released (seats)."""

    put: int
    released: int


class RecoveryStats(msgspec.Struct):
    rebuilds: int = 0
    mended: int = 0
    failures: int = 0


class Recovery:
    """Watches the claim store for the events on sale on this server."""

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
        self._doubts: set[str] = set()
        self._doubted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self.stats = RecoveryStats()

    def doubt(self, event_id: str) -> None:
        """Somebody saw the store lost or wrong: look at it now."""
        self._doubts.add(event_id)
        self._doubted.set()

    async def check(self, event_id: str) -> bool:
        """Fill the store if it is lost; True when the event can be sold."""
        if not await self._claims.lost(event_id):
            return True
        if await self._claims.rebuild(event_id, lambda: self._truth(event_id), self._clock()):
            self.stats.rebuilds += 1
            await self.reconcile(event_id)  # what changed in the ledger while the store was being filled
            return True
        return not await self._claims.lost(event_id)

    async def reconcile(self, event_id: str) -> Mended:
        """Compare the store with the ledger and mend the store."""
        now_us = self._clock()
        stored = await self._claims.states(event_id, now_us)
        real = {seat.seat: seat async for seat in self._truth(event_id)}
        missing = [seat for seat in real.values() if not _agrees(stored.get(seat.seat), seat)]
        if missing:
            await self._claims.put(event_id, missing, now_us)
        ghosts = [
            seat for seat in stored.values() if seat.seat not in real and seat.placed_at_us + ON_ITS_WAY_US <= now_us
        ]
        for ghost in ghosts:
            await self._claims.release(event_id, (ghost.seat,), ghost.booking_id)
        self._sales.get(event_id).seats.replace(
            [ghost.seat for ghost in ghosts] + [seat.seat for seat in missing],
            {seat.seat: seat for seat in missing},
            now_us,
        )
        self.stats.mended += len(missing) + len(ghosts)
        return Mended(len(missing), len(ghosts))

    async def _truth(self, event_id: str) -> AsyncIterator[TakenSeat]:
        async for seat in self._ledger.active_seats(event_id, self._clock()):
            is_sold = seat.state is BookingState.CONFIRMED
            kind = ClaimKind.SOLD if is_sold else ClaimKind.HELD
            ends_at_us = SOLD_UNTIL_US if is_sold else seat.expires_at_us
            yield TakenSeat(seat.seat_index, kind, seat.fan, seat.booking_id, 0, ends_at_us)

    async def start(self) -> None:
        """Make every event sellable, then keep watching in the background."""
        for event_id in self._sales:
            await self.check(event_id)
        self._stopping = False
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        if self._task is not None:
            self._stopping = True  # a client library below may swallow the cancellation
            self._doubted.set()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _watch(self) -> None:
        turn = 0
        while not self._stopping:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._check_s):  # wait_for of Python 3.11 can swallow a cancellation
                    await self._doubted.wait()
            self._doubted.clear()
            turn += 1
            doubts, self._doubts = self._doubts, set()
            for event_id in self._sales:
                await self._look(event_id, in_doubt=event_id in doubts or turn % self._reconcile_every == 0)
            await asyncio.sleep(self._check_s / 4)  # doubts come by the thousand: look at most a few times a second

    async def _look(self, event_id: str, *, in_doubt: bool) -> None:
        try:
            if await self.check(event_id) and in_doubt:
                await self.reconcile(event_id)
        except FrontrowError:  # the store or the ledger is away: the next turn tries again
            self.stats.failures += 1


def _agrees(stored: TakenSeat | None, real: TakenSeat) -> bool:
    return (
        stored is not None
        and stored.booking_id == real.booking_id
        and stored.kind is real.kind
        and stored.expires_at_us == real.expires_at_us
    )
