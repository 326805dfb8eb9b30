"""Loads bookings and payments from the ledger and saves new versions of payments."""

from collections.abc import Sequence

from msgspec.structs import replace

from frontrow.boxoffice.facts.model import Fact
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound, Move
from frontrow.boxoffice.payments.model.payments import Payment, PaymentNotFound, PaymentState
from frontrow.boxoffice.payments.model.retry_schedule import WORK_CLAIM_S
from frontrow.boxoffice.payments.ports import PaymentLedger
from frontrow.boxoffice.tickets.model.tickets import NewTicket
from frontrow.core.clock import US_PER_S, Clock


class PaymentRecords:
    """The bookings and payments of one ledger. Keeps no state of its own."""

    def __init__(self, ledger: PaymentLedger, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock

    async def load_booking(self, booking_id: str) -> Booking:
        """The booking, or `BookingNotFound`."""
        booking = await self._ledger.booking(booking_id)
        if booking is None:
            raise BookingNotFound(booking_id)
        return booking

    async def latest_payment(self, booking_id: str) -> Payment | None:
        """The newest payment of a booking, if there is one."""
        payments = await self._ledger.payments.payments_of(booking_id)
        return payments[-1] if payments else None

    async def reload_payment(self, payment: Payment) -> Payment:
        """The newest payment of the same booking. It may be a later attempt than `payment`."""
        found = await self.latest_payment(payment.booking_id)
        if found is None:
            raise PaymentNotFound(f"there is no payment {payment.id}", payment=payment.id)
        return found

    async def save(
        self,
        payment: Payment,
        move: Move | None = None,
        booking: Booking | None = None,
        facts: Sequence[Fact] = (),
        reason: str = "",
        tickets: Sequence[NewTicket] = (),
        expires_at_us: int = 0,
    ) -> Booking | None:
        """Write the payment and, with `move`, move its booking in the same transaction. Returns the moved booking."""
        fence = booking.fence if booking else 0
        return await self._ledger.payments.save_payment(
            payment,
            now_us=payment.changed_at_us,
            move=move,
            fence=fence,
            facts=facts,
            reason=reason,
            tickets=tickets,
            expires_at_us=expires_at_us,
        )

    def advance(self, payment: Payment, state: PaymentState, **changes: object) -> Payment:
        """The next version, in `state`. It is due again soon, in case this process dies before it goes on."""
        now_us = self._clock()
        return payment.moved(state, now_us, retry_at_us=now_us + WORK_CLAIM_S * US_PER_S, **changes)

    def reschedule(self, payment: Payment, retry_at_us: int = 0) -> Payment:
        """The next version in the same state, due at `retry_at_us` (0: never)."""
        return replace(payment, version=payment.version + 1, changed_at_us=self._clock(), retry_at_us=retry_at_us)
