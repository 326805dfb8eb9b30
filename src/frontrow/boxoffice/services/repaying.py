"""Pays refunds out: each is asked of the provider under its own key until there is a definite answer."""

import asyncio
from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.model.facts import RefundFailed, RefundPaid
from frontrow.boxoffice.model.intents import ProviderRefund, ProviderRefused, ProviderSpared, ProviderUnknown
from frontrow.boxoffice.model.payments import ENDED, LOOK_AGAIN_S, Payment, PaymentState, Refund, RefundState
from frontrow.boxoffice.payment_ports import PaymentProvider
from frontrow.boxoffice.services.asking import SaleLedger
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError

WORK_BATCH: Final = 500
BATCHES_A_TURN: Final = 100
AT_ONCE: Final = 100
KEY_LIVES_US: Final = 20 * 3600 * US_PER_S  # providers forget keys after a day: then look before asking again
CAPTURE_LOOK_S: Final = 5


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
            due = await self._ledger.lease_refunds(now_us, now_us + LOOK_AGAIN_S * US_PER_S, WORK_BATCH)
            await asyncio.gather(*(self._pay(refund, gate) for refund in due))
            count += len(due)
            if len(due) < WORK_BATCH:
                break
        return count

    async def work_on(self, refund: Refund) -> None:
        """Pay out one refund, or note when to try again."""
        payment = await self._ledger.payment(refund.payment_id)
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
            await self._ledger.save_refund(refund.moved(RefundState.MOOT, now_us), now_us=now_us)
            return
        if payment.state is not PaymentState.CAPTURED:  # the capture is on its way
            later_us = now_us + CAPTURE_LOOK_S * US_PER_S
            waiting = replace(refund, retry_at_us=later_us, changed_at_us=now_us, version=refund.version + 1)
            await self._ledger.save_refund(waiting, now_us=now_us)
            return
        try:
            given = await self._known(refund, payment) or await self._provider.refund(
                payment.ref, refund.amount_minor, refund.id, refund.key()
            )
            await self._done(refund, given)
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
        found = [r for r in (await self._provider.read(payment.ref)).refunds if r.refund_id == refund.id]
        return next((one for one in found if not one.failed), None)

    async def _done(self, refund: Refund, given: ProviderRefund) -> None:
        now_us = self._clock()
        booking = await self._ledger.booking(refund.booking_id)
        assert booking is not None
        fact = RefundPaid(
            booking.id, booking.event_id, booking.fan, booking.fence, refund.seats, now_us, refund_id=refund.id,
            amount_minor=refund.amount_minor, currency=refund.currency,
        )  # fmt: skip
        await self._ledger.save_refund(
            refund.moved(RefundState.DONE, now_us, ref=given.ref), now_us=now_us, facts=[fact]
        )

    async def _refused(self, refund: Refund, payment: Payment, reason: str) -> None:
        """A definite no; unless the money went back already, a person must look."""
        try:
            given = await self._find(refund, payment)
        except (ProviderUnknown, ProviderSpared):
            await self._later(refund, answered=False)
            return
        if given is not None:
            await self._done(refund, given)
            return
        now_us = self._clock()
        booking = await self._ledger.booking(refund.booking_id)
        assert booking is not None
        told = (booking.id, booking.event_id, booking.fan, booking.fence, refund.seats, now_us)
        failed = refund.moved(RefundState.FAILED, now_us, reason=reason)
        await self._ledger.save_refund(
            failed, now_us=now_us, facts=[RefundFailed(*told, refund_id=refund.id, reason=reason)]
        )

    async def _later(self, refund: Refund, *, answered: bool) -> None:
        now_us = self._clock()
        await self._ledger.save_refund(refund.again(now_us, answered=answered), now_us=now_us)
