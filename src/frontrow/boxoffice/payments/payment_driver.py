"""Drives one payment until it has to wait: decide (payments.model.payment_saga), save the intent, call the provider,
save the answer.

No transaction is open during a call. A state that needs a call is saved before the call. A driver that finds such a
state without having saved it itself reads the provider's object first. Two drivers of one payment do no harm: each save
is a compare-and-set, and each call uses the same idempotency key.
"""

import contextlib
from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.checkout.model.outage_priority import PRIORITY_US
from frontrow.boxoffice.events.model.events import EventCancelled
from frontrow.boxoffice.facts.model import (
    BankTransferAwaited,
    BankTransferReminded,
    Fact,
    LatePaymentReturned,
    PriorityGranted,
)
from frontrow.boxoffice.holds.model.bookings import HOLD_STATES, Booking, BookingState, HoldEnded, Move, MoveRefused
from frontrow.boxoffice.holds.ports.seat_listener import SeatListener
from frontrow.boxoffice.payments.model.payment_accounts import platform_fee_minor
from frontrow.boxoffice.payments.model.payment_saga import PaymentStep, next_check_us, next_step
from frontrow.boxoffice.payments.model.payments import (
    BEFORE_SALE,
    ENDED,
    LATE_MONEY,
    PROVIDER_UNAVAILABLE,
    TAKES_CARDS,
    Payment,
    PaymentChanged,
    PaymentState,
)
from frontrow.boxoffice.payments.model.provider_intents import Intent, ProviderNotCalled, ProviderUnknown
from frontrow.boxoffice.payments.model.retry_schedule import WORK_CLAIM_S
from frontrow.boxoffice.payments.payment_log import log_retry, log_step
from frontrow.boxoffice.payments.payment_records import PaymentRecords
from frontrow.boxoffice.payments.ports import Payee, PaymentLedger
from frontrow.boxoffice.payments.provider_calls import ProviderCalls
from frontrow.boxoffice.refunds.model.refunds import Refund
from frontrow.boxoffice.refunds.model.ticket_returns import OWED_STATES
from frontrow.boxoffice.tickets.model.tickets import NewTicket, TicketScanned
from frontrow.boxoffice.tickets.ports.tickets import TicketIssuer
from frontrow.boxoffice.tickets.rotating_codes import RotatingCodes
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError

STEP_BACK_HOLD_S: Final = 600
MAX_STEPS: Final = 24  # more than the longest path through the table; after that the worker continues
AFTER_SALE: Final = frozenset({PaymentState.CAPTURING, PaymentState.LAPSED})  # of a booking that was sold with it
_NOT_LOST: Final = frozenset({BookingState.CANCELLED, BookingState.CONFIRMED, BookingState.REFUNDED})
RESULT_LATER: Final = frozenset({PaymentState.CAPTURING, PaymentState.VOIDING})
READ_BACK: Final = TAKES_CARDS | {PaymentState.CAPTURING, PaymentState.VOIDING}


class PaymentDriver:
    """Moves payments and their bookings from state to state."""

    def __init__(
        self,
        ledger: PaymentLedger,
        clock: Clock,
        records: PaymentRecords,
        calls: ProviderCalls,
        *,
        seats: SeatListener | None = None,
        issuer: TicketIssuer | None = None,
    ) -> None:
        self._ledger, self._clock, self._records, self._calls = ledger, clock, records, calls
        self._seats, self._issuer = seats, issuer
        self._rotating = RotatingCodes(ledger.catalogue)

    async def drive_any(self, payment: Payment) -> Payment:
        """`drive` a payment that may not be the newest of its booking, with the booking as it is now."""
        booking = await self._records.load_booking(payment.booking_id)
        latest = await self._records.reload_payment(payment)  # last: whoever sold the booking is seen
        return (await self.drive(booking, payment, superseded=latest.id != payment.id))[1]

    async def drive(
        self, booking: Booking, payment: Payment, *, fresh: bool = False, superseded: bool = False
    ) -> tuple[Booking, Payment]:
        """Take steps until the payment is idle, must wait, or has sold its booking (the worker then captures).

        `fresh`: the caller saved this state a moment ago. `superseded`: the booking has a later payment.
        """
        if payment.state in AFTER_SALE and booking.state in HOLD_STATES:  # read before it was sold
            booking = await self._records.load_booking(booking.id)
        for _ in range(MAX_STEPS):
            before, was_sold, was_booking = payment, booking.state is BookingState.CONFIRMED, booking
            try:
                booking, payment = await self._step(booking, payment, fresh=fresh, superseded=superseded)
                fresh = True
                log_step(was_booking, before, booking, payment)
            except PaymentChanged:
                if superseded:  # another driver ends it
                    break
                payment, fresh = await self._records.reload_payment(payment), False
                booking = await self._records.load_booking(booking.id)  # last: it is at least as new as its payment
                continue
            except TicketScanned:  # never paid, and inside: the reconciler reports it to a person
                return booking, await self._stop_retrying(payment)
            except (HoldEnded, MoveRefused):  # the booking moved on (F4): load it again; the payment is unchanged
                booking = await self._records.load_booking(booking.id)
                continue
            except (ProviderUnknown, ProviderNotCalled) as error:
                return booking, await self._retry_later(booking, payment, error)
            if payment is before or (booking.state is BookingState.CONFIRMED and not was_sold):
                break
            if payment.state in RESULT_LATER and (payment.state, payment.ref) == (before.state, before.ref):
                break  # the provider has accepted the call, and tells the result later
            if payment.state in ENDED and payment.reason == LATE_MONEY and payment.retry_at_us:
                break  # late money waits for the end of its dispute
        return booking, payment

    async def _stop_retrying(self, payment: Payment) -> Payment:
        rested = self._records.reschedule(payment)
        await self._records.save(rested)
        return rested

    async def _retry_later(
        self, booking: Booking, payment: Payment, error: ProviderUnknown | ProviderNotCalled
    ) -> Payment:
        """Save the outage and when to try again: before the hold ends, as long as it is live."""
        now_us = self._clock()
        answered = isinstance(error, ProviderUnknown) and error.answered
        later = payment.retry_later(now_us, answered=answered)
        if booking.state in HOLD_STATES and now_us < booking.hold_expires_at_us < later.retry_at_us:
            later = replace(later, retry_at_us=booking.hold_expires_at_us)
        try:
            await self._records.save(later)
        except PaymentChanged:  # another driver continues it
            return await self._records.reload_payment(payment)
        log_retry(booking, later, now_us)
        return later

    async def _step(
        self, booking: Booking, payment: Payment, *, fresh: bool, superseded: bool
    ) -> tuple[Booking, Payment]:
        # A capture that met no trouble yet is made, or repeated under its key, without reading first.
        first_capture = payment.state is PaymentState.CAPTURING and not payment.tries
        if not fresh and payment.ref and payment.state in READ_BACK and not first_capture:
            updated = await self._read_back(booking, payment)
            if updated is not None:
                return booking, updated
        kept_minor, pay_until_us = await self._kept_minor(booking, payment), 0
        if payment.state is PaymentState.PROCESSING:
            pay_until_us = await self._calls.pay_until_us(booking, payment)
        step = next_step(
            booking,
            payment,
            self._clock(),
            kept_minor=kept_minor,
            superseded=superseded,
            pay_until_us=pay_until_us,
        )
        match step:
            case PaymentStep.REST:
                return booking, await self._rest(booking, payment, fresh=fresh)
            case PaymentStep.CREATE:
                return booking, await self._calls.create(booking, payment)
            case PaymentStep.AUTHORISE:
                return booking, await self._calls.authorise(payment)
            case PaymentStep.CONFIRM:
                try:
                    return await self._confirm(booking, payment)
                except EventCancelled:  # on another server, a moment ago: free the seats, return the money
                    return await self._end_for_cancelled_event(booking, payment)
            case PaymentStep.CAPTURE:
                return booking, await self._calls.capture(payment)
            case PaymentStep.VOID | PaymentStep.ABANDON:
                if payment.state is PaymentState.VOIDING:
                    return booking, await self._calls.void(booking, payment)
                return booking, await self._give_up(booking, payment)
            case PaymentStep.DECLINE | PaymentStep.CANCEL:
                return await self._fail(booking, payment, Move.DECLINE if step is PaymentStep.DECLINE else Move.CANCEL)
            case PaymentStep.REAUTHORISE:
                return booking, await self._reauthorise(booking, payment)
            case PaymentStep.RETURN:
                return booking, await self._refund_late(booking, payment)
            case PaymentStep.DROP:
                return booking, await self._calls.drop(payment)
            case PaymentStep.EXTEND:
                return await self._hold_for_money(booking, payment, pay_until_us)
            case PaymentStep.REMIND:
                return booking, await self._remind(booking, payment)
            case PaymentStep.SEND_BACK:
                return booking, await self._calls.send_back(payment)

    async def _kept_minor(self, booking: Booking, payment: Payment) -> int:
        """What the organiser keeps of a booking that was refunded before its money was taken."""
        if payment.state is not PaymentState.CAPTURING or booking.state is not BookingState.REFUNDED:
            return 0
        refunds = await self._ledger.payments.refunds_of(booking.id)
        return sum(refund.fee_minor for refund in refunds if refund.payment_id == payment.id)

    async def _read_back(self, booking: Booking, payment: Payment) -> Payment | None:
        """Read the provider's object and save what changed.

        If the provider is still unavailable after the hold has ended, the payment is given up without reading it:
        nothing can be sold any more, and the void finds out what happened there.
        """
        try:
            return await self._calls.read_back(payment)
        except (ProviderUnknown, ProviderNotCalled):
            over = payment.tries > 0 and next_step(booking, payment, self._clock()) is PaymentStep.VOID
            if payment.state in BEFORE_SALE and over:
                return None
            raise

    async def _rest(self, booking: Booking, payment: Payment, *, fresh: bool) -> Payment:
        """There is nothing to do now. Save when to check again, if ever."""
        check_at_us = next_check_us(booking, payment, self._clock())
        if check_at_us == payment.retry_at_us or (fresh and 0 < payment.retry_at_us <= check_at_us):
            return payment
        rested = replace(self._records.reschedule(payment, check_at_us), tries=0)
        await self._records.save(rested)
        return rested

    async def _look_again(self, payment: Payment, at_us: int) -> Payment:
        waiting = self._records.reschedule(payment, at_us)
        await self._records.save(waiting)
        return waiting

    # Moves of the booking.

    async def _confirm(self, booking: Booking, payment: Payment) -> tuple[Booking, Payment]:
        """Sell the seats: state, fence and expiry are checked in one update that also saves the intent to capture.

        The worker captures, at once: the fan does not wait for it, and the next fan's card is not behind it.
        """
        if payment.state is PaymentState.CAPTURED:
            moved = self._records.reschedule(payment)
        else:
            moved = payment.moved(PaymentState.CAPTURING, now_us := self._clock(), retry_at_us=now_us)
        sold = await self._records.save(moved, Move.CONFIRM, booking, tickets=await self.tickets(booking))
        assert sold is not None
        if self._seats is not None:
            with contextlib.suppress(FrontrowError):  # recovery updates the claim store later
                await self._seats.sold(sold)
        return sold, moved

    async def _hold_for_money(self, booking: Booking, payment: Payment, until_us: int) -> tuple[Booking, Payment]:
        """Hold the seats until slow money has had its time."""
        waiting = self._records.reschedule(payment, self._clock() + WORK_CLAIM_S * US_PER_S)
        facts = _transfer_facts(BankTransferAwaited, booking, payment, self._clock(), until_us)
        longer = await self._records.save(waiting, Move.EXTEND, booking, facts, expires_at_us=until_us)
        assert longer is not None
        if self._seats is not None:
            with contextlib.suppress(FrontrowError):  # recovery updates the claim store later
                await self._seats.held_longer(longer)
        return longer, waiting

    async def _remind(self, booking: Booking, payment: Payment) -> Payment:
        """Tell the fan once more where the money has to go, and until when."""
        now_us = self._clock()
        facts = _transfer_facts(BankTransferReminded, booking, payment, now_us, booking.hold_expires_at_us)
        told = replace(self._records.reschedule(payment, now_us + WORK_CLAIM_S * US_PER_S), reminded_at_us=now_us)
        await self._records.save(told, facts=facts)
        return told

    async def take_late_money(self, payment: Payment, intent: Intent) -> Payment:
        """Money came for a payment that was ended here: send it back, and tell the fan once."""
        if payment.reason != LATE_MONEY:
            now_us, booking = self._clock(), await self._records.load_booking(payment.booking_id)
            common = (booking.id, booking.event_id, booking.fan, booking.fence, booking.seats, now_us)
            left_minor = intent.captured_minor - intent.refunded_minor
            told = LatePaymentReturned(*common, amount_minor=left_minor, currency=payment.currency)
            payment = replace(self._records.reschedule(payment, now_us), reason=LATE_MONEY)
            await self._records.save(payment, facts=[told])
        elif not payment.retry_at_us:  # it came again
            payment = self._records.reschedule(payment, self._clock())
            await self._records.save(payment)
        return await self.drive_any(payment)

    async def _end_for_cancelled_event(self, booking: Booking, payment: Payment) -> tuple[Booking, Payment]:
        """The event was cancelled during the payment: charge nothing and notify the fan."""
        reason = "event_cancelled"
        if payment.state is PaymentState.CAPTURED:  # due at once: it is refunded in full
            moved = self._records.reschedule(payment, self._clock())
        else:
            moved = self._records.advance(payment, PaymentState.VOIDING, reason=reason)
        ended = await self._records.save(moved, Move.DECLINE, booking, reason=reason)
        assert ended is not None
        await self._free(ended)
        return ended, moved

    async def tickets(self, booking: Booking) -> tuple[NewTicket, ...]:
        """The tickets to save with the confirmation, unsigned. The event decides whether their codes rotate."""
        if self._issuer is None:
            return ()
        return self._issuer.prepare(booking, rotating=await self._rotating.uses_rotating_codes(booking.event_id))

    async def _give_up(self, booking: Booking, payment: Payment) -> Payment:
        """End the payment of a hold that is over, with the reason and the one fact that notifies the fan.

        A fan who lost the seats to an outage gets priority, also if the card was accepted when it was too late.
        """
        now_us = self._clock()
        common = (booking.id, booking.event_id, booking.fan, booking.fence, booking.seats, now_us)
        facts: list[Fact] = []
        is_outage = payment.is_lost_to_outage and booking.state not in _NOT_LOST
        if is_outage:
            facts.append(PriorityGranted(*common, until_us=now_us + PRIORITY_US))
        elif payment.state is PaymentState.AUTHORISED:
            facts.append(LatePaymentReturned(*common, amount_minor=payment.amount_minor, currency=payment.currency))
        moved = self._end_at_provider(payment, PROVIDER_UNAVAILABLE if is_outage else "hold_ended")
        await self._records.save(moved, facts=facts)
        return moved

    def _end_at_provider(self, payment: Payment, reason: str) -> Payment:
        """The next version of a payment that ends before the sale: to be voided if the provider may have an object."""
        if not payment.may_have_object:
            return replace(self._records.advance(payment, PaymentState.VOIDED, reason=reason), retry_at_us=0)
        voiding = self._records.advance(payment, PaymentState.VOIDING, reason=reason)
        return voiding if payment.ref else replace(voiding, call=payment.call)  # the key under which it was created

    async def withdraw(self, booking: Booking, payment: Payment, move: Move, reason: str) -> tuple[Booking, Payment]:
        """The fan withdraws before the sale: move the booking and save the intent to void, in one transaction.

        A card that is accepted at the same time is voided too. If the sale was saved first it raises `PaymentChanged`.
        """
        if payment.state is PaymentState.VOIDING:
            moved = self._records.reschedule(payment, self._clock() + WORK_CLAIM_S * US_PER_S)
        else:
            moved = self._end_at_provider(payment, reason)
        # Who leaves slow money keeps the seats for a usual hold, to pay another way.
        back_us = self._clock() + STEP_BACK_HOLD_S * US_PER_S if move is Move.STEP_BACK and booking.is_ordered else 0
        changed = await self._records.save(moved, move, booking, reason=reason, expires_at_us=back_us)
        assert changed is not None
        log_step(booking, payment, changed, moved)
        if changed.state not in HOLD_STATES:
            await self._free(changed)
        return await self.drive(changed, moved, fresh=True)

    async def _fail(self, booking: Booking, payment: Payment, move: Move) -> tuple[Booking, Payment]:
        """The payment failed for good: free the seats and notify the fan."""
        reason = payment.reason if move is Move.DECLINE else "capture_failed"
        needs_void = payment.state is PaymentState.DECLINED and payment.ref
        moved = self._records.reschedule(payment, self._clock() + WORK_CLAIM_S * US_PER_S if needs_void else 0)
        ended = await self._records.save(moved, move, booking, reason=reason)
        assert ended is not None
        await self._free(ended)
        return ended, moved

    async def _free(self, booking: Booking) -> None:
        if self._seats is not None:
            with contextlib.suppress(FrontrowError):
                await self._seats.freed(booking.event_id, booking.seats, booking.id)

    # New attempts and refunds.

    async def new_attempt(
        self,
        booking: Booking,
        attempt: int,
        method: str,
        payee: Payee,
        move: Move | None = None,
        *,
        declines: int = 0,
        offered: str = "",
        fee_minor: int | None = None,
    ) -> tuple[Booking, Payment]:
        """Save the intent to collect the booking's money, before the provider is called."""
        now_us = self._clock()
        payment = Payment(
            f"pay_{booking.id.removeprefix('bkg_')}_{attempt}",
            booking.id,
            attempt,
            payee.provider,
            booking.amount_minor,
            booking.currency,
            method=method,
            created_at_us=now_us,
            changed_at_us=now_us,
            retry_at_us=now_us + WORK_CLAIM_S * US_PER_S,
            declines=declines,
            account=payee.account,
            offered=offered,
            fee_minor=platform_fee_minor(booking.amount_minor, payee.fee_basis_points)
            if fee_minor is None
            else fee_minor,
        )
        return await self._records.save(payment, move, booking) or booking, payment

    async def _reauthorise(self, booking: Booking, payment: Payment) -> Payment:
        """The bank dropped the authorisation after the sale: try the same card once more, as a new attempt."""
        _, new = await self.new_attempt(
            booking,
            payment.attempt + 1,
            payment.method,
            Payee(payment.provider, payment.account),
            fee_minor=payment.fee_minor,
        )
        await self._records.save(
            self._records.reschedule(payment)
        )  # after the new row, so that a crash between them repeats this step
        return new

    async def _refund_late(self, booking: Booking, payment: Payment) -> Payment:
        """The payment was captured but the booking is over: refund it and notify the fan once."""
        if not payment.retry_at_us:
            return payment
        now_us = self._clock()
        if booking.state in HOLD_STATES:  # the sweeper ends it in a moment; until then nothing of it is refunded
            soon_us = now_us + US_PER_S
            return payment if payment.retry_at_us <= soon_us else await self._look_again(payment, soon_us)
        refunds = await self._ledger.payments.refunds_of(booking.id)
        returns = await self._ledger.returns.returns_of(booking.id)
        # A failed refund is retried separately, a moot one had no money, and a return is refunded when it is resold.
        promised = sum(refund.promised_minor for refund in refunds if refund.payment_id == payment.id)
        promised += sum(one.price_minor for one in returns if one.state in OWED_STATES)
        left_minor = payment.amount_minor - promised
        if left_minor > 0:
            number = max([refund.number for refund in refunds], default=0) + 1
            refund = Refund(
                f"rfd_{payment.id.removeprefix('pay_')}_late",
                booking.id,
                payment.id,
                number,
                left_minor,
                payment.currency,
                booking.seats,
                reason="late",
                retry_at_us=now_us,
                created_at_us=now_us,
                changed_at_us=now_us,
            )
            common = (booking.id, booking.event_id, booking.fan, booking.fence, booking.seats, now_us)
            told = LatePaymentReturned(*common, amount_minor=left_minor, currency=payment.currency)
            # The fact goes with the refund: if the save below loses to another driver, nothing is left to refund.
            await self._ledger.payments.ask_refund(refund, fence=booking.fence, now_us=now_us, late=True, facts=[told])
        rested = self._records.reschedule(payment)
        await self._records.save(rested)
        return rested


def _transfer_facts(
    kind: type[BankTransferAwaited | BankTransferReminded],
    booking: Booking,
    payment: Payment,
    now_us: int,
    until_us: int,
) -> list[Fact]:
    """What tells the fan where a transfer has to go; nothing for money that comes another way."""
    to = payment.transfer
    if to is None:
        return []
    common = (booking.id, booking.event_id, booking.fan, booking.fence, booking.seats, now_us)
    owed = (payment.amount_minor, payment.currency, until_us)
    return [kind(*common, *owed, iban=to.iban, reference=to.reference, holder=to.holder, bic=to.bic)]
