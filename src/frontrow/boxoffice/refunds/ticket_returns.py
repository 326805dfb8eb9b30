"""Ticket returns: a holder returns tickets and is refunded when the seats are resold at face value.

A return is final. The order of steps keeps a seat from having two valid tickets, and a holder from losing both ticket
and money: the intent is saved, the gates are notified, then one transaction revokes the ledger's ticket and frees the
seat (for the waitlist, or for everyone). When a later booking of the seat is confirmed, the price is owed and paid
once. If the process dies anywhere in between, the sweep continues from what was saved.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.facts.model import BookingConfirmed, Fact
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.ports.seat_listener import SeatListener
from frontrow.boxoffice.payments.ports import PaymentLedger
from frontrow.boxoffice.refunds.model.refund_rules import check_paid_online
from frontrow.boxoffice.refunds.model.ticket_returns import Return, ReturnState, check_returnable
from frontrow.boxoffice.refunds.ports.returns import TicketRevoker
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError
from frontrow.core.failures import note_failure, note_success

BATCH: Final = 200
BATCHES_PER_SWEEP: Final = 50
EVERY_S: Final = 5.0
LONGEST_PAUSE_S: Final = 30.0


class ReturnStats(msgspec.Struct):
    listed: int = 0
    resold: int = 0
    refunded: int = 0
    failures: int = 0


class TicketReturns:
    """Takes tickets back and refunds them once they are resold."""

    def __init__(
        self,
        sales: Sales,
        ledger: PaymentLedger,
        seats: SeatListener,
        money: ReturnRefunds,
        clock: Clock,
        *,
        tickets: TicketRevoker | None = None,
        every_s: float = EVERY_S,
    ) -> None:
        self._sales, self._ledger, self._seats, self._clock = sales, ledger, seats, clock
        self._tickets, self._money = tickets, money
        self._every_s = every_s
        self._woken = asyncio.Event()
        self.stats = ReturnStats()

    async def give_back(self, booking_id: str, fan: str, fence: int, seats: Sequence[int] = ()) -> list[Return]:
        """Return these seats of a booking (none named: all). When it returns, their tickets are revoked."""
        now_us = self._clock()
        booking = await self._ledger.booking(booking_id)
        if booking is not None:
            event = await self._ledger.catalogue.event(booking.event_id)
            check_returnable(event, booking_id, now_us)
            seats = seats or booking.seats
            check_paid_online(await self._ledger.payments.payments_of(booking_id))
        given = await self._ledger.returns.begin_return(booking_id, fan, fence, seats, now_us)
        await self._revoke_and_list(given, now_us)
        return [r for r in await self._ledger.returns.returns_of(booking_id) if r.seat_index in set(seats)]

    async def _revoke_and_list(self, given: Sequence[Return], now_us: int) -> None:
        """Revoke the tickets, then free the seats, of returns in state `giving`."""
        by_booking: defaultdict[str, list[Return]] = defaultdict(list)
        for one in given:
            if one.state is ReturnState.GIVING:
                by_booking[one.booking_id].append(one)
        for booking_id, ones in by_booking.items():
            seats = [one.seat_index for one in ones]
            if self._tickets is not None:
                await self._tickets.revoke(booking_id, seats, now_us)
            listed = await self._ledger.returns.list_return(booking_id, seats, now_us)
            self.stats.listed += len(listed)
            if listed and listed[0].event_id in set(self._sales):
                await self._seats.freed(listed[0].event_id, [one.seat_index for one in listed], booking_id)

    def note_fact(self, fact: Fact) -> None:
        """Note a confirmed booking: it may be a resale. The sweep finds resales without it, only later."""
        if isinstance(fact, BookingConfirmed):
            self._woken.set()

    async def run(self) -> None:
        """Sweep every few seconds until cancelled. The pauses grow, up to a bound, while the ledger is unavailable."""
        pause_s = self._every_s
        while True:  # until cancelled
            try:
                await self.sweep()
                pause_s = self._every_s
                note_success()
            except FrontrowError as error:
                self.stats.failures += 1
                note_failure(error)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._woken.wait()

    async def sweep(self) -> None:
        """Continue what a crash left unfinished, find resales and refund them, in bounded steps."""
        await self._revoke_and_list(await self._ledger.returns.returns_in(ReturnState.GIVING, BATCH), self._clock())
        for _ in range(BATCHES_PER_SWEEP):
            resold = await self._ledger.returns.mark_resales(self._clock(), BATCH)
            self.stats.resold += len(resold)
            if len(resold) < BATCH:
                break
        for _ in range(BATCHES_PER_SWEEP):
            owed = await self._ledger.returns.returns_in(ReturnState.RESOLD, BATCH)
            paid = sum([await self._pay(one) for one in owed])
            if len(owed) < BATCH or not paid:
                break

    async def _pay(self, owed: Return) -> bool:
        now_us = self._clock()
        try:
            await self._money.refund_return(owed, now_us)
        except FrontrowError as error:  # tried again in the next sweep, after the others
            self.stats.failures += 1
            note_failure(error, return_id=owed.id, booking_id=owed.booking_id)
            await self._ledger.returns.turn_return(owed.id, ReturnState.RESOLD, ReturnState.RESOLD, now_us)
            return False
        paid = await self._ledger.returns.turn_return(owed.id, ReturnState.RESOLD, ReturnState.REFUNDED, now_us)
        self.stats.refunded += paid
        return True
