"""Hears what providers say of disputes (`NoticeListener`) and keeps it, with a fact that tells the organiser's team."""

from frontrow.boxoffice.facts.model import DisputeEnded, DisputeLost, DisputeOpened, Fact
from frontrow.boxoffice.payments.model.disputes import STATE_OF_NOTICE, DisputeState, PaymentDispute
from frontrow.boxoffice.payments.model.payments import Payment
from frontrow.boxoffice.payments.model.provider_intents import Notice
from frontrow.boxoffice.payments.ports import PaymentLedger
from frontrow.core.clock import Clock
from frontrow.core.log_line import LogLine
from frontrow.shared.log_lines import DISPUTE_ENDED, DISPUTE_LOST, DISPUTE_OPENED

FACTS: dict[DisputeState, type[DisputeOpened | DisputeEnded | DisputeLost]] = {
    DisputeState.OPEN: DisputeOpened,
    DisputeState.WON: DisputeEnded,
    DisputeState.CLOSED: DisputeEnded,
    DisputeState.LOST: DisputeLost,
}
LINES: dict[DisputeState, LogLine] = {
    DisputeState.OPEN: DISPUTE_OPENED,
    DisputeState.WON: DISPUTE_ENDED,
    DisputeState.CLOSED: DISPUTE_ENDED,
    DisputeState.LOST: DISPUTE_LOST,
}


class Disputes:
    """Keeps disputes. Safe to repeat: a notice that says nothing new writes nothing."""

    def __init__(self, ledger: PaymentLedger, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock

    async def heard(self, provider: str, notice: Notice, payment: Payment | None) -> None:
        state = STATE_OF_NOTICE.get(notice.kind)
        if state is None or notice.dispute is None:
            return
        now_us, said = self._clock(), notice.dispute
        booking = await self._ledger.booking(payment.booking_id) if payment is not None else None
        dispute = PaymentDispute(
            provider,
            said.ref,
            notice.ref,
            payment.id if payment is not None else "",
            booking.id if booking is not None else "",
            booking.event_id if booking is not None else "",
            said.amount_minor,
            said.currency,
            state,
            said.reason[:200],
            said.answer_by_us,
            now_us,
            now_us,
        )
        facts: list[Fact] = []
        if booking is not None:
            facts.append(
                FACTS[state](
                    booking.id,
                    booking.event_id,
                    booking.fan,
                    booking.fence,
                    booking.seats,
                    now_us,
                    dispute=said.ref,
                    amount_minor=said.amount_minor,
                    currency=said.currency,
                    reason=said.reason[:200],
                )
            )
        if await self._ledger.payments.record_dispute(dispute, facts=facts):
            LINES[state](
                dispute=said.ref,
                booking_id=dispute.booking_id,
                event_id=dispute.event_id,
                amount_minor=said.amount_minor,
                currency=said.currency,
            )
