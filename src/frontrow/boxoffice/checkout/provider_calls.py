"""What a payment asks of its provider: create, authorise, capture, void, and reading the object back.

Each method writes the state that follows from a definite answer and returns it; without one it raises
(`ProviderUnknown`, `ProviderSpared`) and nothing was written: the state stays what it was, an open question.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from frontrow.boxoffice.model.bookings import HOLD_STATES, Booking, BookingNotFound, Move
from frontrow.boxoffice.model.facts import Fact
from frontrow.boxoffice.model.payment_saga import next_look_us, seen
from frontrow.boxoffice.model.payments import LOOK_AGAIN_S, TAKES_CARDS, Payment, PaymentNotFound, PaymentState
from frontrow.boxoffice.model.provider_intents import (
    MISTYPED,
    Intent,
    IntentState,
    NewIntent,
    ProviderRefused,
    ProviderUnknown,
)
from frontrow.boxoffice.model.tickets import NewTicket
from frontrow.boxoffice.ports.ledger import Catalogue
from frontrow.boxoffice.ports.payments import PaymentBook, PaymentProvider
from frontrow.boxoffice.ports.returns import ReturnsBook
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import NotFound


class SaleLedger(Protocol):
    """What the money services need of the ledger."""

    @property
    def payments(self) -> PaymentBook: ...

    @property
    def returns(self) -> ReturnsBook: ...

    @property
    def catalogue(self) -> Catalogue: ...

    async def booking(self, booking_id: str) -> Booking | None: ...


class Asking:
    """The calls of one payment; keeps nothing of its own."""

    def __init__(self, ledger: SaleLedger, provider: PaymentProvider, clock: Clock) -> None:
        self.ledger, self.provider, self.clock = ledger, provider, clock

    async def load(self, booking_id: str) -> Booking:
        booking = await self.ledger.booking(booking_id)
        if booking is None:
            raise BookingNotFound(booking_id)
        return booking

    async def latest(self, booking_id: str) -> Payment | None:
        payments = await self.ledger.payments.payments_of(booking_id)
        return payments[-1] if payments else None

    async def reload(self, payment: Payment) -> Payment:
        found = await self.latest(payment.booking_id)
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
    ) -> Booking | None:
        fence = booking.fence if booking else 0
        return await self.ledger.payments.save_payment(
            payment, now_us=payment.changed_at_us, move=move, fence=fence, facts=facts, reason=reason,
            tickets=tickets,
        )  # fmt: skip

    def moved(self, payment: Payment, state: PaymentState, **changes: object) -> Payment:
        """The next version, to be looked at again soon should this process die."""
        now_us = self.clock()
        return payment.moved(state, now_us, retry_at_us=now_us + LOOK_AGAIN_S * US_PER_S, **changes)

    def touched(self, payment: Payment, retry_at_us: int = 0) -> Payment:
        """The next version in the same state, with another next look."""
        return replace(payment, version=payment.version + 1, changed_at_us=self.clock(), retry_at_us=retry_at_us)

    async def look(self, payment: Payment) -> Payment | None:
        """Read the object back; the payment's new version, or None when there is nothing new."""
        try:
            return await self.saw(payment, await self.provider.read(payment.ref))
        except ProviderRefused:
            return None

    async def saw(self, payment: Payment, intent: Intent) -> Payment | None:
        """Write what the provider's object says; None when there is nothing new."""
        state = seen(payment, intent)
        if state is None:
            return None
        if intent.declined:
            return await self._failed(payment, intent.error, intent.failure)
        changes: dict[str, object] = {"call": payment.call + 1} if state is PaymentState.OPEN else {}
        if payment.state in TAKES_CARDS:
            changes["reason"] = ""  # of a card that failed before this one
        return await self._written(self.moved(payment, state, **changes))

    async def _failed(self, payment: Payment, reason: str, failure: str) -> Payment:
        """A card was not taken: the payment waits for another one, or is over if it was the last that may be tried."""
        declines = payment.declines + (reason not in MISTYPED)
        again = reason in MISTYPED or declines < await self.card_tries(payment)
        changes = {"reason": reason, "failure": failure, "declines": declines}
        if again:
            return await self._written(
                self.moved(payment, PaymentState.OPEN, method="", call=payment.call + 1, **changes)
            )
        return await self._written(self.moved(payment, PaymentState.DECLINED, **changes))

    async def card_tries(self, payment: Payment) -> int:
        """How many cards may be declined before the seats are free again (the event's); 0 without a live hold."""
        booking = await self.load(payment.booking_id)
        if booking.state not in HOLD_STATES or not booking.live(self.clock()):
            return 0
        try:
            return (await self.ledger.catalogue.event(booking.event_id)).card_tries
        except NotFound:
            return 1

    async def create(self, booking: Booking, payment: Payment) -> Payment:
        new = NewIntent(
            booking.id, payment.attempt, payment.amount_minor, payment.currency, booking.event_id, booking.fence,
            booking.seats, payment.key("create"),
        )  # fmt: skip
        try:
            intent = await self.provider.create(new)
        except ProviderRefused as error:  # the provider will never take this: end it
            moved = self.moved(payment, PaymentState.VOIDED, reason=error.reason)
            ends = Move.DECLINE if booking.state in HOLD_STATES else None
            await self.save(moved, ends, booking, reason=error.reason)
            return moved
        if payment.method:
            moved = self.moved(payment, PaymentState.AUTHORISING, ref=intent.ref)
        else:
            opened = self.moved(payment, PaymentState.OPEN, ref=intent.ref)
            moved = replace(opened, retry_at_us=next_look_us(booking, opened, self.clock()))
        await self.save(moved)
        return moved

    async def authorise(self, payment: Payment) -> Payment:
        if payment.state is PaymentState.OPEN:
            return await self._written(self.moved(payment, PaymentState.AUTHORISING))
        try:
            intent = await self.provider.authorise(payment.ref, payment.method, payment.key("authorise"))
        except ProviderRefused as error:
            return await self.look(payment) or await self._failed(payment, error.reason, payment.failure)
        if intent.declined:  # the answer to our own call: news, whatever the failure is called
            return await self._failed(payment, intent.error, intent.failure)
        if seen(payment, intent) is PaymentState.AUTHORISED:
            # Not written by itself: the confirming transaction follows at once and says so too, or the void does.
            return replace(payment, state=PaymentState.AUTHORISED)
        return await self.saw(payment, intent) or await self._written(
            self.touched(payment, self.clock() + LOOK_AGAIN_S * US_PER_S)
        )

    async def capture(self, payment: Payment) -> Payment:
        if payment.state is not PaymentState.CAPTURING:
            return await self._written(self.moved(payment, PaymentState.CAPTURING))
        try:
            await self.provider.capture(payment.ref, payment.key("capture"))
        except ProviderRefused as error:
            looked = await self.look(payment)
            if looked is None:  # still authorised, yet refused: drop it, then it has lapsed
                await self.provider.void(payment.ref, payment.key("void"))
                looked = await self._written(self.moved(payment, PaymentState.LAPSED, reason=error.reason))
            return looked
        return await self._written(replace(self.moved(payment, PaymentState.CAPTURED), retry_at_us=0))

    async def void(self, payment: Payment) -> Payment:
        try:
            await self.provider.void(payment.ref, payment.key("void"))
        except ProviderRefused as error:
            looked = await self._look_at_refused(payment, error)
            if looked is not None:
                return looked
        return await self._written(replace(self.moved(payment, PaymentState.VOIDED), retry_at_us=0))

    async def _look_at_refused(self, payment: Payment, refused: ProviderRefused) -> Payment | None:
        """The provider would not void: what became of the object. If it may still take money, ask again later."""
        try:
            intent = await self.provider.read(payment.ref)
        except ProviderRefused:  # there is none
            return None
        looked = await self.saw(payment, intent)
        if looked is None and intent.state is not IntentState.VOID:
            raise ProviderUnknown(f"{payment.ref} is {intent.state}: {refused.message}", answered=True)
        return looked

    async def drop(self, payment: Payment) -> Payment:
        """Void the object of a payment that is over already, so that no card can be put to it any more."""
        try:
            await self.provider.void(payment.ref, payment.key("void"))
        except ProviderRefused:
            if (await self.provider.read(payment.ref)).state is not IntentState.CAPTURED:
                raise ProviderUnknown(f"{payment.ref} cannot be voided yet", answered=True) from None
        return await self._written(self.touched(payment))

    async def _written(self, payment: Payment) -> Payment:
        await self.save(payment)
        return payment
