"""Refunds and cancellation (B12).

A refund is for seats and add-ons, line by line (`refunds.model.refund_lines`). Requesting it is one transaction in the
ledger: the money owed is saved, the seats are free, the tickets are void. The worker (refunds.payouts) pays it out and
survives outages and crashes as payments do. A whole event is cancelled in bounded batches. The bookings themselves say
what is done, so a repeated call continues where the last one stopped. Seats that were returned to the pool and not
resold are refunded with it, and the event's waitlist ends.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.events.model.events import Event, EventMove, EventStatus
from frontrow.boxoffice.gate.model.redemptions import count_used
from frontrow.boxoffice.holds.model.bookings import (
    Booking,
    BookingState,
    Move,
    MoveRefused,
    SeatsNotInBooking,
    StaleFence,
)
from frontrow.boxoffice.holds.ports.seat_listener import SeatListener
from frontrow.boxoffice.payments.model.disputes import BookingDisputed, check_undisputed
from frontrow.boxoffice.payments.model.payments import BY_FAN, Payment, PaymentChanged, PaymentState
from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.boxoffice.payments.payment_records import PaymentRecords
from frontrow.boxoffice.payments.ports import PaymentProvider
from frontrow.boxoffice.pricing.model.booking_choices import choice_of, uses_left
from frontrow.boxoffice.pricing.model.prices import decode_lines, has_add_ons
from frontrow.boxoffice.refunds.model.refund_lines import (
    EVERYTHING,
    RefundChoice,
    add_ons_gone,
    covers_choice,
    decode_refund_lines,
    encode_refund_lines,
    paid_for,
)
from frontrow.boxoffice.refunds.model.refund_rules import (
    RefundNotFound,
    RefundRefused,
    RefundSum,
    check_paid_online,
    check_window,
    refund_sum,
    resale_sum,
)
from frontrow.boxoffice.refunds.model.refunds import UNFINISHED_REFUNDS, BookingSeen, Refund, RefundState
from frontrow.boxoffice.refunds.model.ticket_returns import Return, ReturnState
from frontrow.boxoffice.refunds.payouts import RefundPayouts
from frontrow.boxoffice.refunds.ports.refunds import RefundLedger
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError, Refused
from frontrow.shared.log_lines import REFUND_ASKED, REFUND_REFUSED

PAGE: Final = 500
MAX_TRIES: Final = 20  # when refunds of one booking race, the loser counts its refunds again

Note = Callable[[Refund], Change]


class QuotedRefund(msgspec.Struct, frozen=True):
    """What a refund would pay now. `number` is the number it would have among the booking's refunds."""

    number: int
    sum: RefundSum


class CancellationProgress(msgspec.Struct, frozen=True):
    """How far the cancellation of an event is: the bookings handled so far, by result."""

    refunded: int = 0
    released: int = 0
    stopped: int = 0
    failed: int = 0
    last_booking_id: str = ""
    returned: int = 0  # seats that were in the pool of returned tickets and are refunded now


class Refunds:
    """Takes seats back and refunds them."""

    def __init__(
        self,
        ledger: RefundLedger,
        provider: PaymentProvider | OpenProviders,
        clock: Clock,
        *,
        seats: SeatListener | None = None,
    ) -> None:
        self._ledger, self._clock, self._seats = ledger, clock, seats
        self._records = PaymentRecords(ledger, clock)
        self._return_refunds = ReturnRefunds(ledger)
        self.payouts = RefundPayouts(ledger, provider, clock)

    async def work(self) -> int:
        """Pay out the refunds that are due now and return how many there were."""
        return await self.payouts.work()

    async def refund(
        self,
        booking_id: str,
        fence: int,
        seats: Sequence[int] | None = None,
        add_ons: Mapping[str, int] | None = None,
        *,
        number: int | None = None,
    ) -> Refund:
        """Refund some seats and add-ons of a booking (none named: everything) for its fan, by the event's policy.

        `number` is the number that a quote gave: a repeated call with it gets the same refund. Without it, a call that
        names the seats of an earlier refund gets that one.
        """
        booking = await self._records.load_booking(booking_id)
        if booking.fence != fence:
            raise StaleFence(booking_id, fence)
        event = await self._ledger.catalogue.event(booking.event_id)
        try:
            check_window(event, self._clock())
            check_paid_online(await self._ledger.payments.payments_of(booking_id))
            check_undisputed(booking_id, await self._ledger.payments.disputes_of(booking_id))
        except (RefundRefused, BookingDisputed) as error:
            REFUND_REFUSED(booking_id=booking.id, event_id=event.id, reason=error.code)
            raise
        choice = _choice(seats, add_ons)
        return await self._request(event, booking, choice, by_policy=True, reason=BY_FAN, number=number)

    async def quote(
        self,
        booking: Booking,
        seats: Sequence[int] | None = None,
        add_ons: Mapping[str, int] | None = None,
        *,
        by_policy: bool = True,
    ) -> QuotedRefund:
        """What `refund` would pay now for these seats and add-ons (none named: everything), line by line.

        Not `by_policy`: what the organiser's `override` would pay in full.
        """
        event = await self._ledger.catalogue.event(booking.event_id)
        if by_policy:
            check_window(event, self._clock())
            check_paid_online(await self._ledger.payments.payments_of(booking.id))
        check_undisputed(booking.id, await self._ledger.payments.disputes_of(booking.id))
        return await self.work_out(event, booking, seats, add_ons, by_policy=by_policy)

    async def work_out(
        self,
        event: Event,
        booking: Booking,
        seats: Sequence[int] | None = None,
        add_ons: Mapping[str, int] | None = None,
        *,
        by_policy: bool,
    ) -> QuotedRefund:
        """Like `quote`, also after the policy's last day."""
        refunds = await self._ledger.payments.refunds_of(booking.id)
        payments = await self._ledger.payments.payments_of(booking.id)
        used = await self._used(booking)
        worked_out = await self._work_out(event, booking, _choice(seats, add_ons), refunds, payments, by_policy, used)
        return QuotedRefund(_next_number(refunds), worked_out)

    async def quote_return(self, booking: Booking, seats: Sequence[int]) -> RefundSum:
        """What these seats bring back once they are resold: the policy keeps nothing of it."""
        refunds = await self._ledger.payments.refunds_of(booking.id)
        prices = await self._ledger.payments.seat_prices(booking.id)
        return resale_sum(booking, paid_for(booking, prices, _gone(refunds), await self._used(booking)), seats)

    async def override(
        self,
        booking_id: str,
        seats: Sequence[int] | None = None,
        add_ons: Mapping[str, int] | None = None,
        *,
        free_of_fee: bool = True,
        reason: str = "organiser",
        note: Note | None = None,
        number: int | None = None,
    ) -> Refund:
        """Refund for the organiser, whatever the policy says. `note` records who did it, in the same transaction."""
        booking = await self._records.load_booking(booking_id)
        check_undisputed(booking_id, await self._ledger.payments.disputes_of(booking_id))
        event = await self._ledger.catalogue.event(booking.event_id)
        choice = _choice(seats, add_ons)
        return await self._request(
            event, booking, choice, by_policy=not free_of_fee, reason=reason, note=note, number=number
        )

    async def retry(self, booking_id: str, refund_id: str, note: Note) -> Refund:
        """Try a failed refund again, under a new key. A refund that is not finished stays as it is."""
        refunds = await self._ledger.payments.refunds_of(booking_id)
        found = next((refund for refund in refunds if refund.id == refund_id), None)
        if found is None:
            raise RefundNotFound(f"booking {booking_id} has no refund {refund_id[:60]}", refund=refund_id[:60])
        if found.state in UNFINISHED_REFUNDS:
            return found
        if found.state is not RefundState.FAILED:
            raise RefundRefused("only a refund that failed can be tried again", refund=found.id)
        now_us = self._clock()
        return await self._ledger.organiser.save_refund_noted(found.retried(now_us), now_us=now_us, change=note(found))

    async def _request(
        self,
        event: Event,
        booking: Booking,
        choice: RefundChoice,
        *,
        by_policy: bool,
        reason: str,
        note: Note | None = None,
        number: int | None = None,
    ) -> Refund:
        for _ in range(MAX_TRIES):
            refunds = await self._ledger.payments.refunds_of(booking.id)
            earlier = _find_repeated(booking, refunds, choice, number)
            if earlier is not None:
                return earlier  # requested before: the answer was lost, or this is a second click
            if booking.state is not BookingState.CONFIRMED:
                if choice.is_everything and booking.state is BookingState.REFUNDED and refunds:
                    return refunds[-1]
                raise MoveRefused(booking.id, booking.state, Move.REFUND)
            seen = booking
            try:
                refund = await self._save(event, booking, choice, refunds, by_policy, reason, note)
                REFUND_ASKED(
                    refund_id=refund.id,
                    booking_id=booking.id,
                    event_id=booking.event_id,
                    seats=len(refund.seats),
                    amount_minor=refund.amount_minor,
                    currency=refund.currency,
                    reason=reason,
                )
                await self._free(booking, refund.seats)
                return refund
            except PaymentChanged:
                booking = await self._records.load_booking(booking.id)
            except SeatsNotInBooking:  # another request may have returned them between two of our reads
                booking = await self._records.load_booking(booking.id)
                if booking == seen:
                    raise
        raise PaymentChanged(booking.id)

    async def _save(
        self,
        event: Event,
        booking: Booking,
        choice: RefundChoice,
        refunds: Sequence[Refund],
        by_policy: bool,
        reason: str,
        note: Note | None,
    ) -> Refund:
        payments = await self._ledger.payments.payments_of(booking.id)
        used = await self._used(booking)
        worked_out = await self._work_out(event, booking, choice, refunds, payments, by_policy, used)
        new = self._new_refund(booking, worked_out, refunds, payments, reason)
        uses = _uses_left(event, booking, worked_out.choice, refunds)
        fence, now_us = booking.fence, self._clock()
        seen = BookingSeen(booking.amount_minor, tuple(sorted(used.items())))
        if note is None:
            return await self._ledger.payments.ask_refund(new, fence=fence, now_us=now_us, seen=seen, uses=uses)
        return await self._ledger.organiser.refund_noted(
            new, fence=fence, now_us=now_us, change=note(new), seen=seen, uses=uses
        )

    async def _used(self, booking: Booking) -> Counter[str]:
        """How many of which add-on were redeemed at the gate."""
        if not has_add_ons(booking.price_lines):
            return Counter()
        return count_used(await self._ledger.redemptions.redemptions_of(booking.id))

    async def _work_out(
        self,
        event: Event,
        booking: Booking,
        choice: RefundChoice,
        refunds: Sequence[Refund],
        payments: Sequence[Payment],
        by_policy: bool,
        used: Mapping[str, int],
    ) -> RefundSum:
        prices = await self._ledger.payments.seat_prices(booking.id)
        cancelled = event.status is EventStatus.CANCELLED  # everything goes back
        paid = paid_for(booking, prices, _gone(refunds), {} if cancelled else used)
        left = None
        if payments:
            promised = sum(one.promised_minor for one in refunds if one.payment_id == payments[-1].id)
            left = max(0, payments[-1].amount_minor - promised)
        return refund_sum(event, booking, paid, choice, self._clock(), by_policy=by_policy, left_minor=left)

    def _new_refund(
        self,
        booking: Booking,
        worked_out: RefundSum,
        refunds: Sequence[Refund],
        payments: Sequence[Payment],
        reason: str,
    ) -> Refund:
        number, now_us = _next_number(refunds), self._clock()
        refund = Refund(
            f"rfd_{booking.id.removeprefix('bkg_')}_{number}",
            booking.id,
            payments[-1].id if payments else "",
            number,
            worked_out.amount_minor,
            booking.currency,
            worked_out.choice.seats,
            worked_out.fee_minor,
            reason=reason,
            retry_at_us=now_us,
            created_at_us=now_us,
            changed_at_us=now_us,
            lines=encode_refund_lines(worked_out.lines),
        )
        if payments and worked_out.amount_minor:
            return refund
        if not payments or not worked_out.fee_minor:
            return replace(refund, state=RefundState.MOOT, retry_at_us=0)
        if payments[-1].state is not PaymentState.CAPTURED:  # the worker sees whether there is money to keep
            return refund
        return replace(refund, state=RefundState.DONE, retry_at_us=0)  # nothing to pay: the organiser keeps all of it

    async def _free(self, booking: Booking, seats: Sequence[int]) -> None:
        if self._seats is not None:
            with contextlib.suppress(FrontrowError):  # claim recovery repairs the claim store
                await self._seats.freed(booking.event_id, seats, booking.id)

    async def cancel_booking(self, booking_id: str, reason: str = "organiser") -> str:
        """End one booking for its organiser: release a hold, stop a payment or refund a purchase in full.

        Returns what was done: "released", "stopped", "refunded", "failed", or "over" when it had ended before.
        """
        booking = await self._records.load_booking(booking_id)
        event = await self._ledger.catalogue.event(booking.event_id)
        return await self._end_booking(event, booking, reason)

    # Cancelling a whole event.

    async def cancel_event(self, event_id: str, *, page: int = PAGE) -> AsyncIterator[CancellationProgress]:
        """Stop the sale, end the waitlist, then refund everyone, one page per iteration. Call it again to resume."""
        event = await self._ledger.catalogue.event(event_id)
        if event.status is not EventStatus.CANCELLED:
            event = event.moved(EventMove.CANCEL)
            await self._ledger.catalogue.put_event(event, self._clock())
        progress = CancellationProgress(failed=await self._end_waitlist(event_id, page))
        while True:  # ends with the bookings: the event takes no new ones
            bookings = await self._ledger.live_bookings(event_id, progress.last_booking_id, page)
            if not bookings:
                break
            done = await asyncio.gather(*(self._end_booking(event, booking) for booking in bookings))
            progress = CancellationProgress(
                progress.refunded + done.count("refunded"),
                progress.released + done.count("released"),
                progress.stopped + done.count("stopped"),
                progress.failed + done.count("failed"),
                bookings[-1].id,
            )
            yield progress
        async for paid, failed in self._pay_returns(event_id, page):
            progress = replace(progress, returned=progress.returned + paid, failed=progress.failed + failed)
            yield progress

    async def _end_waitlist(self, event_id: str, page: int) -> int:
        """End every waitlist entry of the event. Returns how many could not be ended yet."""
        while True:  # ends with the entries: a cancelled event takes no new ones
            page_done = await self._ledger.waitlist.end_line(event_id, page, self._clock())
            if self._seats is not None:
                for offer in page_done.withdrawn:
                    with contextlib.suppress(FrontrowError):  # claim recovery repairs the claim store
                        await self._seats.freed(offer.event_id, offer.seats, offer.booking_id)
            if not page_done.entries:
                return page_done.left

    async def _pay_returns(self, event_id: str, page: int) -> AsyncIterator[tuple[int, int]]:
        """Refund returned tickets that were not resold. Yields (refunded, failed) per page."""
        after = ""
        while True:  # ends with the returns: a cancelled event takes no new ones
            returns = await self._ledger.returns.returns_of_event(event_id, after, page)
            if not returns:
                return
            done = await asyncio.gather(*(self._pay_return(one) for one in returns))
            yield done.count(True), done.count(False)
            after = returns[-1].id

    async def _pay_return(self, given: Return) -> bool | None:
        """Whether its refund is saved; None when there was nothing to pay."""
        try:
            now_us = self._clock()
            if given.state is ReturnState.GIVING:
                listed = await self._ledger.returns.list_return(given.booking_id, [given.seat_index], now_us)
                if not listed:  # its booking was refunded with this seat
                    return None
                given = listed[0]
            await self._return_refunds.refund_return(given, now_us, "event_cancelled")
            for was in (ReturnState.LISTED, ReturnState.RESOLD):
                if await self._ledger.returns.turn_return(given.id, was, ReturnState.REFUNDED, now_us):
                    return True
        except FrontrowError:
            return False
        return None

    async def _end_booking(self, event: Event, booking: Booking, reason: str = "event_cancelled") -> str:
        """End one booking and return what was done, as `cancel_booking` does."""
        for _ in range(MAX_TRIES):
            try:
                return await self._try_to_end(event, booking, reason)
            except (Refused, PaymentChanged):  # another process moved it: load it again
                booking = await self._records.load_booking(booking.id)
            except FrontrowError:
                break
        return "failed"

    async def _try_to_end(self, event: Event, booking: Booking, reason: str) -> str:
        now_us = self._clock()
        match booking.state:
            case BookingState.CONFIRMED:
                await self._request(event, booking, EVERYTHING, by_policy=False, reason=reason)
                return "refunded"
            case BookingState.HELD:
                await self._ledger.release_hold(booking.id, booking.fence, now_us)
                await self._free(booking, booking.seats)
                return "released"
            case BookingState.PAYING:
                payment = await self._records.latest_payment(booking.id)
                if payment is not None:  # due at once: the worker voids it
                    due = self._records.reschedule(payment, now_us)
                    await self._records.save(due, Move.DECLINE, booking, reason=reason)
                await self._free(booking, booking.seats)
                return "stopped"
            case _:
                return "over"


def _choice(seats: Sequence[int] | None, add_ons: Mapping[str, int] | None) -> RefundChoice:
    some = {key: count for key, count in (add_ons or {}).items() if count}
    return RefundChoice(tuple(sorted(set(seats or ()))), some)


def _gone(refunds: Sequence[Refund]) -> Counter[str]:
    """How many of which add-on were refunded."""
    return add_ons_gone([decode_refund_lines(one.lines) for one in refunds])


def _next_number(refunds: Sequence[Refund]) -> int:
    return max([refund.number for refund in refunds], default=0) + 1


def _find_repeated(
    booking: Booking, refunds: Sequence[Refund], choice: RefundChoice, number: int | None
) -> Refund | None:
    """The earlier refund that this request repeats. `PaymentChanged` if another one has its number."""
    for earlier in refunds:
        same = covers_choice(earlier.seats, decode_refund_lines(earlier.lines), choice)
        if choice.is_everything:
            same = booking.state is BookingState.REFUNDED and earlier is refunds[-1]
        if same and (number == earlier.number or (number is None and choice.seats)):
            return earlier
        if number == earlier.number:
            raise PaymentChanged(earlier.id)
    return None


def _uses_left(
    event: Event, booking: Booking, choice: RefundChoice, refunds: Sequence[Refund]
) -> tuple[tuple[str, int], ...]:
    """What the booking still uses of stocks and limits after this refund. Empty if it ends."""
    kept = set(booking.seats) - set(choice.seats)
    if not kept or not (event.add_ons or event.limits):
        return ()
    lines, gone = decode_lines(booking.price_lines), _gone(refunds) + Counter(choice.add_ons)
    left = {key: count - gone[key] for key, count in choice_of(event, lines).add_ons.items()}
    return uses_left(event, lines, kept, left)
