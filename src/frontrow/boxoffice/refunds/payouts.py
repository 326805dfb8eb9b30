"""Pays refunds out: each is asked of the provider under its own key until there is a definite answer.

A refund that the provider calls pending is not finished: it is looked at again until the bank has said yes or no, and
webhooks bring that sooner. One that failed, at once or later, is still owed: it is logged, counted, shown to the
organiser, and tried again under a new key when a person says so.
"""

import asyncio
import contextlib
import logging
from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.checkout.provider_calls import SaleLedger
from frontrow.boxoffice.model.facts import RefundFailed, RefundPaid
from frontrow.boxoffice.model.payments import (
    ENDED,
    LOOK_AGAIN_S,
    Payment,
    PaymentChanged,
    PaymentState,
    Refund,
    RefundState,
)
from frontrow.boxoffice.model.provider_intents import (
    Intent,
    ProviderRefund,
    ProviderRefused,
    ProviderSpared,
    ProviderUnknown,
)
from frontrow.boxoffice.ports.payments import PaymentProvider
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError

log = logging.getLogger("frontrow.money")

WORK_BATCH: Final = 500
BATCHES_A_TURN: Final = 100
AT_ONCE: Final = 100
KEY_LIVES_US: Final = 20 * 3600 * US_PER_S  # providers forget keys after a day: then look before asking again
CAPTURE_LOOK_S: Final = 5
PENDING_LOOK_S: Final = 3600  # how often we look at a pending refund, should its webhook be lost


class Repaying:
    """The worker of refunds; any number may run."""

    def __init__(self, ledger: SaleLedger, provider: PaymentProvider, clock: Clock) -> None:
        self._ledger, self._provider, self._clock = ledger, provider, clock
        self.failures = 0

    async def work(self) -> int:
        """Pay out what is due now; how many refunds that were."""
        gate = asyncio.Semaphore(AT_ONCE)
        count = 0
        for _ in range(BATCHES_A_TURN):
            now_us = self._clock()
            due = await self._ledger.payments.lease_refunds(now_us, now_us + LOOK_AGAIN_S * US_PER_S, WORK_BATCH)
            await asyncio.gather(*(self._pay(refund, gate) for refund in due))
            count += len(due)
            if len(due) < WORK_BATCH:
                break
        return count

    async def work_on(self, refund: Refund) -> None:
        """Pay out one refund, or note when to try again."""
        payment = await self._ledger.payments.payment(refund.payment_id)
        assert payment is not None, refund.payment_id
        await self._give(refund, payment)

    async def _pay(self, refund: Refund, gate: asyncio.Semaphore) -> None:
        async with gate:
            try:
                await self.work_on(refund)
            except FrontrowError:  # the ledger is away or somebody else is at it: due again when the lease ends
                self.failures += 1

    async def _give(self, refund: Refund, payment: Payment) -> None:
        now_us = self._clock()
        if payment.state in ENDED:  # nothing was captured, so nothing is owed
            await self._ledger.payments.save_refund(refund.moved(RefundState.MOOT, now_us), now_us=now_us)
            return
        if payment.state is not PaymentState.CAPTURED:  # the capture is on its way
            later_us = now_us + CAPTURE_LOOK_S * US_PER_S
            waiting = replace(refund, retry_at_us=later_us, changed_at_us=now_us, version=refund.version + 1)
            await self._ledger.payments.save_refund(waiting, now_us=now_us)
            return
        try:
            if refund.state is RefundState.PENDING:
                await self._look(refund, payment)
                return
            given = await self._known(refund, payment) or await self._provider.refund(
                payment.ref, refund.amount_minor, refund.id, refund.key()
            )
            await self._became(refund, given)
        except ProviderRefused as error:
            await self._refused(refund, payment, error.reason)
        except (ProviderUnknown, ProviderSpared) as error:
            await self._later(refund, answered=isinstance(error, ProviderUnknown) and error.answered)

    async def _known(self, refund: Refund, payment: Payment) -> ProviderRefund | None:
        """The refund at the provider, if an earlier call may have made it."""
        if not refund.tries and self._clock() - refund.created_at_us < KEY_LIVES_US:
            return None
        return await self._find(refund, payment)

    async def _find(self, refund: Refund, payment: Payment) -> ProviderRefund | None:
        return _living(refund, await self._provider.read(payment.ref))

    async def look(self, payment: Payment) -> int:
        """Read a payment's refunds at the provider and write down what became of them; how many had changed."""
        if payment.state is not PaymentState.CAPTURED:
            return 0
        return await self.compare(payment, await self._provider.read(payment.ref))

    async def compare(self, payment: Payment, intent: Intent) -> int:
        """The same with the provider's object at hand."""
        changed = 0
        for refund in await self._ledger.payments.refunds_of(payment.booking_id):
            if refund.payment_id == payment.id and refund.ref:
                with contextlib.suppress(PaymentChanged):  # somebody else has just written it down
                    changed += await self._compare(refund, intent)
        return changed

    async def _look(self, refund: Refund, payment: Payment) -> None:
        if not await self._compare(refund, await self._provider.read(payment.ref)):
            now_us = self._clock()
            waiting = refund.moved(RefundState.PENDING, now_us, retry_at_us=now_us + PENDING_LOOK_S * US_PER_S)
            await self._ledger.payments.save_refund(waiting, now_us=now_us)

    async def _compare(self, refund: Refund, intent: Intent) -> bool:
        """Whether the provider's refund is not what the ledger says; then it is written down."""
        given = next((one for one in intent.refunds if one.ref == refund.ref), None)
        if given is None or refund.state not in (RefundState.PENDING, RefundState.DONE, RefundState.FAILED):
            return False
        state = _state_of(given)
        if state is refund.state or (state is RefundState.PENDING and refund.state is not RefundState.FAILED):
            return False
        await self._became(refund, given)
        return True

    async def _became(self, refund: Refund, given: ProviderRefund) -> None:
        """Write down the provider's definite answer."""
        state, now_us = _state_of(given), self._clock()
        if state is RefundState.FAILED:
            await self._fail(refund, given.failure or "failed", ref=given.ref)
        elif state is RefundState.PENDING:
            later_us = now_us + PENDING_LOOK_S * US_PER_S
            pending = refund.moved(RefundState.PENDING, now_us, retry_at_us=later_us, ref=given.ref)
            await self._ledger.payments.save_refund(pending, now_us=now_us)
        else:
            await self._done(refund, given)

    async def _done(self, refund: Refund, given: ProviderRefund) -> None:
        now_us = self._clock()
        booking = await self._ledger.booking(refund.booking_id)
        assert booking is not None
        fact = RefundPaid(
            booking.id, booking.event_id, booking.fan, booking.fence, refund.seats, now_us, refund_id=refund.id,
            amount_minor=refund.amount_minor, currency=refund.currency,
        )  # fmt: skip
        done = refund.moved(RefundState.DONE, now_us, ref=given.ref, failure="")
        await self._ledger.payments.save_refund(done, now_us=now_us, facts=[fact])

    async def _refused(self, refund: Refund, payment: Payment, reason: str) -> None:
        """A definite no; unless the money went back already, a person must look."""
        try:
            given = await self._find(refund, payment)
        except (ProviderUnknown, ProviderSpared):
            await self._later(refund, answered=False)
            return
        if given is not None:
            await self._became(refund, given)
        else:
            await self._fail(refund, reason)

    async def _fail(self, refund: Refund, reason: str, *, ref: str = "") -> None:
        """The money stays owed. Nobody is paid by hoping: say it loudly, once."""
        now_us = self._clock()
        booking = await self._ledger.booking(refund.booking_id)
        assert booking is not None
        about = (booking.id, booking.event_id, booking.fan, booking.fence, refund.seats, now_us)
        failed = refund.moved(RefundState.FAILED, now_us, failure=reason[:200], ref=ref or refund.ref)
        fact = RefundFailed(*about, refund_id=refund.id, reason=reason)
        await self._ledger.payments.save_refund(failed, now_us=now_us, facts=[fact])
        log.error("refund %s of booking %s failed: %s", refund.id, booking.id, reason)

    async def _later(self, refund: Refund, *, answered: bool) -> None:
        now_us = self._clock()
        await self._ledger.payments.save_refund(refund.again(now_us, answered=answered), now_us=now_us)


def _state_of(given: ProviderRefund) -> RefundState:
    if given.failed:
        return RefundState.FAILED
    return RefundState.PENDING if given.pending else RefundState.DONE


def _living(refund: Refund, intent: Intent) -> ProviderRefund | None:
    """The provider's refund of this id that has not failed."""
    return next((one for one in intent.refunds if one.refund_id == refund.id and not one.failed), None)
