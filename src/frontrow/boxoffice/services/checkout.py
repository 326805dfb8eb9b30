"""Checkout (B6-B9): from a hold to a sold booking, or back, and the worker that finishes what others left unfinished.

`begin` shows the payment page (the provider's object exists, no money is reserved), `pay` brings a card. The answer is
an `Outcome`: confirmed, declined, an action the bank wants, or "retrying automatically" while the provider is away and
the fan keeps the seats. A payment that succeeds after the hold's end is given back, and the fan hears 410.

`work` looks at every payment that is due: outages, lost webhooks, crashes and expired holds are all the same to it.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from frontrow.boxoffice.model.bookings import Booking, BookingState, HoldEnded, Move, StaleFence
from frontrow.boxoffice.model.payments import ENDED, LOOK_AGAIN_S, Payment, PaymentChanged, PaymentState
from frontrow.boxoffice.model.tickets import NewTicket
from frontrow.boxoffice.payment_ports import PaymentProvider
from frontrow.boxoffice.ports import TicketIssuer
from frontrow.boxoffice.services.asking import SaleLedger
from frontrow.boxoffice.services.driving import Driver, Seats
from frontrow.boxoffice.services.repaying import Repaying
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError, InvalidInput

MAX_METHOD_CHARS: Final = 200
WORK_BATCH: Final = 500
BATCHES_A_TURN: Final = 20
AT_ONCE: Final = 200  # payments one worker drives at the same time
EVERY_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0


class CheckoutState(StrEnum):
    OPEN = "open"
    ACTION = "action"
    RETRYING = "retrying"  # "retrying automatically": the seats are kept
    CONFIRMED = "confirmed"
    DECLINED = "declined"
    ENDED = "ended"


class Outcome(msgspec.Struct, frozen=True):
    """How a checkout stands, as the fan sees it."""

    state: CheckoutState
    booking: Booking
    payment: Payment | None = None
    client_secret: str = ""
    action_url: str = ""

    @property
    def retry_at_us(self) -> int:
        return self.payment.retry_at_us if self.payment and self.state is CheckoutState.RETRYING else 0


class CheckoutLedger(SaleLedger, Protocol):
    async def begin_payment(self, booking_id: str, fence: int, now_us: int, expires_at_us: int = 0) -> Booking: ...

    async def confirm(self, booking_id: str, fence: int, now_us: int, tickets: Sequence[NewTicket] = ()) -> Booking: ...


class Checkout:
    """Sells held seats."""

    def __init__(
        self,
        ledger: CheckoutLedger,
        provider: PaymentProvider,
        clock: Clock,
        *,
        seats: Seats | None = None,
        issuer: TicketIssuer | None = None,
    ) -> None:
        self._ledger, self._provider, self._clock, self._seats = ledger, provider, clock, seats
        self.driver = Driver(ledger, provider, clock, seats=seats, issuer=issuer)
        self._repaying = Repaying(ledger, provider, clock)
        self.failures = 0

    async def begin(self, booking_id: str, fence: int, *, loaded: Booking | None = None) -> Outcome:
        """held -> paying, and the provider's object for the payment page."""
        booking = loaded or await self._own(booking_id, fence)
        booking, payment = await self._begun(booking, "")
        return await self._outcome(*await self.driver.drive(booking, payment, fresh=payment.version == 1))

    async def pay(self, booking_id: str, fence: int, method: str, *, loaded: Booking | None = None) -> Outcome:
        """Pay with this card; all the way to a sold booking if nothing is in the way.

        `HoldEnded` (410) when the hold is over: whatever was reserved is given back by itself. `loaded` is the booking
        as the caller read it a moment ago; every write compares anyway, so an older one costs a round, never a seat.
        """
        if not 1 <= len(method) <= MAX_METHOD_CHARS or not method.isascii():
            raise InvalidInput("a payment method is the provider's id of a card", param="method")
        booking = loaded or await self._own(booking_id, fence)
        if booking.amount_minor == 0:
            return await self._give(booking)
        booking, payment = await self._begun(booking, method)
        fresh = payment.version == 1
        if payment.state is PaymentState.OPEN:
            asked = self.driver.moved(payment, PaymentState.AUTHORISING, method=method)
            try:
                await self.driver.save(asked)
                payment, fresh = asked, True
            except PaymentChanged:
                payment = await self.driver.reload(payment)
        if payment.state is PaymentState.AUTHORISING and not fresh:  # a second click: somebody is at it already
            return await self._outcome(booking, payment)
        return await self._outcome(*await self.driver.drive(booking, payment, fresh=fresh))

    async def look(self, booking_id: str, fence: int) -> Outcome:
        """How it stands; for a fan who comes back from the bank's page, also what the provider says now."""
        booking = await self._own(booking_id, fence)
        payment = await self.driver.latest(booking_id)
        if payment is not None and payment.state is PaymentState.ACTION:
            booking, payment = await self.driver.drive(booking, payment)
        return await self._outcome(booking, payment)

    async def noticed(self, body: bytes, signature: str) -> bool:
        """A webhook: checked, done once, and never trusted for its content; False when it was known or is not ours.

        It is remembered after it was acted on, so a crash in between lets the provider's next delivery do it.
        """
        notice = self._provider.notice(body, signature, self._clock())
        if notice is None or await self._ledger.noticed(self._provider.name, notice.id):
            return False
        payment = await self._ledger.payment_by_ref(self._provider.name, notice.ref)
        if payment is not None and payment.state not in ENDED:
            await self.driver.drive(await self.driver.load(payment.booking_id), payment)
        if payment is not None and "refund" in notice.kind:  # refund.updated, refund.failed, charge.refund.updated
            await self._repaying.look(await self.driver.reload(payment))
        return not await self._ledger.seen_before(self._provider.name, notice.id, self._clock())

    async def _own(self, booking_id: str, fence: int) -> Booking:
        booking = await self.driver.load(booking_id)
        if booking.fence != fence:
            raise StaleFence(booking_id, fence)
        return booking

    async def _begun(self, booking: Booking, method: str) -> tuple[Booking, Payment]:
        """The booking in `paying` with its live payment, made now if there was none."""
        # A held booking has none yet, or one that is over: try the first attempt before asking.
        payment = None
        if booking.state is not BookingState.HELD or booking.changed_at_us != booking.created_at_us:
            payment = await self.driver.latest(booking.id)
        if payment is None or (payment.state in ENDED and booking.live(self._clock())):
            attempt = payment.attempt + 1 if payment else 1
            with contextlib.suppress(PaymentChanged):  # another click made it a moment ago
                return await self.driver.new_attempt(booking, attempt, method, Move.BEGIN_PAYMENT)
            payment = await self.driver.latest(booking.id)
            booking = await self.driver.load(booking.id)
            assert payment is not None
        return booking, payment

    async def _give(self, booking: Booking) -> Outcome:
        """Seats that cost nothing need no provider."""
        now_us = self._clock()
        if booking.state is BookingState.HELD:
            await self._ledger.begin_payment(booking.id, booking.fence, now_us)
        sold = await self._ledger.confirm(booking.id, booking.fence, now_us, self.driver.tickets(booking))
        if self._seats is not None:
            with contextlib.suppress(FrontrowError):
                await self._seats.sold(sold)
        return Outcome(CheckoutState.CONFIRMED, sold)

    async def _outcome(self, booking: Booking, payment: Payment | None) -> Outcome:
        if booking.state is BookingState.CONFIRMED:
            return Outcome(CheckoutState.CONFIRMED, booking, payment)
        if booking.state is BookingState.CANCELLED and payment and payment.state is PaymentState.DECLINED:
            return Outcome(CheckoutState.DECLINED, booking, payment)
        if not booking.live(self._clock()):
            if booking.state in (BookingState.CANCELLED, BookingState.REFUNDED):
                return Outcome(CheckoutState.ENDED, booking, payment)
            raise HoldEnded(booking.id, booking.hold_expires_at_us)
        if payment is None:
            return Outcome(CheckoutState.OPEN, booking)
        if payment.state in (PaymentState.OPEN, PaymentState.ACTION):
            state = CheckoutState.OPEN if payment.state is PaymentState.OPEN else CheckoutState.ACTION
            with contextlib.suppress(FrontrowError):  # the page can ask again
                intent = await self._provider.read(payment.ref)
                return Outcome(state, booking, payment, intent.client_secret, intent.action_url)
            return Outcome(state, booking, payment)
        return Outcome(CheckoutState.RETRYING, booking, payment)

    # the worker

    async def work(self) -> int:
        """Look at what is due now; how many payments that were. Any number of workers may run."""
        gate = asyncio.Semaphore(AT_ONCE)
        count = 0
        for _ in range(BATCHES_A_TURN):
            now_us = self._clock()
            due = await self._ledger.lease_payments(now_us, now_us + LOOK_AGAIN_S * US_PER_S, WORK_BATCH)
            await asyncio.gather(*(self._finish(payment, gate) for payment in due))
            count += len(due)
            if len(due) < WORK_BATCH:
                break
        return count

    async def _finish(self, payment: Payment, gate: asyncio.Semaphore) -> None:
        async with gate:
            try:
                latest = await self.driver.reload(payment)
                if latest.id != payment.id:  # its place was taken by a later attempt
                    await self.driver.save(self.driver.touched(payment))
                await self.driver.drive(await self.driver.load(payment.booking_id), latest)
            except FrontrowError:  # the ledger is away or somebody else is at it: the lease ends, and it is due again
                self.failures += 1

    async def run(self) -> None:
        """Work until cancelled; while the ledger is away, wait longer each time, up to a bound."""
        pause_s = EVERY_S
        while True:  # until cancelled
            try:
                pause_s = EVERY_S if await self.work() >= 0 else pause_s
            except FrontrowError:
                self.failures += 1
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)
