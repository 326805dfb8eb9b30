"""The calls to the payment provider for one payment: create, authorise, capture, void, read back.

Each method saves the state that follows from a definite answer and returns the new version of the payment. Without a
definite answer it raises `ProviderUnknown` or `ProviderNotCalled` and saves nothing, so the payment stays in the state
that means "outcome unknown".
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.holds.model.bookings import HOLD_STATES, Booking, Move
from frontrow.boxoffice.payments.model.card_declines import count_decline, may_try_again
from frontrow.boxoffice.payments.model.disputes import DISPUTE_CHECK_S, DisputeState, disputed_minor
from frontrow.boxoffice.payments.model.payment_methods import ALL_METHODS, MethodFamily, find_method
from frontrow.boxoffice.payments.model.payment_rules import pay_until_us
from frontrow.boxoffice.payments.model.payment_saga import money_pause_us, next_check_us, state_from_intent
from frontrow.boxoffice.payments.model.payments import TAKES_CARDS, Payment, PaymentState
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    IntentState,
    NewIntent,
    ProviderRefused,
    ProviderUnknown,
)
from frontrow.boxoffice.payments.model.retry_schedule import WORK_CLAIM_S
from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.boxoffice.payments.payment_records import PaymentRecords
from frontrow.boxoffice.payments.ports import PaymentLedger, RemembersNotices
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import NotFound

RESULT_CHECK_S: Final = 60  # how soon to read what became of a capture that was only accepted, if no notice came


class ProviderCalls:
    """Calls the provider and saves its answers."""

    def __init__(
        self, ledger: PaymentLedger, providers: OpenProviders, clock: Clock, records: PaymentRecords, public_url: str
    ) -> None:
        self._ledger, self._providers, self._clock, self._records = ledger, providers, clock, records
        self._public_url = public_url

    async def read(self, payment: Payment) -> Intent:
        """The provider's object for this payment, as it is now."""
        return await self._providers.of(payment).read(payment.ref)

    async def hear_return(self, payment: Payment, answers: Mapping[str, str]) -> bool:
        """Tell the provider's adapter what a fan's browser brought back from a page of the provider. False: it needs
        nobody to tell it, or the answers are not of its page."""
        provider = self._providers.of(payment)
        if not payment.ref or not isinstance(provider, RemembersNotices):
            return False
        return await provider.returned(payment.ref, answers)

    async def create(self, booking: Booking, payment: Payment) -> Payment:
        """Create the provider's object for this payment, and authorise its card if there is one."""
        try:
            intent = await self._providers.of(payment).create(self._new_intent(booking, payment))
        except ProviderRefused as error:  # the provider will never accept this payment: end it
            voided = self._records.advance(payment, PaymentState.VOIDED, reason=error.reason)
            move = Move.DECLINE if booking.state in HOLD_STATES else None
            await self._records.save(voided, move, booking, reason=error.reason)
            return voided
        if payment.method:
            if intent.state is IntentState.CREATED and not intent.declined:  # the card is a call of its own
                return await self._save(self._records.advance(payment, PaymentState.AUTHORISING, ref=intent.ref))
            authorising = replace(payment, state=PaymentState.AUTHORISING, ref=intent.ref, call=1)
            return await self._apply_answer(authorising, intent)
        opened = self._records.advance(payment, PaymentState.OPEN, ref=intent.ref)
        return await self._save(replace(opened, retry_at_us=next_check_us(booking, opened, self._clock())))

    async def authorise(self, payment: Payment) -> Payment:
        """Reserve the money on the fan's card."""
        if payment.state is PaymentState.OPEN:
            return await self._save(self._records.advance(payment, PaymentState.AUTHORISING))
        try:
            provider, back = self._providers.of(payment), self._return_url(payment.booking_id)
            intent = await provider.authorise(payment.ref, payment.method, payment.key("authorise"), back)
        except ProviderRefused as error:
            return await self.read_back(payment) or await self._card_failed(payment, error.reason, payment.failure)
        return await self._apply_answer(payment, intent)

    async def _apply_answer(self, payment: Payment, intent: Intent) -> Payment:
        """Save what the bank said about the card of this payment, which is `authorising`."""
        if intent.declined:  # the answer to our own call is always new, even if the failure has the same name
            return await self._card_failed(payment, intent.error, intent.failure)
        if state_from_intent(payment, intent) is PaymentState.AUTHORISED:
            # Not saved on its own: the transaction that confirms or voids follows at once and saves this too.
            return replace(payment, state=PaymentState.AUTHORISED, paid_with=intent.method or payment.paid_with)
        return await self.apply_intent(payment, intent) or await self._save(
            self._records.reschedule(payment, self._clock() + WORK_CLAIM_S * US_PER_S)
        )

    async def capture(self, payment: Payment) -> Payment:
        """Take the reserved money."""
        if payment.state is not PaymentState.CAPTURING:
            return await self._save(self._records.advance(payment, PaymentState.CAPTURING))
        try:
            intent = await self._providers.of(payment).capture(payment.ref, payment.key("capture"))
        except ProviderRefused as error:
            updated = await self.read_back(payment)
            if updated is None:  # still authorised, yet refused: void it, then it has lapsed
                await self._providers.of(payment).void(payment.ref, payment.key("void"))
                updated = await self._save(self._records.advance(payment, PaymentState.LAPSED, reason=error.reason))
            return updated
        if intent.state is IntentState.PROCESSING:  # accepted; the next driver reads what became of it
            return await self._await_capture(payment)
        return await self._save(replace(self._records.advance(payment, PaymentState.CAPTURED), retry_at_us=0))

    async def _await_capture(self, payment: Payment) -> Payment:
        """A capture was accepted. If an earlier one was, and nothing was taken, the next one has a new key."""
        failed = payment.tries > 0 and (await self.read(payment)).state is IntentState.AUTHORISED
        later = self._records.reschedule(payment, self._clock() + RESULT_CHECK_S * US_PER_S)
        return await self._save(replace(later, tries=max(1, payment.tries), call=payment.call + failed))

    async def void(self, booking: Booking, payment: Payment) -> Payment:
        """Drop the authorisation, or close an object that took no card."""
        if not payment.ref:
            return await self._find_object(booking, payment)
        try:
            intent = await self._providers.of(payment).void(payment.ref, payment.key("void"))
        except ProviderRefused as error:
            updated = await self._read_after_refused_void(payment, error)
            if updated is not None:
                return updated
        else:
            if intent.state is IntentState.PROCESSING:
                return await self._await_result(payment)
        return await self._save(replace(self._records.advance(payment, PaymentState.VOIDED), retry_at_us=0))

    async def _await_result(self, payment: Payment) -> Payment:
        """Nothing can be stopped any more: look later for what became of it."""
        now_us = self._clock()
        return await self._save(self._records.reschedule(payment, now_us + money_pause_us(payment, now_us)))

    async def _find_object(self, booking: Booking, payment: Payment) -> Payment:
        """Find the object that a call created whose answer was lost: the same key gives the same answer.

        If that call never arrived, it arrives now, and the next step voids what it made.
        """
        try:
            intent = await self._providers.of(payment).create(self._new_intent(booking, payment))
        except ProviderRefused as error:  # no object, or the booking was changed: the reconciler looks for it
            voided = self._records.advance(payment, PaymentState.VOIDED, reason=payment.reason or error.reason)
            return await self._save(replace(voided, retry_at_us=0))
        found = self._records.reschedule(payment, self._clock() + WORK_CLAIM_S * US_PER_S)
        return await self._save(replace(found, ref=intent.ref, call=1, tries=0))

    async def _read_after_refused_void(self, payment: Payment, refused: ProviderRefused) -> Payment | None:
        """Find out why the provider did not void. If the object may still take money, try again later."""
        try:
            intent = await self.read(payment)
        except ProviderRefused:  # there is no such object
            return None
        updated = await self.apply_intent(payment, intent)
        if updated is None and intent.state is IntentState.PROCESSING:
            return await self._await_result(payment)
        if updated is None and intent.state is not IntentState.VOID:
            raise ProviderUnknown(f"{payment.ref} is {intent.state}: {refused.message}", answered=True)
        return updated

    async def send_back(self, payment: Payment) -> Payment:
        """Refund all the money that came for a payment that was ended here. No refund of the ledger names it.

        While the fan's bank disputes it, it waits. What the bank has taken back for good is not given back as well.
        """
        disputes = await self._ledger.payments.disputes_of_ref(payment.provider, payment.ref)
        if any(one.state is DisputeState.OPEN for one in disputes):
            later_us = self._clock() + DISPUTE_CHECK_S * US_PER_S
            return await self._save(self._records.reschedule(payment, later_us))
        provider, intent = self._providers.of(payment), await self.read(payment)
        left_minor = intent.captured_minor - intent.refunded_minor - disputed_minor(disputes, payment.ref)
        if left_minor > 0:
            await provider.refund(payment.ref, left_minor, f"rfd_{payment.ref}", payment.key("late_refund"))
        return await self._save(self._records.reschedule(payment))

    async def drop(self, payment: Payment) -> Payment:
        """Void the object of a payment that has ended, so that no card can be used on it any more."""
        try:
            await self._providers.of(payment).void(payment.ref, payment.key("void"))
        except ProviderRefused:
            if (await self.read(payment)).state is not IntentState.CAPTURED:
                raise ProviderUnknown(f"{payment.ref} cannot be voided yet", answered=True) from None
        return await self._save(self._records.reschedule(payment))

    async def read_back(self, payment: Payment) -> Payment | None:
        """Read the provider's object and save what changed. None when nothing did."""
        try:
            return await self.apply_intent(payment, await self.read(payment))
        except ProviderRefused:
            return None

    async def apply_intent(self, payment: Payment, intent: Intent) -> Payment | None:
        """Save what the provider's object says. None when it says nothing new."""
        state = state_from_intent(payment, intent)
        if state is None:
            return None
        if intent.declined:
            return await self._card_failed(payment, intent.error, intent.failure)
        changes: dict[str, object] = {"call": payment.call + 1} if state is PaymentState.OPEN else {}
        if payment.state in TAKES_CARDS:
            changes["reason"] = ""  # that of an earlier card
        if state is PaymentState.AUTHORISED:
            changes["tries"] = payment.tries  # an outage that made it late is given as the reason
        if intent.method:
            changes["paid_with"] = intent.method
        if state is PaymentState.PROCESSING:
            changes["transfer"] = intent.transfer
        return await self._save(self._records.advance(payment, state, **changes))

    async def _card_failed(self, payment: Payment, reason: str, failure: str) -> Payment:
        """A card was not accepted. The payment waits for another card, or ends if this was the last allowed try."""
        declines = count_decline(payment.declines, reason)
        changes = {"reason": reason, "failure": failure, "declines": declines}
        if may_try_again(declines, reason, await self.card_tries(payment)):
            return await self._save(
                self._records.advance(payment, PaymentState.OPEN, method="", call=payment.call + 1, **changes)
            )
        return await self._save(self._records.advance(payment, PaymentState.DECLINED, **changes))

    async def card_tries(self, payment: Payment) -> int:
        """How many cards may be declined before the seats are given up (set by the event); 0 without a live hold.

        Slow money that failed has no second try: nobody looks at the page days later.
        """
        booking = await self._records.load_booking(payment.booking_id)
        if booking.state not in HOLD_STATES or not booking.live(self._clock()) or booking.is_ordered:
            return 0
        try:
            return (await self._ledger.catalogue.event(booking.event_id)).card_tries
        except NotFound:
            return 1

    async def pay_until_us(self, booking: Booking, payment: Payment) -> int:
        """How long the organiser lets the awaited money of this payment hold the seats; 0: no longer than any other."""
        if payment.state is not PaymentState.PROCESSING:
            return 0
        methods = (*self._providers.of(payment).methods, *ALL_METHODS)  # also one that is not offered any more
        method = find_method(methods, payment.paid_with or payment.method)
        if method is None or method.family is not MethodFamily.SLOW:
            return 0
        try:
            event = await self._ledger.catalogue.event(booking.event_id)
        except NotFound:
            return 0
        return pay_until_us(event.payments, event.starts_at_us, payment.agreed_at_us)

    async def _save(self, payment: Payment) -> Payment:
        await self._records.save(payment)
        return payment

    def _return_url(self, booking_id: str) -> str:
        """Where the bank's page sends the fan back to."""
        return f"{self._public_url}/checkout/{booking_id}"

    def _new_intent(self, booking: Booking, payment: Payment) -> NewIntent:
        """The request that creates a payment at the provider. Its card goes along only with the first call: a call that
        was answered by an error may have reserved money, so the next ones take one step at a time."""
        with_card = bool(payment.method) and payment.call == 1
        return NewIntent(
            booking.id,
            payment.attempt,
            payment.amount_minor,
            payment.currency,
            booking.event_id,
            booking.fence,
            booking.seats,
            payment.key("pay" if with_card else "create"),
            payment.method if with_card else "",
            tuple(payment.offered.split(",")) if payment.offered else (),
            return_url=self._return_url(booking.id),
            fee_minor=payment.fee_minor,
        )
