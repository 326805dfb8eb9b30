"""Refunds and cancellation (B12): seats back to sale at once, money back for sure.

Asking for a refund is one transaction in the ledger: the money owed is written down, the seats are free, the tickets
are void. Paying it out is the worker's business and survives outages and crashes like a payment does. A whole event is
cancelled in bounded batches; what is done is known by the bookings themselves, so doing it again goes on where it was.
Seats that were returned to the pool and not resold are paid back with it, and its waitlist ends.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from frontrow.boxoffice.checkout.payment_driver import Seats
from frontrow.boxoffice.checkout.provider_calls import Asking, SaleLedger
from frontrow.boxoffice.model.bookings import Booking, BookingState, Move, MoveRefused, StaleFence
from frontrow.boxoffice.model.event_changes import Change
from frontrow.boxoffice.model.events import Event, EventMove, EventStatus
from frontrow.boxoffice.model.payments import UNFINISHED_REFUNDS, PaymentChanged, Refund, RefundState
from frontrow.boxoffice.model.refund_rules import RefundNotFound, RefundRefused, check_window, refund_amount
from frontrow.boxoffice.model.ticket_returns import Return, ReturnState
from frontrow.boxoffice.ports.payments import PaymentProvider
from frontrow.boxoffice.ports.waitlist import WaitlistBook
from frontrow.boxoffice.refunds.payouts import Repaying
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError, Refused

PAGE: Final = 500
COUNT_AGAIN: Final = 20  # racing refunds of one booking count its refunds again


Note = Callable[[Refund], Change]


class NotedRefunds(Protocol):
    """Refunds that are written together with the note of who gave them."""

    async def save_refund_noted(self, refund: Refund, *, now_us: int, change: Change) -> Refund: ...

    async def refund_noted(self, refund: Refund, *, fence: int, now_us: int, change: Change) -> Refund: ...


class RefundLedger(SaleLedger, Protocol):
    """What refunds and cancelled events need of the ledger."""

    @property
    def waitlist(self) -> WaitlistBook: ...

    @property
    def organiser(self) -> NotedRefunds: ...

    async def release_hold(self, booking_id: str, fence: int, now_us: int) -> Booking: ...

    async def live_bookings(self, event_id: str, after: str, limit: int) -> list[Booking]: ...


class Progress(msgspec.Struct, frozen=True):
    """How far the cancellation of an event has come: bookings seen so far, by what became of them."""

    refunded: int = 0
    released: int = 0
    stopped: int = 0
    failed: int = 0
    last_booking_id: str = ""
    returned: int = 0  # seats that had been given back to the pool, and are paid back now


class Refunds(Repaying):
    """Gives seats and money back."""

    def __init__(
        self, ledger: RefundLedger, provider: PaymentProvider, clock: Clock, *, seats: Seats | None = None
    ) -> None:
        super().__init__(ledger, provider, clock)
        self._sales: RefundLedger = ledger
        self._asking = Asking(ledger, provider, clock)
        self._returned = ReturnRefunds(ledger)
        self._seats = seats

    async def refund(self, booking_id: str, fence: int, seats: Sequence[int] | None = None) -> Refund:
        """A fan gives back some seats (None: all), by the event's policy."""
        booking = await self._asking.load(booking_id)
        if booking.fence != fence:
            raise StaleFence(booking_id, fence)
        event = await self._sales.catalogue.event(booking.event_id)
        check_window(event, self._clock())
        return await self._ask(event, booking, seats, free_of_fee=False, reason="fan")

    async def override(
        self,
        booking_id: str,
        seats: Sequence[int] | None = None,
        *,
        free_of_fee: bool = True,
        reason: str = "organiser",
        note: Note | None = None,
    ) -> Refund:
        """The organiser gives money back whatever the policy says; `note` says who did, in the same transaction."""
        booking = await self._asking.load(booking_id)
        event = await self._sales.catalogue.event(booking.event_id)
        return await self._ask(event, booking, seats, free_of_fee=free_of_fee, reason=reason, note=note)

    async def retry(self, booking_id: str, refund_id: str, note: Note) -> Refund:
        """Ask the provider again for a refund that failed, under a new key; one that is on its way stays as it is."""
        refunds = await self._ledger.payments.refunds_of(booking_id)
        found = next((refund for refund in refunds if refund.id == refund_id), None)
        if found is None:
            raise RefundNotFound(f"booking {booking_id} has no refund {refund_id[:60]}", refund=refund_id[:60])
        if found.state in UNFINISHED_REFUNDS:
            return found
        if found.state is not RefundState.FAILED:
            raise RefundRefused("only a refund that failed can be tried again", refund=found.id)
        now_us = self._clock()
        return await self._sales.organiser.save_refund_noted(found.retried(now_us), now_us=now_us, change=note(found))

    async def _ask(
        self,
        event: Event,
        booking: Booking,
        seats: Sequence[int] | None,
        *,
        free_of_fee: bool,
        reason: str,
        note: Note | None = None,
    ) -> Refund:
        for _ in range(COUNT_AGAIN):
            refunds = await self._ledger.payments.refunds_of(booking.id)
            if seats is not None:
                for known in refunds:
                    if set(known.seats) == set(seats):
                        return known  # asked before: the answer was lost, or a second click
            if booking.state is not BookingState.CONFIRMED:
                if seats is None and booking.state is BookingState.REFUNDED and refunds:
                    return refunds[-1]
                raise MoveRefused(booking.id, booking.state, Move.REFUND)
            new = await self._new(event, booking, tuple(sorted(seats or booking.seats)), refunds, free_of_fee, reason)
            with contextlib.suppress(PaymentChanged):
                asked = await self._write(new, booking.fence, note)
                await self._free(booking, asked.seats)
                return asked
            booking = await self._asking.load(booking.id)
        raise PaymentChanged(booking.id)

    async def _write(self, new: Refund, fence: int, note: Note | None) -> Refund:
        now_us = self._clock()
        if note is None:
            return await self._ledger.payments.ask_refund(new, fence=fence, now_us=now_us)
        return await self._sales.organiser.refund_noted(new, fence=fence, now_us=now_us, change=note(new))

    async def _new(
        self,
        event: Event,
        booking: Booking,
        seats: tuple[int, ...],
        refunds: Sequence[Refund],
        free_of_fee: bool,
        reason: str,
    ) -> Refund:
        prices = await self._ledger.payments.seat_prices(booking.id)
        amount, fee = refund_amount(event, booking, prices, seats, free_of_fee=free_of_fee)
        payments = await self._ledger.payments.payments_of(booking.id)
        number = max([refund.number for refund in refunds], default=0) + 1
        now_us = self._clock()
        owed = Refund(
            f"rfd_{booking.id.removeprefix('bkg_')}_{number}", booking.id, payments[-1].id if payments else "",
            number, amount, booking.currency, seats, fee, reason=reason, retry_at_us=now_us, created_at_us=now_us,
            changed_at_us=now_us,
        )  # fmt: skip
        return owed if payments and amount else replace(owed, state=RefundState.MOOT, retry_at_us=0)

    async def _free(self, booking: Booking, seats: Sequence[int]) -> None:
        if self._seats is not None:
            with contextlib.suppress(FrontrowError):  # recovery makes the claim store agree
                await self._seats.freed(booking.event_id, seats, booking.id)

    async def cancel_booking(self, booking_id: str, reason: str = "organiser") -> str:
        """End one booking for its organiser: a hold is released, a payment stopped, a purchase refunded in full. What
        became of it; "over" when it had ended before."""
        booking = await self._asking.load(booking_id)
        event = await self._sales.catalogue.event(booking.event_id)
        return await self._stop(event, booking, reason)

    # a whole event

    async def cancel_event(self, event_id: str, *, page: int = PAGE) -> AsyncIterator[Progress]:
        """Stop the sale, end the waitlist, then refund everybody, a page at a time; iterate to go on, again to
        resume."""
        event = await self._sales.catalogue.event(event_id)
        if event.status is not EventStatus.CANCELLED:
            event = event.moved(EventMove.CANCEL)
            await self._sales.catalogue.put_event(event, self._clock())
        progress = Progress(failed=await self._end_line(event_id, page))
        while True:  # ends with the bookings: the event takes no new ones
            bookings = await self._sales.live_bookings(event_id, progress.last_booking_id, page)
            if not bookings:
                break
            done = await asyncio.gather(*(self._stop(event, booking) for booking in bookings))
            progress = Progress(
                progress.refunded + done.count("refunded"),
                progress.released + done.count("released"),
                progress.stopped + done.count("stopped"),
                progress.failed + done.count("failed"),
                bookings[-1].id,
            )
            yield progress
        async for paid, failed in self._pay_returns(event_id, page):
            progress = msgspec.structs.replace(
                progress, returned=progress.returned + paid, failed=progress.failed + failed
            )
            yield progress

    async def _end_line(self, event_id: str, page: int) -> int:
        """Nobody waits any more; how many entries could not be ended yet."""
        while True:  # ends with the line: a cancelled event takes nobody in
            done = await self._sales.waitlist.end_line(event_id, page, self._clock())
            if self._seats is not None:
                for offer in done.withdrawn:
                    with contextlib.suppress(FrontrowError):  # recovery makes the claim store agree
                        await self._seats.freed(offer.event_id, offer.seats, offer.booking_id)
            if not done.entries:
                return done.left

    async def _pay_returns(self, event_id: str, page: int) -> AsyncIterator[tuple[int, int]]:
        """Seats that were returned to the pool: nobody will buy them any more, so their price is owed now."""
        after = ""
        while True:  # ends with the returns: a cancelled event takes no new ones
            given = await self._sales.returns.returns_of_event(event_id, after, page)
            if not given:
                return
            done = await asyncio.gather(*(self._pay_return(one) for one in given))
            yield done.count(True), done.count(False)
            after = given[-1].id

    async def _pay_return(self, given: Return) -> bool | None:
        """Whether its refund is written down; None when there was nothing to pay."""
        try:
            now_us = self._clock()
            if given.state is ReturnState.GIVING:
                listed = await self._sales.returns.list_return(given.booking_id, [given.seat_index], now_us)
                if not listed:  # its booking was refunded with this seat
                    return None
            await self._returned.refund_return(given, now_us, "event_cancelled")
            for was in (ReturnState.LISTED, ReturnState.RESOLD):
                if await self._sales.returns.turn_return(given.id, was, ReturnState.REFUNDED, now_us):
                    return True
        except FrontrowError:
            return False
        return None

    async def _stop(self, event: Event, booking: Booking, reason: str = "event_cancelled") -> str:
        """End one booking; what became of it."""
        for _ in range(COUNT_AGAIN):
            try:
                return await self._end(event, booking, reason)
            except (Refused, PaymentChanged):  # it moved under our hands: look again
                booking = await self._asking.load(booking.id)
            except FrontrowError:
                break
        return "failed"

    async def _end(self, event: Event, booking: Booking, reason: str) -> str:
        now_us = self._clock()
        match booking.state:
            case BookingState.CONFIRMED:
                await self._ask(event, booking, None, free_of_fee=True, reason=reason)
                return "refunded"
            case BookingState.HELD:
                await self._sales.release_hold(booking.id, booking.fence, now_us)
                await self._free(booking, booking.seats)
                return "released"
            case BookingState.PAYING:
                payment = await self._asking.latest(booking.id)
                if payment is not None:  # due at once: the worker voids it
                    due = self._asking.touched(payment, now_us)
                    await self._asking.save(due, Move.DECLINE, booking, reason=reason)
                await self._free(booking, booking.seats)
                return "stopped"
            case _:
                return "over"
