"""Pays refunds out. Each refund is requested from the provider under its own key until there is a definite answer.

A refund that the provider calls pending is not finished. It is checked again until the bank has said yes or no; a
webhook usually says so sooner. A refund that failed, at once or later, is still owed. It is logged, counted and shown
to the organiser, and tried again under a new key when a person asks for it.
"""

import asyncio
import contextlib
from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.facts.model import RefundFailed, RefundPaid
from frontrow.boxoffice.payments.model.disputes import DISPUTE_CHECK_S, DisputeState, disputed_minor, is_disputed
from frontrow.boxoffice.payments.model.payments import ENDED, EXTERNAL, Payment, PaymentChanged, PaymentState
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    ProviderNotCalled,
    ProviderRefund,
    ProviderRefused,
    ProviderUnknown,
)
from frontrow.boxoffice.payments.model.retry_schedule import WORK_CLAIM_S
from frontrow.boxoffice.payments.open_providers import OpenProviders, open_together
from frontrow.boxoffice.payments.ports import PaymentLedger, PaymentProvider
from frontrow.boxoffice.payments.resting_payments import RestingPayments
from frontrow.boxoffice.refunds.model.refunds import Refund, RefundState
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError
from frontrow.core.failures import note_failure
from frontrow.core.log_line import LogLine
from frontrow.shared.log_lines import REFUND_FAILED, REFUND_MOOT, REFUND_PAID, REFUND_PENDING, REFUND_WAITS

WORK_BATCH: Final = 500
BATCHES_PER_TURN: Final = 100
MAX_CONCURRENT: Final = 100
KEY_LIFETIME_US: Final = 20 * 3600 * US_PER_S  # providers delete keys after a day: older refunds are read first
CAPTURE_RETRY_S: Final = 5  # how soon to try again while the capture is not finished
LOST_IN_PART: Final = "lost_in_part"  # the failure of a refund of more than a lost dispute left
AT_PROVIDER: Final = frozenset({RefundState.PENDING, RefundState.DONE})
PENDING_CHECK_S: Final = 3600  # how often a pending refund is read, in case its webhook is lost


class RefundPayouts:
    """Pays due refunds. Any number of workers may run."""

    def __init__(self, ledger: PaymentLedger, provider: PaymentProvider | OpenProviders, clock: Clock) -> None:
        self._ledger, self._providers, self._clock = ledger, open_together(provider), clock
        self._resting = RestingPayments()
        self.failures = 0

    async def work(self) -> int:
        """Pay out the refunds that are due now and return how many there were."""
        gate = asyncio.Semaphore(MAX_CONCURRENT)
        count = 0
        for _ in range(BATCHES_PER_TURN):
            now_us = self._clock()
            due = await self._ledger.payments.claim_refunds(now_us, now_us + WORK_CLAIM_S * US_PER_S, WORK_BATCH)
            await asyncio.gather(*(self._pay_due(refund, gate) for refund in due))
            count += len(due)
            if len(due) < WORK_BATCH:
                break
        return count

    async def pay_out(self, refund: Refund) -> None:
        """Pay out one refund, or save when to try again."""
        payment = await self._ledger.payments.payment(refund.payment_id)
        assert payment is not None, refund.payment_id
        await self._request(refund, payment)

    async def _pay_due(self, refund: Refund, gate: asyncio.Semaphore) -> None:
        """Pay out one refund. An unexpected error is logged, and the refund is paused longer each time."""
        if self._resting.rests(refund.id, self._clock()):
            return
        async with gate:
            try:
                await self.pay_out(refund)
                self._resting.forget(refund.id)
            except PaymentChanged:  # another worker has it
                self.failures += 1
            except FrontrowError as error:  # the ledger is away: due again when the claim ends
                self.failures += 1
                note_failure(error, refund_id=refund.id, booking_id=refund.booking_id)
            except Exception as error:
                self.failures += 1
                note_failure(error, refund_id=refund.id, booking_id=refund.booking_id)
                await self._rest_longer(refund)

    async def _rest_longer(self, refund: Refund) -> None:
        """As for a payment. The pause is also kept in memory, because saving may fail."""
        now_us = self._clock()
        later_us = now_us + self._resting.rest(refund, now_us) * US_PER_S
        rested = replace(
            refund, retry_at_us=later_us, tries=refund.tries + 1, changed_at_us=now_us, version=refund.version + 1
        )
        try:
            await self._ledger.payments.save_refund(rested, now_us=now_us)
        except Exception as error:
            note_failure(error, refund_id=refund.id, booking_id=refund.booking_id)

    async def _request(self, refund: Refund, payment: Payment) -> None:
        now_us = self._clock()
        if payment.state in ENDED:  # nothing was captured, so nothing is owed
            await self._ledger.payments.save_refund(refund.moved(RefundState.MOOT, now_us), now_us=now_us)
            REFUND_MOOT(refund_id=refund.id, booking_id=refund.booking_id)
            return
        if payment.state is not PaymentState.CAPTURED:  # the capture is not finished
            later_us = now_us + CAPTURE_RETRY_S * US_PER_S
            waiting = replace(refund, retry_at_us=later_us, changed_at_us=now_us, version=refund.version + 1)
            await self._ledger.payments.save_refund(waiting, now_us=now_us)
            return
        if not refund.amount_minor:  # the organiser keeps all of what was taken
            await self._ledger.payments.save_refund(refund.moved(RefundState.DONE, now_us), now_us=now_us)
            return
        if payment.provider == EXTERNAL:  # staff gives it back by hand: in cash, or on the card reader
            await self._ledger.payments.save_refund(refund.moved(RefundState.DONE, now_us), now_us=now_us)
            _log_answer(REFUND_PAID, refund)
            return
        if refund.state is RefundState.ASKED and not await self._may_pay(refund, payment):
            return
        try:
            if refund.state is RefundState.PENDING:
                await self._check_pending(refund, payment)
                return
            given = await self._find_earlier(refund, payment) or await self._providers.of(payment).refund(
                payment.ref, refund.amount_minor, refund.id, refund.key()
            )
            await self._save_answer(refund, given)
        except ProviderRefused as error:
            await self._handle_refusal(refund, payment, error.reason)
        except (ProviderUnknown, ProviderNotCalled) as error:
            await self._retry_later(refund, answered=isinstance(error, ProviderUnknown) and error.answered)

    async def _may_pay(self, refund: Refund, payment: Payment) -> bool:
        """Whether the money is ours to give. While a dispute is open the refund waits; what was lost is never given."""
        disputes = await self._ledger.payments.disputes_of(payment.booking_id)
        if not is_disputed(disputes):
            return True
        now_us = self._clock()
        if any(one.state is DisputeState.OPEN for one in disputes):
            later_us = now_us + DISPUTE_CHECK_S * US_PER_S
            waiting = replace(refund, retry_at_us=later_us, changed_at_us=now_us, version=refund.version + 1)
            await self._ledger.payments.save_refund(waiting, now_us=now_us)
            _log_answer(REFUND_WAITS, refund)
            return False
        refunds = await self._ledger.payments.refunds_of(payment.booking_id)
        given = sum(
            one.amount_minor
            for one in refunds
            if one.payment_id == payment.id and one.id != refund.id and _comes_before(one, refund)
        )
        left_minor = payment.amount_minor - disputed_minor(disputes, payment.ref) - given
        if refund.amount_minor <= left_minor:
            return True
        if left_minor > 0:
            await self._save_failure(refund, LOST_IN_PART)
            return False
        await self._ledger.payments.save_refund(refund.moved(RefundState.MOOT, now_us), now_us=now_us)
        REFUND_MOOT(refund_id=refund.id, booking_id=refund.booking_id)
        return False

    async def _find_earlier(self, refund: Refund, payment: Payment) -> ProviderRefund | None:
        """The refund at the provider, if an earlier call may have created it."""
        if not refund.tries and self._clock() - refund.created_at_us < KEY_LIFETIME_US:
            return None
        return await self._find(refund, payment)

    async def _find(self, refund: Refund, payment: Payment) -> ProviderRefund | None:
        return _find_unfailed(refund, await self._providers.of(payment).read(payment.ref))

    async def check(self, payment: Payment) -> int:
        """Read a payment's refunds at the provider and save what changed. Returns how many did."""
        if payment.state is not PaymentState.CAPTURED or payment.provider == EXTERNAL:
            return 0
        return await self.compare(payment, await self._providers.of(payment).read(payment.ref))

    async def compare(self, payment: Payment, intent: Intent) -> int:
        """Like `check`, with the provider's object already read."""
        changed = 0
        for refund in await self._ledger.payments.refunds_of(payment.booking_id):
            if refund.payment_id == payment.id and refund.ref:
                with contextlib.suppress(PaymentChanged):  # another process has just saved it
                    changed += await self._save_if_changed(refund, intent)
        return changed

    async def _check_pending(self, refund: Refund, payment: Payment) -> None:
        if not await self._save_if_changed(refund, await self._providers.of(payment).read(payment.ref)):
            now_us = self._clock()
            waiting = refund.moved(RefundState.PENDING, now_us, retry_at_us=now_us + PENDING_CHECK_S * US_PER_S)
            await self._ledger.payments.save_refund(waiting, now_us=now_us)

    async def _save_if_changed(self, refund: Refund, intent: Intent) -> bool:
        """Save the provider's refund if it differs from the ledger's. Returns whether it did."""
        given = next((one for one in intent.refunds if one.ref == refund.ref), None)
        if given is None or refund.state not in (RefundState.PENDING, RefundState.DONE, RefundState.FAILED):
            return False
        state = _state_of(given)
        if state is refund.state or (state is RefundState.PENDING and refund.state is not RefundState.FAILED):
            return False
        await self._save_answer(refund, given)
        return True

    async def _save_answer(self, refund: Refund, given: ProviderRefund) -> None:
        """Save the provider's definite answer."""
        state, now_us = _state_of(given), self._clock()
        if state is RefundState.FAILED:
            await self._save_failure(refund, given.failure or "failed", ref=given.ref)
        elif state is RefundState.PENDING:
            later_us = now_us + PENDING_CHECK_S * US_PER_S
            pending = refund.moved(RefundState.PENDING, now_us, retry_at_us=later_us, ref=given.ref)
            await self._ledger.payments.save_refund(pending, now_us=now_us)
            _log_answer(REFUND_PENDING, refund)
        else:
            await self._save_done(refund, given)

    async def _save_done(self, refund: Refund, given: ProviderRefund) -> None:
        now_us = self._clock()
        booking = await self._ledger.booking(refund.booking_id)
        assert booking is not None
        fact = RefundPaid(
            booking.id,
            booking.event_id,
            booking.fan,
            booking.fence,
            refund.seats,
            now_us,
            refund_id=refund.id,
            amount_minor=refund.amount_minor,
            currency=refund.currency,
            was_delayed=bool(refund.failure),
        )
        done = refund.moved(RefundState.DONE, now_us, ref=given.ref, failure="")
        await self._ledger.payments.save_refund(done, now_us=now_us, facts=[fact])
        _log_answer(REFUND_PAID, refund)

    async def _handle_refusal(self, refund: Refund, payment: Payment, reason: str) -> None:
        """The provider refused. Unless the money has gone back already, the refund has failed."""
        try:
            given = await self._find(refund, payment)
        except (ProviderUnknown, ProviderNotCalled):
            await self._retry_later(refund, answered=False)
            return
        if given is not None:
            await self._save_answer(refund, given)
        else:
            await self._save_failure(refund, reason)

    async def _save_failure(self, refund: Refund, reason: str, *, ref: str = "") -> None:
        """The money stays owed: save it, publish a fact and log an error."""
        now_us = self._clock()
        booking = await self._ledger.booking(refund.booking_id)
        assert booking is not None
        common = (booking.id, booking.event_id, booking.fan, booking.fence, refund.seats, now_us)
        failed = refund.moved(RefundState.FAILED, now_us, failure=reason[:200], ref=ref or refund.ref)
        fact = RefundFailed(*common, refund_id=refund.id, reason=reason)
        await self._ledger.payments.save_refund(failed, now_us=now_us, facts=[fact])
        _log_answer(REFUND_FAILED, refund, reason=reason[:200])

    async def _retry_later(self, refund: Refund, *, answered: bool) -> None:
        now_us = self._clock()
        await self._ledger.payments.save_refund(refund.retry_later(now_us, answered=answered), now_us=now_us)


def _log_answer(line: LogLine, refund: Refund, **more: str) -> None:
    ids = {"refund_id": refund.id, "booking_id": refund.booking_id}
    line(**ids, amount_minor=refund.amount_minor, currency=refund.currency, **more)


def _state_of(given: ProviderRefund) -> RefundState:
    if given.failed:
        return RefundState.FAILED
    return RefundState.PENDING if given.pending else RefundState.DONE


def _comes_before(one: Refund, refund: Refund) -> bool:
    """Whether a refund has used its money, or is paid out first: two that are paid at once must not both take the last
    of it."""
    return one.state in AT_PROVIDER or (one.state is RefundState.ASKED and one.number < refund.number)


def _find_unfailed(refund: Refund, intent: Intent) -> ProviderRefund | None:
    """The provider's refund with this id that has not failed."""
    return next((one for one in intent.refunds if one.refund_id == refund.id and not one.failed), None)
