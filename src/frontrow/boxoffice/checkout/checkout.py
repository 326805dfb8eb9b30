"""Checkout (B6-B9): from a hold to a sold booking, and the worker that finishes what other processes left unfinished.

`begin` opens the payment page: the provider's object exists, and no money is reserved. The fan's card arrives with
`pay`, or the fan's browser gives it to the provider's own form without calling us. In that case a webhook, the page
(`check`) or the worker finds out, whichever is first. Each call returns a `CheckoutResult`: confirmed, open (with the
problem of the last card and how many cards may still be tried), declined, an action that the bank asks for, or
"retrying automatically" while the provider is unavailable and the fan keeps the seats. No call waits for the provider
longer than `FanWait` allows. A payment that succeeds after the hold has ended is refunded, and the fan gets 410.
`release` gives the seats back at any time before the sale and voids what was opened or reserved.

`work` continues every payment that is due. It takes the money of what was sold. Outages, lost webhooks, crashes and
expired holds end up there, too.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from frontrow.boxoffice.checkout.model.outage_priority import check_priority
from frontrow.boxoffice.checkout.ports import CheckoutLedger
from frontrow.boxoffice.checkout.provider_notices import ProviderNotices
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import (
    Booking,
    BookingState,
    HoldEnded,
    Move,
    MoveRefused,
    Origin,
    StaleFence,
)
from frontrow.boxoffice.holds.ports.seat_listener import SeatListener
from frontrow.boxoffice.payments.fan_wait import FanWait
from frontrow.boxoffice.payments.model.payment_methods import (
    ALL_METHODS,
    CARD,
    HOSTED,
    PaymentMethod,
    find_method,
    offered_methods,
)
from frontrow.boxoffice.payments.model.payment_rules import offers_slow
from frontrow.boxoffice.payments.model.payment_saga import is_late_money
from frontrow.boxoffice.payments.model.payments import ENDED, Payment, PaymentChanged, PaymentState
from frontrow.boxoffice.payments.model.provider_intents import Intent, ProviderError, TransferDetails
from frontrow.boxoffice.payments.model.retry_schedule import WORK_CLAIM_S
from frontrow.boxoffice.payments.open_providers import OpenProviders, ServersOwn, open_together
from frontrow.boxoffice.payments.outage_watch import OutageWatch
from frontrow.boxoffice.payments.payment_driver import PaymentDriver
from frontrow.boxoffice.payments.payment_log import PAYMENT_JOB, about_payment, log_sale, log_step
from frontrow.boxoffice.payments.payment_records import PaymentRecords
from frontrow.boxoffice.payments.ports import NoticeListener, Payee, Payees, PaymentProvider
from frontrow.boxoffice.payments.provider_calls import ProviderCalls
from frontrow.boxoffice.payments.resting_payments import RestingPayments
from frontrow.boxoffice.pricing.model.booking_choices import (
    BookingChoice,
    Reprice,
    choice_of,
    drop_unused_code,
    price_choice,
    uses_of,
)
from frontrow.boxoffice.pricing.model.prices import decode_lines, encode_lines
from frontrow.boxoffice.refunds.payouts import RefundPayouts
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.boxoffice.tickets.ports.tickets import TicketIssuer
from frontrow.core.background_tasks import start_task
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError, InvalidInput, Overloaded, Refused
from frontrow.core.failures import note_failure, note_success
from frontrow.shared.quiet_time import QuietTime

MAX_METHOD_CHARS: Final = 200
WORK_BATCH: Final = 500
BATCHES_PER_TURN: Final = 20
AT_ONCE: Final = 2_500  # payments that one worker drives at the same time
EVERY_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0
MAX_WITHDRAWALS: Final = 8  # tries while others keep changing the payment

REASONS: Final = {Move.RELEASE: "released", Move.STEP_BACK: "stepped_back"}  # why the fan ended the payment
# the fan has something to do on a page, or looks whether the money came
WAITS_FOR_FAN: Final = frozenset({PaymentState.OPEN, PaymentState.ACTION, PaymentState.PROCESSING})
WAITING: Final = {PaymentState.OPEN: "open", PaymentState.ACTION: "action", PaymentState.PROCESSING: "awaited"}


class CheckoutState(StrEnum):
    OPEN = "open"
    ACTION = "action"
    AWAITED = "awaited"  # the fan has agreed, the money is on its way: the seats are kept
    RETRYING = "retrying"  # "retrying automatically": the seats are kept
    CONFIRMED = "confirmed"
    DECLINED = "declined"
    ENDED = "ended"


class CheckoutResult(msgspec.Struct, frozen=True):
    """The state of a checkout, as the fan sees it."""

    state: CheckoutState
    booking: Booking
    payment: Payment | None = None
    client_secret: str = ""
    action_url: str = ""
    tries_left: int = 0  # of an open payment: cards that may still be declined before the seats are given up
    transfer: TransferDetails | None = None  # of awaited money: where the fan has to send it

    @property
    def problem(self) -> str:
        """The provider's code for the last card that failed. The payment is still open for another card."""
        return self.payment.reason if self.payment and self.state is CheckoutState.OPEN else ""

    @property
    def retry_at_us(self) -> int:
        return self.payment.retry_at_us if self.payment and self.state is CheckoutState.RETRYING else 0


def _nobody_waits(event_id: str) -> bool:
    return False


class PaymentOnItsWay(Refused):
    """The fan has agreed and the bank is moving the money: the booking cannot be changed or paid another way."""

    code = "payment_on_its_way"

    def __init__(self, booking_id: str) -> None:
        super().__init__("the bank is already moving the money; wait for it, or cancel the booking", booking=booking_id)


def check_method(method: str, offered: Sequence[PaymentMethod], booking: Booking) -> None:
    """Raise `InvalidInput` for a method that this booking cannot be paid with. A card's own id counts as `card`, and a
    provider of one's own may have methods that only it knows."""
    wanted = find_method(ALL_METHODS, method) or (HOSTED if method == HOSTED.id else CARD)
    if wanted is HOSTED or find_method(offered, wanted.id):
        return
    if wanted is CARD and any(find_method(ALL_METHODS, one.id) is None for one in offered):
        return
    can = f"choose one of {', '.join(one.id for one in offered)}" if offered else "no method takes this price"
    raise InvalidInput(f"{wanted.name} cannot be used for this booking; {can}", param="method")


class Checkout:
    """Sells held seats."""

    def __init__(
        self,
        ledger: CheckoutLedger,
        provider: PaymentProvider | OpenProviders,
        clock: Clock,
        *,
        seats: SeatListener | None = None,
        issuer: TicketIssuer | None = None,
        at_once: int = AT_ONCE,
        public_url: str = "",
        payees: Payees | None = None,
        listeners: Sequence[NoticeListener] = (),
    ) -> None:
        """`at_once`: how many payments the worker drives at the same time. Fans need calls to the provider, too.

        `public_url`: where people know the server; a bank's page sends them back there.
        """
        self.has_queue: Callable[[str], bool] = _nobody_waits  # whether people wait for an event now
        self._ledger, self._clock, self._seats = ledger, clock, seats
        self._providers, self._payees = open_together(provider), payees or ServersOwn()
        self._at_once, self._driving = at_once, set[asyncio.Task[None]]()
        self.records = PaymentRecords(ledger, clock)
        self._calls = ProviderCalls(ledger, self._providers, clock, self.records, public_url)
        self.driver = PaymentDriver(ledger, clock, self.records, self._calls, seats=seats, issuer=issuer)
        self._notices = ProviderNotices(
            ledger,
            self._providers,
            clock,
            self.records,
            self._calls,
            self.driver,
            RefundPayouts(ledger, self._providers, clock),
            listeners=listeners,
        )
        self._outage = OutageWatch(ledger.payments, self._providers, clock)
        self._resting = RestingPayments()
        self.failures = 0

    async def offered(self, booking: Booking, event: Event) -> tuple[PaymentMethod, ...]:
        """The methods that this booking can be paid with now, in the order in which they are offered."""
        payee = self._providers.named_payee(await self._payees.payee(booking))
        found = self._providers.find(payee.provider)
        if found is None or not booking.amount_minor:
            return ()
        has_queue = booking.origin is Origin.SHOP and self.has_queue(event.id)
        slow = offers_slow(event.payments, event.starts_at_us, self._clock(), has_queue=has_queue)
        wanted = event.payments.methods
        return offered_methods(found.methods, booking.amount_minor, booking.currency, wanted=wanted, slow=slow)

    async def begin(
        self, booking_id: str, fence: int, *, loaded: Booking | None = None, event: Event | None = None
    ) -> CheckoutResult:
        """Move held -> paying and create the provider's object for the payment page.

        `event`: what its fans may pay with; without it, with a card.
        """
        booking = loaded or await self._load_own(booking_id, fence)
        offered = ",".join(one.id for one in await self.offered(booking, event)) if event else ""
        with FanWait():
            for _ in range(2):  # once more if an earlier payment was still being voided
                booking, payment = await self._ensure_payment(booking, "", offered)
                if payment.state in WAITS_FOR_FAN:
                    return await self._check_with_provider(booking, payment)
                booking, payment = await self.driver.drive(booking, payment, fresh=payment.version == 1)
                if payment.state not in ENDED or not booking.live(self._clock()):
                    break
            return await self._result(booking, payment)

    async def pay(
        self,
        booking_id: str,
        fence: int,
        method: str,
        *,
        loaded: Booking | None = None,
        event: Event | None = None,
    ) -> CheckoutResult:
        """Pay with this card, or with the method that has this id, and confirm the booking.

        Raises `HoldEnded` (410) when the hold is over; anything reserved is released automatically. `loaded` is the
        booking as the caller read it a moment ago. Every write compares versions, so a stale one costs a retry, never
        a seat.
        """
        if not 1 <= len(method) <= MAX_METHOD_CHARS or not method.isascii():
            raise InvalidInput("a payment method is the provider's id of a card, or the id of a method", param="method")
        booking = loaded or await self._load_own(booking_id, fence)
        if booking.amount_minor == 0:
            return await self._confirm_free(booking)
        if event is not None and (event.payments.methods or find_method(ALL_METHODS, method)):
            check_method(method, await self.offered(booking, event), booking)
        booking, payment = await self._ensure_payment(booking, method)
        fresh = payment.version == 1
        if payment.state is PaymentState.OPEN:
            authorising = self.records.advance(payment, PaymentState.AUTHORISING, method=method)
            try:
                await self.records.save(authorising)
                payment, fresh = authorising, True
            except PaymentChanged:
                payment = await self.records.reload_payment(payment)
        if payment.state is PaymentState.AUTHORISING and not fresh:  # a second click: another call is paying already
            return await self._result(booking, payment)
        with FanWait():
            return await self._result(*await self.driver.drive(booking, payment, fresh=fresh))

    async def claim_priority(self, booking: Booking) -> int:
        """When the priority of this booking (B8) was first claimed: now, if it never was. `NoPriority` if it gives
        none."""
        now_us = self._clock()
        check_priority(booking, await self._ledger.payments.payments_of(booking.id), now_us)
        return await self._ledger.messages.first_seen("priority", booking.id, now_us)

    async def check(self, booking_id: str, fence: int, answers: Mapping[str, str] | None = None) -> CheckoutResult:
        """The present state. While the payment waits for the fan, it is also read from the provider.

        `answers` is what the fan's browser brings back from a page of the provider.
        """
        booking = await self._load_own(booking_id, fence)
        payment = await self.records.latest_payment(booking_id)
        with FanWait():
            if answers and payment is not None:
                with contextlib.suppress(ProviderError):  # the notice or the worker brings it
                    if await self._calls.hear_return(payment, answers):
                        await self._return_late_money(booking)
            if payment is not None and payment.state in WAITS_FOR_FAN:
                return await self._check_with_provider(booking, payment)
            return await self._result(booking, payment)

    async def _return_late_money(self, booking: Booking) -> None:
        """A fan who was at the bank's page until the hold was over, or who has left that payment, may have paid there:
        a provider whose notice is lost says so only now."""
        for payment in await self._ledger.payments.payments_of(booking.id):
            if payment.state in ENDED and payment.ref:
                intent = await self._calls.read(payment)
                if is_late_money(payment, intent):
                    await self.driver.take_late_money(payment, intent)

    async def _check_with_provider(self, booking: Booking, payment: Payment) -> CheckoutResult:
        """Read a payment that waits for the fan at the provider and act on what it says."""
        if not booking.live(self._clock()):
            return await self._result(*await self.driver.drive(booking, payment))
        try:
            intent = await self._calls.read(payment)
            updated = await self._calls.apply_intent(payment, intent)
        except ProviderError:  # the worker tries again; the page says that it takes longer
            return await self._waiting_result(booking, payment, None)
        except PaymentChanged:
            booking = await self.records.load_booking(booking.id)
            payment = await self.records.reload_payment(payment)
            return await self._result(booking, payment)
        if updated is None:
            return await self._waiting_result(booking, payment, intent)
        log_step(booking, payment, booking, updated)
        return await self._result(*await self.driver.drive(booking, updated, fresh=True))

    async def release(self, booking_id: str, fence: int) -> Booking:
        """Give the seats back before the sale and void what was opened or reserved at the provider.

        One transaction decides. If the sale was written first it raises `MoveRefused`. Otherwise the seats are free at
        once, and a card that is accepted in a browser at the same time is not charged.
        """
        with FanWait():
            return await self._withdraw(booking_id, fence, Move.RELEASE)

    async def step_back(self, booking_id: str, fence: int) -> Booking:
        """Void what was opened or reserved and keep the seats held, so that the fan can pay another way."""
        with FanWait():
            return await self._withdraw(booking_id, fence, Move.STEP_BACK)

    async def choose(self, booking: Booking, choice: BookingChoice, event: Event, plan: Plan) -> Booking:
        """Change ticket types, add-ons and the code of a hold. An open payment is voided first."""
        chosen = price_choice(event, plan, booking.seats, choice, self._clock())
        if booking.state is BookingState.PAYING:
            booking = await self.step_back(booking.id, booking.fence)
        return await self._ledger.reprice(
            Reprice(
                booking.id,
                booking.fence,
                self._clock(),
                booking.seats,
                chosen.quote.seat_totals_minor,
                chosen.quote.total_minor,
                encode_lines(chosen.quote.lines),
                chosen.uses,
            )
        )

    async def count_limits(self, booking: Booking, event: Event, plan: Plan) -> Booking:
        """Count what a hold uses, at the price it has. A code of which nothing was used is given back."""
        now_us, lines = self._clock(), drop_unused_code(event, decode_lines(booking.price_lines))
        uses = uses_of(event, plan, booking.seats, choice_of(event, lines))
        text = encode_lines(lines) if lines else ""
        ask = Reprice(booking.id, booking.fence, now_us, booking.seats, (), booking.amount_minor, text, uses)
        return await self._ledger.reprice(ask)

    async def _withdraw(self, booking_id: str, fence: int, wish: Move) -> Booking:
        for _ in range(MAX_WITHDRAWALS):
            booking = await self._load_own(booking_id, fence)
            try:
                if booking.state is not BookingState.PAYING:
                    return await self._move(booking, wish)
                payment = await self.records.latest_payment(booking_id)
                if payment is None or payment.state in ENDED:  # nothing to void
                    await self._ledger.step_back(booking_id, fence, self._clock())
                elif (
                    payment.state is PaymentState.PROCESSING
                    and wish is Move.STEP_BACK
                    and not self._recallable(payment)
                ):
                    raise PaymentOnItsWay(booking_id)
                elif payment.state is PaymentState.CAPTURED:  # somebody captured it at the provider: it is sold
                    await self.driver.drive(booking, payment)
                else:
                    move = Move.WITHDRAW if wish is Move.RELEASE else Move.STEP_BACK
                    return (await self.driver.withdraw(booking, payment, move, REASONS[wish]))[0]
            except (PaymentChanged, MoveRefused) as error:
                if isinstance(error, MoveRefused) and error.state is not BookingState.PAYING:
                    raise  # it is sold
        raise Overloaded(f"booking {booking_id} is being changed by another request; try again", retry_after_s=0.1)

    def _recallable(self, payment: Payment) -> bool:
        found = self._providers.find(payment.provider)
        methods = (*found.methods, *ALL_METHODS) if found else ALL_METHODS
        method = find_method(methods, payment.paid_with or payment.method)
        return method is not None and method.recallable

    async def _move(self, booking: Booking, wish: Move) -> Booking:
        """Move a booking that has no payment to void."""
        now_us = self._clock()
        if wish is Move.STEP_BACK:
            return await self._ledger.step_back(booking.id, booking.fence, now_us)
        released = await self._ledger.release_hold(booking.id, booking.fence, now_us)
        if self._seats is not None:
            await self._seats.freed(released.event_id, released.seats, released.id)
        return released

    async def handle_webhook(self, body: bytes, headers: Mapping[str, str], provider: str = "") -> bool:
        """Verify a webhook of this provider ("": the default) and act on it once. Returns False when there was nothing
        to do."""
        return await self._notices.handle(provider or self._providers.default.name, body, headers)

    async def _load_own(self, booking_id: str, fence: int) -> Booking:
        booking = await self.records.load_booking(booking_id)
        if booking.fence != fence:
            raise StaleFence(booking_id, fence)
        return booking

    async def _ensure_payment(self, booking: Booking, method: str, offered: str = "") -> tuple[Booking, Payment]:
        """The booking in `paying` with its live payment, which is created if there is none."""
        payment = None
        if booking.state is not BookingState.HELD or booking.payment_begun_at_us is not None:
            payment = await self.records.latest_payment(booking.id)
        payee: Payee | None = None
        for _ in range(2):
            if payment is not None and (payment.state not in ENDED or not booking.live(self._clock())):
                break
            attempt, declines = (payment.attempt + 1, payment.declines) if payment else (1, 0)
            payee = payee or self._providers.named_payee(await self._payees.payee(booking))
            with contextlib.suppress(PaymentChanged):  # another click created it a moment ago, or it is not the first
                return await self.driver.new_attempt(
                    booking, attempt, method, payee, Move.BEGIN_PAYMENT, declines=declines, offered=offered
                )
            payment = await self.records.latest_payment(booking.id)
            booking = await self.records.load_booking(booking.id)
        assert payment is not None
        return booking, payment

    async def _confirm_free(self, booking: Booking) -> CheckoutResult:
        """Confirm seats that cost nothing, without a provider."""
        now_us = self._clock()
        sold = await self._ledger.confirm_free(booking.id, booking.fence, now_us, await self.driver.tickets(booking))
        log_sale(sold)
        if self._seats is not None:
            with contextlib.suppress(FrontrowError):
                await self._seats.sold(sold)
        return CheckoutResult(CheckoutState.CONFIRMED, sold)

    async def _result(self, booking: Booking, payment: Payment | None) -> CheckoutResult:
        if booking.state is BookingState.CONFIRMED:
            return CheckoutResult(CheckoutState.CONFIRMED, booking, payment)
        if booking.state is BookingState.CANCELLED and payment and payment.state is PaymentState.DECLINED:
            return CheckoutResult(CheckoutState.DECLINED, booking, payment)
        if not booking.live(self._clock()):
            if booking.state in (BookingState.CANCELLED, BookingState.REFUNDED):
                return CheckoutResult(CheckoutState.ENDED, booking, payment)
            raise HoldEnded(booking.id, booking.hold_expires_at_us)
        if payment is None:
            return CheckoutResult(CheckoutState.OPEN, booking)
        if payment.state in WAITS_FOR_FAN:
            intent = None
            with contextlib.suppress(ProviderError):  # the page polls again
                intent = await self._calls.read(payment)
            return await self._waiting_result(booking, payment, intent)
        return CheckoutResult(CheckoutState.RETRYING, booking, payment)

    async def _waiting_result(self, booking: Booking, payment: Payment, intent: Intent | None) -> CheckoutResult:
        """The result for a payment that waits for the fan. `intent` is None when the provider could not be reached."""
        state = CheckoutState(WAITING[payment.state])
        tries_left = max(0, await self._calls.card_tries(payment) - payment.declines)
        if intent is None:
            return CheckoutResult(state, booking, payment, tries_left=tries_left, transfer=payment.transfer)
        shown = intent.client_secret, intent.action_url, tries_left, intent.transfer or payment.transfer
        return CheckoutResult(state, booking, payment, *shown)

    # The worker.

    async def work(self) -> int:
        """Continue the payments that are due now and return how many there were. Any number of workers may run."""
        count = await self._start_due()
        await asyncio.gather(*self._driving)
        return count

    async def _start_due(self) -> int:
        """Begin to continue the payments that are due. A payment that waits for the provider does not block others."""
        await self._outage.wake_payments()
        batch, count = max(1, min(WORK_BATCH, self._at_once // 4)), 0
        for _ in range(BATCHES_PER_TURN):
            while len(self._driving) > self._at_once - batch:  # a call to the provider has a deadline
                await asyncio.wait(self._driving, return_when=asyncio.FIRST_COMPLETED)
            now_us = self._clock()
            due = await self._ledger.payments.claim_payments(now_us, now_us + WORK_CLAIM_S * US_PER_S, batch)
            for payment in due:
                task = start_task(self._drive_due(payment), PAYMENT_JOB, **about_payment(payment))
                self._driving.add(task)
                task.add_done_callback(self._driving.discard)
            count += len(due)
            if len(due) < batch:
                break
        return count

    async def _drive_due(self, payment: Payment) -> None:
        """Continue one payment. An unexpected error is logged, and the payment is paused longer each time."""
        if self._resting.rests(payment.id, self._clock()):
            return
        try:
            latest = payment
            if payment.state is not PaymentState.CAPTURING:  # no other attempt begins while one is captured
                latest = await self.records.reload_payment(payment)
            if latest.id != payment.id:  # a later attempt replaced it: nobody may pay with what is left of it
                await self.driver.drive_any(payment)
            await self.driver.drive(await self.records.load_booking(payment.booking_id), latest)
            self._resting.forget(payment.id)
        except FrontrowError as error:  # the ledger is away, or another worker has it: due again when the claim ends
            self.failures += 1
            if not isinstance(error, PaymentChanged):
                note_failure(error, **about_payment(payment))
        except Exception as error:
            self.failures += 1
            note_failure(error, **about_payment(payment))
            await self._rest_longer(payment)

    async def _rest_longer(self, payment: Payment) -> None:
        """Pause this payment for longer than the last time, also in memory, because saving may fail."""
        pause_s = self._resting.rest(payment, self._clock())
        latest = await self.records.reload_payment(payment)
        if latest.id == payment.id:
            retry_at_us = self._clock() + pause_s * US_PER_S
            await self.records.save(replace(self.records.reschedule(latest, retry_at_us), tries=latest.tries + 1))

    async def run(self, quiet: QuietTime | None = None) -> None:
        """Work until cancelled. While the ledger is unavailable the pauses get longer, up to a bound."""
        pause_s = EVERY_S
        try:
            while True:  # until cancelled
                try:
                    await self._start_due()
                    note_success()
                    pause_s = EVERY_S
                except FrontrowError as error:
                    self.failures += 1
                    note_failure(error)
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                await asyncio.sleep(pause_s)
                if quiet is not None and not self._outage.is_on:
                    await quiet.wait_while_quiet()
        finally:
            for task in self._driving:
                task.cancel()
            await asyncio.gather(*self._driving, return_exceptions=True)
