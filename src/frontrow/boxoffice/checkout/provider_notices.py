"""Webhooks of payment providers: each is verified by its provider and acted on once.

The content of a notice is not trusted: the payment is read from its provider. Notices about disputes and accounts go to
the listeners. A notice is recorded after it was acted on, so after a crash in between the provider's next delivery is
handled.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from frontrow.boxoffice.checkout.ports import CheckoutLedger
from frontrow.boxoffice.payments.model.payment_saga import is_late_money
from frontrow.boxoffice.payments.model.payments import ENDED, Payment
from frontrow.boxoffice.payments.model.provider_intents import DISPUTES, IntentState, Notice, NoticeKind
from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.boxoffice.payments.payment_driver import AFTER_SALE, PaymentDriver
from frontrow.boxoffice.payments.payment_records import PaymentRecords
from frontrow.boxoffice.payments.ports import NoticeListener, RemembersNotices
from frontrow.boxoffice.payments.provider_calls import ProviderCalls
from frontrow.boxoffice.refunds.payouts import RefundPayouts
from frontrow.core.clock import Clock
from frontrow.core.errors import NotFound
from frontrow.shared.log_lines import NOTICE_FOREIGN

FOR_LISTENERS: Final = DISPUTES | {NoticeKind.ACCOUNT_CHANGED}


class ProviderNotices:
    """Acts on the notices of all open providers."""

    def __init__(
        self,
        ledger: CheckoutLedger,
        providers: OpenProviders,
        clock: Clock,
        records: PaymentRecords,
        calls: ProviderCalls,
        driver: PaymentDriver,
        payouts: RefundPayouts,
        *,
        listeners: Sequence[NoticeListener] = (),
    ) -> None:
        self._ledger, self._providers, self._clock, self._records = ledger, providers, clock, records
        self._calls, self._driver, self._payouts, self._listeners = calls, driver, payouts, tuple(listeners)

    async def handle(self, provider: str, body: bytes, headers: Mapping[str, str]) -> bool:
        """Verify a webhook of this provider and act on it once. False: it was handled before, or is not ours."""
        found = self._providers.find(provider)
        if found is None:
            raise NotFound(f"this server does not use the payment provider {provider!r}")
        notice = found.notice(body, headers, self._clock())
        if notice is None or await self._ledger.messages.noticed(provider, notice.id):
            return False
        if isinstance(found, RemembersNotices):
            notice = await found.remember(notice)
        payment = await self._ledger.payments.payment_by_ref(provider, notice.ref)
        if payment is not None and notice.account and notice.account != payment.account:
            # Who has an account chooses the references there, also one of somebody else's payment.
            NOTICE_FOREIGN(payment_id=payment.id, account=notice.account, kind=notice.kind.value)
            return False
        if notice.kind in FOR_LISTENERS:
            for listener in self._listeners:
                await listener.heard(provider, notice, payment)
        elif payment is not None:
            await self._drive(payment, notice)
            if notice.kind is NoticeKind.REFUND:
                await self._payouts.check(await self._records.reload_payment(payment))
        return not await self._ledger.messages.seen_before(provider, notice.id, self._clock())

    async def _drive(self, payment: Payment, notice: Notice) -> None:
        # Once the booking is sold, a notice that its card was authorised says nothing new: the worker captures.
        if payment.state in AFTER_SALE and notice.kind is NoticeKind.AUTHORISED:
            return
        if notice.intent is not None:
            payment = await self._calls.apply_intent(payment, notice.intent) or payment
        if notice.kind is NoticeKind.PAID and payment.state in ENDED:
            intent = notice.intent or await self._calls.read(payment)
            if is_late_money(payment, intent):
                await self._driver.take_late_money(payment, intent)
        elif notice.kind is NoticeKind.AUTHORISED and payment.state in ENDED and not payment.retry_at_us:
            if (await self._calls.read(payment)).state is IntentState.AUTHORISED:  # a fan paid in an old tab
                await self._calls.drop(payment)
        elif payment.state not in ENDED or payment.retry_at_us:
            await self._driver.drive_any(payment)
