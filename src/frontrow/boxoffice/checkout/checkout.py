"""Checkout (B6-B9): from a hold to a sold booking, or back, and the worker that finishes what others left unfinished.

`begin` shows the payment page (the provider's object exists, no money is reserved). The card comes with `pay`, or the
fan's browser puts it to the provider's own form and we are not asked: then a webhook, the page (`look`) or the worker's
next look finds out, whichever comes first. The answer is an `Outcome`: confirmed, open (with what was wrong with the
last card and how many may still be tried), declined, an action the bank wants, or "retrying automatically" while the
provider is away and the fan keeps the seats. A payment that succeeds after the hold's end is given back, and the fan
hears 410. `release` gives the seats back at any moment before the sale, and voids what was opened or reserved.

`work` looks at every payment that is due: outages, lost webhooks, crashes and expired holds are all the same to it.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from frontrow.boxoffice.checkout.payment_driver import Driver, Seats
from frontrow.boxoffice.checkout.provider_calls import SaleLedger
from frontrow.boxoffice.model.bookings import Booking, BookingState, HoldEnded, Move, MoveRefused, StaleFence
from frontrow.boxoffice.model.payments import ENDED, LOOK_AGAIN_S, Payment, PaymentChanged, PaymentState
from frontrow.boxoffice.model.provider_intents import Intent, ProviderError
from frontrow.boxoffice.model.tickets import NewTicket
from frontrow.boxoffice.ports.ledger import TicketIssuer
from frontrow.boxoffice.ports.messages import MessageBook
from frontrow.boxoffice.ports.payments import PaymentProvider
from frontrow.boxoffice.refunds.payouts import Repaying
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError, InvalidInput, Overloaded

MAX_METHOD_CHARS: Final = 200
WORK_BATCH: Final = 500
BATCHES_A_TURN: Final = 20
AT_ONCE: Final = 200  # payments one worker drives at the same time
EVERY_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0
MAX_WITHDRAWALS: Final = 8  # a payment that others keep changing under our hands


REASONS: Final = {Move.RELEASE: "released", Move.STEP_BACK: "stepped_back"}  # of a payment that the fan ended
SHOWN: Final = frozenset({PaymentState.OPEN, PaymentState.ACTION})  # the fan has something to do on a page


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
    tries_left: int = 0  # cards that may still be declined before the seats are given up; of an open payment

    @property
    def problem(self) -> str:
        """What was wrong with the last card of an open payment (the provider's code); another may be tried."""
        return self.payment.reason if self.payment and self.state is CheckoutState.OPEN else ""

    @property
    def retry_at_us(self) -> int:
        return self.payment.retry_at_us if self.payment and self.state is CheckoutState.RETRYING else 0


class CheckoutLedger(SaleLedger, Protocol):
    """What checkout needs of the ledger."""

    @property
    def messages(self) -> MessageBook: ...

    async def begin_payment(self, booking_id: str, fence: int, now_us: int, expires_at_us: int = 0) -> Booking: ...

    async def release_hold(self, booking_id: str, fence: int, now_us: int) -> Booking: ...

    async def step_back(self, booking_id: str, fence: int, now_us: int) -> Booking: ...

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
        for _ in range(2):  # an earlier payment that was being voided makes room for a new one
            booking, payment = await self._begun(booking, "")
            if payment.state in SHOWN:
                return await self._looked(booking, payment)
            booking, payment = await self.driver.drive(booking, payment, fresh=payment.version == 1)
            if payment.state not in ENDED or not booking.live(self._clock()):
                break
        return await self._outcome(booking, payment)

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
        if payment is not None and payment.state in SHOWN:
            return await self._looked(booking, payment)
        return await self._outcome(booking, payment)

    async def _looked(self, booking: Booking, payment: Payment) -> Outcome:
        """What the provider says now about a payment that waits for the fan, and what follows from it."""
        if not booking.live(self._clock()):
            return await self._outcome(*await self.driver.drive(booking, payment))
        try:
            intent = await self._provider.read(payment.ref)
            seen = await self.driver.saw(payment, intent)
        except ProviderError:  # the worker looks again; the page says that it takes longer
            return await self._shown(booking, payment, None)
        except PaymentChanged:
            booking, payment = await self.driver.load(booking.id), await self.driver.reload(payment)
            return await self._outcome(booking, payment)
        if seen is None:
            return await self._shown(booking, payment, intent)
        return await self._outcome(*await self.driver.drive(booking, seen, fresh=True))

    async def release(self, booking_id: str, fence: int) -> Booking:
        """The fan gives the seats back before the sale. What was opened or reserved at the provider is voided.

        One transaction decides: if the sale was written first, `MoveRefused`; else the seats are free at once and no
        card that gets through in a browser meanwhile is charged.
        """
        return await self._withdraw(booking_id, fence, Move.RELEASE)

    async def step_back(self, booking_id: str, fence: int) -> Booking:
        """The fan wants to pay otherwise: what was opened or reserved is voided, and the seats stay held."""
        return await self._withdraw(booking_id, fence, Move.STEP_BACK)

    async def _withdraw(self, booking_id: str, fence: int, wish: Move) -> Booking:
        for _ in range(MAX_WITHDRAWALS):
            booking = await self._own(booking_id, fence)
            try:
                if booking.state is not BookingState.PAYING:
                    return await self._move(booking, wish)
                payment = await self.driver.latest(booking_id)
                if payment is None or payment.state in ENDED:  # nothing to void: as if it had not begun
                    await self._ledger.step_back(booking_id, fence, self._clock())
                elif payment.state is PaymentState.CAPTURED:  # by hand, at the provider: it is sold
                    await self.driver.drive(booking, payment)
                else:
                    both = Move.WITHDRAW if wish is Move.RELEASE else Move.STEP_BACK
                    return (await self.driver.withdraw(booking, payment, both, REASONS[wish]))[0]
            except (PaymentChanged, MoveRefused) as error:
                if isinstance(error, MoveRefused) and error.state is not BookingState.PAYING:
                    raise  # it is sold
        raise Overloaded(f"booking {booking_id} is being changed by others; try again", retry_after_s=0.1)

    async def _move(self, booking: Booking, wish: Move) -> Booking:
        """Move a booking that has no payment to void."""
        now_us = self._clock()
        if wish is Move.STEP_BACK:
            return await self._ledger.step_back(booking.id, booking.fence, now_us)
        released = await self._ledger.release_hold(booking.id, booking.fence, now_us)
        if self._seats is not None:
            await self._seats.freed(released.event_id, released.seats, released.id)
        return released

    async def noticed(self, body: bytes, signature: str) -> bool:
        """A webhook: checked, done once, and never trusted for its content; False when it was known or is not ours.

        It is remembered after it was acted on, so a crash in between lets the provider's next delivery do it.
        """
        notice = self._provider.notice(body, signature, self._clock())
        if notice is None or await self._ledger.messages.noticed(self._provider.name, notice.id):
            return False
        payment = await self._ledger.payments.payment_by_ref(self._provider.name, notice.ref)
        if payment is not None and (payment.state not in ENDED or payment.retry_at_us):
            await self.driver.drive(await self.driver.load(payment.booking_id), payment)
        if payment is not None and "refund" in notice.kind:  # refund.updated, refund.failed, charge.refund.updated
            await self._repaying.look(await self.driver.reload(payment))
        return not await self._ledger.messages.seen_before(self._provider.name, notice.id, self._clock())

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
        for _ in range(2):
            if payment is not None and (payment.state not in ENDED or not booking.live(self._clock())):
                break
            attempt, declines = (payment.attempt + 1, payment.declines) if payment else (1, 0)
            with contextlib.suppress(PaymentChanged):  # another click made it a moment ago, or it is not the first
                return await self.driver.new_attempt(booking, attempt, method, Move.BEGIN_PAYMENT, declines=declines)
            payment = await self.driver.latest(booking.id)
            booking = await self.driver.load(booking.id)
        assert payment is not None
        return booking, payment

    async def _give(self, booking: Booking) -> Outcome:
        """Seats that cost nothing need no provider."""
        now_us = self._clock()
        if booking.state is BookingState.HELD:
            await self._ledger.begin_payment(booking.id, booking.fence, now_us)
        sold = await self._ledger.confirm(booking.id, booking.fence, now_us, await self.driver.tickets(booking))
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
        if payment.state in SHOWN:
            intent = None
            with contextlib.suppress(ProviderError):  # the page can ask again
                intent = await self._provider.read(payment.ref)
            return await self._shown(booking, payment, intent)
        return Outcome(CheckoutState.RETRYING, booking, payment)

    async def _shown(self, booking: Booking, payment: Payment, intent: Intent | None) -> Outcome:
        """A payment that waits for the fan; without `intent` the provider could not be asked."""
        state = CheckoutState.OPEN if payment.state is PaymentState.OPEN else CheckoutState.ACTION
        tries_left = max(0, await self.driver.card_tries(payment) - payment.declines)
        secret, url = (intent.client_secret, intent.action_url) if intent else ("", "")
        return Outcome(state, booking, payment, secret, url, tries_left)

    # the worker

    async def work(self) -> int:
        """Look at what is due now; how many payments that were. Any number of workers may run."""
        gate = asyncio.Semaphore(AT_ONCE)
        count = 0
        for _ in range(BATCHES_A_TURN):
            now_us = self._clock()
            due = await self._ledger.payments.lease_payments(now_us, now_us + LOOK_AGAIN_S * US_PER_S, WORK_BATCH)
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
