"""Drives one payment to its next rest: decide (model.saga), write the intent, ask the provider, write the answer.

No transaction is open during a call. A state that asks something of the provider is written before the call; a driver
that finds such a state and did not write it itself just now reads the provider's object first. Two drivers of one
payment do no harm: each write is compare-and-set, each call has the same key.
"""

import contextlib
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from frontrow.boxoffice.checkout.provider_calls import Asking, SaleLedger
from frontrow.boxoffice.model.bookings import HOLD_STATES, Booking, BookingState, HoldEnded, Move, MoveRefused
from frontrow.boxoffice.model.events import EventCancelled
from frontrow.boxoffice.model.facts import Fact, LatePaymentReturned, PriorityGranted
from frontrow.boxoffice.model.payment_saga import Step, next_look_us, next_step
from frontrow.boxoffice.model.payments import (
    LOOK_AGAIN_S,
    TAKES_CARDS,
    Payment,
    PaymentChanged,
    PaymentState,
    Refund,
)
from frontrow.boxoffice.model.provider_intents import ProviderSpared, ProviderUnknown
from frontrow.boxoffice.model.ticket_returns import OWED_STATES
from frontrow.boxoffice.model.tickets import NewTicket, TicketScanned
from frontrow.boxoffice.ports.ledger import TicketIssuer
from frontrow.boxoffice.ports.payments import PaymentProvider
from frontrow.boxoffice.tickets.rotating_codes import RotatingCodes
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError

MAX_STEPS: Final = 24  # more than the longest way through the table; then the worker comes again
PRIORITY_S: Final = 86_400
WAITS_FOR_FAN: Final = frozenset({PaymentState.OPEN, PaymentState.ACTION})  # the provider's own form is open
MEETS_OUTAGES: Final = WAITS_FOR_FAN | {PaymentState.CREATING, PaymentState.AUTHORISING}  # while a fan wants to pay
READ_BACK: Final = TAKES_CARDS | {PaymentState.CAPTURING, PaymentState.VOIDING}


class Seats(Protocol):
    """Who keeps the claim store and the map in step (services.held.HeldSeats)."""

    async def sold(self, booking: Booking) -> None: ...

    async def freed(self, event_id: str, seats: Sequence[int], booking_id: str) -> None: ...


class Driver(Asking):
    """Moves payments and their bookings."""

    def __init__(
        self,
        ledger: SaleLedger,
        provider: PaymentProvider,
        clock: Clock,
        *,
        seats: Seats | None = None,
        issuer: TicketIssuer | None = None,
    ) -> None:
        super().__init__(ledger, provider, clock)
        self._seats, self._issuer = seats, issuer
        self._rotating = RotatingCodes(ledger.catalogue)

    async def drive(self, booking: Booking, payment: Payment, *, fresh: bool = False) -> tuple[Booking, Payment]:
        """Go on until the payment rests or must wait; `fresh`: the caller wrote this state a moment ago."""
        for _ in range(MAX_STEPS):
            before = payment
            try:
                booking, payment = await self._step(booking, payment, fresh=fresh)
                fresh = True
            except PaymentChanged:
                booking, payment, fresh = await self.load(booking.id), await self.reload(payment), False
                continue
            except TicketScanned:  # never paid, and inside: a person must look (the reconciler says so)
                return booking, await self._wait_for_a_person(payment)
            except (HoldEnded, MoveRefused):  # the booking moved on (F4): look at it again, the payment is as it was
                booking = await self.load(booking.id)
                continue
            except (ProviderUnknown, ProviderSpared) as error:
                return booking, await self._later(booking, payment, error)
            if payment is before:
                break
        return booking, payment

    async def _wait_for_a_person(self, payment: Payment) -> Payment:
        rested = self.touched(payment)
        await self.save(rested)
        return rested

    async def _later(self, booking: Booking, payment: Payment, error: ProviderUnknown | ProviderSpared) -> Payment:
        """Note the outage and when to look again; inside the hold as long as somebody waits for it."""
        now_us = self.clock()
        answered = isinstance(error, ProviderUnknown) and error.answered
        later = payment.again(now_us, answered=answered)
        if booking.state in HOLD_STATES and now_us < booking.hold_expires_at_us < later.retry_at_us:
            later = replace(later, retry_at_us=booking.hold_expires_at_us)
        try:
            await self.save(later)
        except PaymentChanged:  # somebody else goes on with it
            return await self.reload(payment)
        return later

    async def _step(self, booking: Booking, payment: Payment, *, fresh: bool) -> tuple[Booking, Payment]:
        if not fresh and payment.ref and payment.state in READ_BACK:
            looked = await self._read_back(booking, payment)
            if looked is not None:
                return booking, looked
        step = next_step(booking, payment, self.clock())
        match step:
            case Step.REST:
                return booking, await self._rest(booking, payment, fresh=fresh)
            case Step.CREATE:
                return booking, await self.create(booking, payment)
            case Step.AUTHORISE:
                return booking, await self.authorise(payment)
            case Step.CONFIRM:
                try:
                    return await self._confirm(booking, payment)
                except EventCancelled:  # on another server, a moment ago: the seats and the money go back
                    return await self._stop(booking, payment)
            case Step.CAPTURE:
                return booking, await self.capture(payment)
            case Step.VOID | Step.GIVE_UP | Step.ABANDON:
                if payment.state is PaymentState.VOIDING:
                    return booking, await self.void(payment)
                return await self._turn_back(booking, payment, step)
            case Step.DECLINE | Step.CANCEL:
                return await self._end(booking, payment, Move.DECLINE if step is Step.DECLINE else Move.CANCEL)
            case Step.REAUTHORISE:
                return booking, await self._reauthorise(booking, payment)
            case Step.RETURN:
                return booking, await self._return(booking, payment)
            case Step.DROP:
                return booking, await self.drop(payment)

    async def _read_back(self, booking: Booking, payment: Payment) -> Payment | None:
        """What the provider says. When it is away again after the hold's end, a page that was open is given up without
        it: nothing can be sold any more, and the void finds whatever happened there."""
        try:
            return await self.look(payment)
        except (ProviderUnknown, ProviderSpared):
            over = payment.tries > 0 and next_step(booking, payment, self.clock()) is Step.VOID
            if payment.state in WAITS_FOR_FAN and over:
                return None
            raise

    async def _rest(self, booking: Booking, payment: Payment, *, fresh: bool) -> Payment:
        """Nothing to do now: when to look again, if ever."""
        wake_us = next_look_us(booking, payment, self.clock())
        if wake_us == payment.retry_at_us or (fresh and 0 < payment.retry_at_us <= wake_us):
            return payment
        rested = replace(self.touched(payment, wake_us), tries=0)
        await self.save(rested)
        return rested

    # moving the booking

    async def _confirm(self, booking: Booking, payment: Payment) -> tuple[Booking, Payment]:
        """The pivot: state, fence and expiry in one update, and with it the intent to capture."""
        if payment.state is PaymentState.CAPTURED:
            moved = self.touched(payment)
        else:
            moved = self.moved(payment, PaymentState.CAPTURING)
        sold = await self.save(moved, Move.CONFIRM, booking, tickets=await self.tickets(booking))
        assert sold is not None
        if self._seats is not None:
            with contextlib.suppress(FrontrowError):  # recovery makes the claim store agree
                await self._seats.sold(sold)
        return sold, moved

    async def _stop(self, booking: Booking, payment: Payment) -> tuple[Booking, Payment]:
        """The event was cancelled while this was being paid: nothing is charged, and the person hears why."""
        reason = "event_cancelled"
        if payment.state is PaymentState.CAPTURED:  # due at once: given back in full
            moved = self.touched(payment, self.clock())
        else:
            moved = self.moved(payment, PaymentState.VOIDING, reason=reason)
        ended = await self.save(moved, Move.DECLINE, booking, reason=reason)
        assert ended is not None
        await self._free(ended)
        return ended, moved

    async def tickets(self, booking: Booking) -> tuple[NewTicket, ...]:
        """The tickets that are written with the confirmation; the event says whether their codes rotate."""
        if self._issuer is None:
            return ()
        return self._issuer.issue(booking, rotating=await self._rotating.uses_rotating_codes(booking.event_id))

    async def _turn_back(self, booking: Booking, payment: Payment, step: Step) -> tuple[Booking, Payment]:
        """Write that this payment ends, why, and what the person should hear."""
        now_us = self.clock()
        facts: list[Fact] = []
        told = (booking.id, booking.event_id, booking.fan, booking.fence, booking.seats, now_us)
        if payment.state is PaymentState.AUTHORISED:
            facts.append(LatePaymentReturned(*told, amount_minor=payment.amount_minor, currency=payment.currency))
        outage = payment.tries > 0 and payment.state in MEETS_OUTAGES and booking.state is not BookingState.CANCELLED
        if outage:
            facts.append(PriorityGranted(*told, until_us=now_us + PRIORITY_S * US_PER_S))
        reason = "provider_unavailable" if outage or step is Step.GIVE_UP else "hold_ended"
        if payment.ref:
            moved = self.moved(payment, PaymentState.VOIDING, reason=reason)
        else:
            moved = replace(self.moved(payment, PaymentState.VOIDED, reason=reason), retry_at_us=0)
        ended = await self.save(moved, Move.DECLINE if step is Step.GIVE_UP else None, booking, facts, reason)
        if ended is not None:
            await self._free(ended)
        return ended or booking, moved

    async def withdraw(self, booking: Booking, payment: Payment, move: Move, reason: str) -> tuple[Booking, Payment]:
        """The fan changed their mind before the sale: the booking's move and the intent to void, in one transaction.

        A card that gets through meanwhile is voided too. If the sale was written first: `PaymentChanged`.
        """
        if payment.state is PaymentState.VOIDING:
            moved = self.touched(payment, self.clock() + LOOK_AGAIN_S * US_PER_S)
        elif payment.ref:
            moved = self.moved(payment, PaymentState.VOIDING, reason=reason)
        else:
            moved = replace(self.moved(payment, PaymentState.VOIDED, reason=reason), retry_at_us=0)
        changed = await self.save(moved, move, booking, reason=reason)
        assert changed is not None
        if changed.state not in HOLD_STATES:
            await self._free(changed)
        return await self.drive(changed, moved, fresh=True)

    async def _end(self, booking: Booking, payment: Payment, move: Move) -> tuple[Booking, Payment]:
        """The payment failed for good: free the seats and tell the person why."""
        reason = payment.reason if move is Move.DECLINE else "capture_failed"
        unvoided = payment.state is PaymentState.DECLINED and payment.ref
        moved = self.touched(payment, self.clock() + LOOK_AGAIN_S * US_PER_S if unvoided else 0)
        ended = await self.save(moved, move, booking, reason=reason)
        assert ended is not None
        await self._free(ended)
        return ended, moved

    async def _free(self, booking: Booking) -> None:
        if self._seats is not None:
            with contextlib.suppress(FrontrowError):
                await self._seats.freed(booking.event_id, booking.seats, booking.id)

    # new rows

    async def new_attempt(
        self, booking: Booking, attempt: int, method: str, move: Move | None = None, *, declines: int = 0
    ) -> tuple[Booking, Payment]:
        """Write the intent to collect the booking's money, before anything is asked of the provider."""
        now_us = self.clock()
        payment = Payment(
            f"pay_{booking.id.removeprefix('bkg_')}_{attempt}", booking.id, attempt, self.provider.name,
            booking.amount_minor, booking.currency, method=method, created_at_us=now_us, changed_at_us=now_us,
            retry_at_us=now_us + LOOK_AGAIN_S * US_PER_S, declines=declines,
        )  # fmt: skip
        return await self.save(payment, move, booking) or booking, payment

    async def _reauthorise(self, booking: Booking, payment: Payment) -> Payment:
        """The bank took its word back after the sale: try the same card once more as a new attempt."""
        _, new = await self.new_attempt(booking, payment.attempt + 1, payment.method)
        await self.save(self.touched(payment))  # after the new row: a crash between them repeats this step
        return new

    async def _return(self, booking: Booking, payment: Payment) -> Payment:
        """Captured, and the booking is over: the money goes back, and the person hears so once."""
        if not payment.retry_at_us:
            return payment
        now_us = self.clock()
        refunds = await self.ledger.payments.refunds_of(booking.id)
        returns = await self.ledger.returns.returns_of(booking.id)
        # A failed refund is tried again by itself; a moot one never had money; a return is paid when it is resold.
        promised = sum(refund.promised_minor for refund in refunds if refund.payment_id == payment.id)
        promised += sum(given.price_minor for given in returns if given.state in OWED_STATES)
        left_minor = payment.amount_minor - promised
        facts: list[Fact] = []
        if left_minor > 0:
            number = max([refund.number for refund in refunds], default=0) + 1
            refund = Refund(
                f"rfd_{payment.id.removeprefix('pay_')}_late", booking.id, payment.id, number, left_minor,
                payment.currency, booking.seats, reason="late", retry_at_us=now_us, created_at_us=now_us,
                changed_at_us=now_us,
            )  # fmt: skip
            await self.ledger.payments.ask_refund(refund, fence=booking.fence, now_us=now_us, late=True)
            told = (booking.id, booking.event_id, booking.fan, booking.fence, booking.seats, now_us)
            facts.append(LatePaymentReturned(*told, amount_minor=left_minor, currency=payment.currency))
        rested = self.touched(payment)
        await self.save(rested, facts=facts)
        return rested
