"""The specification of an attempt: from a claim to a hold, step by step, in plain `async` code.

An attempt has five steps:

1. **Claim** the seats in the claim store.
2. **Refuse** if others have them. The seat cache takes over who has them.
3. **Give up** if the caller has stopped waiting: release the claim.
4. **Place** the hold in the ledger. From here on the attempt finishes even if the caller stops waiting.
5. **Release** the claim if the ledger refuses, then pass the refusal on.

A store that does not answer (`Unavailable`) ends the attempt. If that store is the ledger, the hold may be written, so
the claim stays: a repeated request finds both, and claim recovery releases a claim without a booking.

Servers use `attempt.py`, which does the same with callbacks, because a task per attempt costs half as much again: 39 us
of CPU per hold here, 25 us there (refused by the claim store: 18 and 13 us; `python -m bench.seats --attempts`, median
of three rounds of 20,000). `server.plain_holds` selects this module instead, and tests/contracts/hold_attempts.py
checks both.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from frontrow.boxoffice.holds.background_tasks import BackgroundTasks
from frontrow.boxoffice.holds.events_on_sale import Sale
from frontrow.boxoffice.holds.held_seats import HeldSeats, new_hold
from frontrow.boxoffice.holds.model.claims import ClaimRefused, SeatClaim
from frontrow.boxoffice.holds.model.holds import HoldResult, HoldStats, SeatsTaken, ShopPass
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.shared.coalescer import move_result


@dataclass(frozen=True, slots=True)
class _Request:
    """What one caller asked for. `caller` is the future that the caller waits for."""

    sale: Sale
    shop_pass: ShopPass
    booking_id: str
    now_us: int
    key: str | None
    request: str
    caller: "asyncio.Future[HoldResult]"


class PlainAttempts:
    """Runs each attempt as a task of its own, which the caller cannot cancel."""

    def __init__(
        self, claims: SeatClaims, ledger: Ledger, held: HeldSeats, stats: HoldStats, background: BackgroundTasks
    ) -> None:
        self._claims, self._ledger, self._held, self._stats = claims, ledger, held, stats
        self._background = background
        self._tasks: set[asyncio.Task[HoldResult]] = set()

    def run_from_claim(
        self, claim: SeatClaim, sale: Sale, shop_pass: ShopPass, now_us: int, key: str | None, request: str
    ) -> "asyncio.Future[HoldResult]":
        """Start an attempt. Returns the future of its result."""
        caller: asyncio.Future[HoldResult] = asyncio.get_running_loop().create_future()
        asked = _Request(sale, shop_pass, claim.booking_id, now_us, key, request, caller)
        self._start(self._claim_and_place(claim, asked), caller)
        return caller

    def run_from_seats(
        self,
        seats: tuple[int, ...],
        sale: Sale,
        shop_pass: ShopPass,
        booking_id: str,
        now_us: int,
        key: str | None,
        request: str,
    ) -> "asyncio.Future[HoldResult]":
        """Start an attempt whose seats are already claimed. Returns the future of its result."""
        caller: asyncio.Future[HoldResult] = asyncio.get_running_loop().create_future()
        self._start(self._place(seats, _Request(sale, shop_pass, booking_id, now_us, key, request, caller)), caller)
        return caller

    async def aclose(self) -> None:
        """Wait for attempts, audits and releases that are under way."""
        while running := [*self._tasks, *self._background.running]:  # bounded by the timeouts of the stores
            await asyncio.wait(running)
            await asyncio.sleep(0)  # their callbacks take them out of the sets

    def _start(self, attempt: Coroutine[Any, Any, HoldResult], caller: "asyncio.Future[HoldResult]") -> None:
        task = asyncio.get_running_loop().create_task(attempt)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda ended: _answer(caller, ended))

    async def _claim_and_place(self, claim: SeatClaim, asked: _Request) -> HoldResult:
        """Steps 1 to 3."""
        sale, event_id = asked.sale, asked.sale.event.id
        try:
            answer = await self._claims.claim(claim, asked.now_us)
        except Unavailable:
            self._stats.unavailable += 1
            self._held.report_doubt(event_id)
            raise
        if isinstance(answer, ClaimRefused):
            self._stats.refused_by_claims += 1
            sale.seats.mark_claimed(answer.taken, asked.now_us)
            return sale.refusal_for([seat.seat for seat in answer.taken])
        if asked.caller.done():
            self._background.spawn(self._claims.release(event_id, answer.seats, asked.booking_id))
            raise asyncio.CancelledError
        return await self._place(answer.seats, asked)

    async def _place(self, seats: tuple[int, ...], asked: _Request) -> HoldResult:
        """Step 4. From now on this server refuses the seats to others, as the claim store does."""
        sale, now_us = asked.sale, asked.now_us
        sale.seats.mark_taken(seats, asked.shop_pass.fan, now_us + sale.hold_us, now_us)
        quote = sale.quote(seats)
        hold = new_hold(sale, asked.shop_pass, asked.booking_id, seats, quote, now_us, asked.key, asked.request)
        try:
            placed = await self._ledger.place_hold(hold)
        except Unavailable:  # the hold may be written: the claim stays
            self._stats.unavailable += 1
            raise
        except FrontrowError as error:
            return await self._release_and_refuse(seats, asked, error)
        if placed.seats != seats:  # a repeated request for the best seats: the first answer counts
            extra = [seat for seat in seats if seat not in placed.seats]
            self._background.spawn(self._claims.release(sale.event.id, extra, asked.booking_id))
        self._stats.won += 1
        self._stats.seats_won += len(placed.seats)
        return self._held.show_placed(sale, placed, quote, asked.shop_pass.id, now_us)

    async def _release_and_refuse(self, seats: tuple[int, ...], asked: _Request, error: FrontrowError) -> SeatsTaken:
        """Step 5. A claim that cannot be released expires; the caller gets the refusal all the same."""
        self._stats.refused_by_ledger += 1
        release = self._held.release_refused(asked.sale, asked.booking_id, seats, error, asked.now_us)
        await asyncio.wait([self._background.spawn(release)])
        asked.sale.seats.mark_free(seats)  # the next attempt calls the claim store
        if isinstance(error, SeatsTaken):
            return asked.sale.new_refusal(error.seats)
        raise error


def _answer(caller: "asyncio.Future[HoldResult]", ended: "asyncio.Task[HoldResult]") -> None:
    """Pass the outcome on, unless the caller has stopped waiting."""
    if not caller.done():
        move_result(ended, caller)
    elif not ended.cancelled():
        ended.exception()  # marks it as read, so that the event loop does not report it
