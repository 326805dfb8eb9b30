"""The ledger's payments and refunds. The contract is in `payments/ports.py`."""

from collections.abc import AsyncIterator, Sequence
from typing import cast

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.batched_reads import ReadsByKey
from frontrow.boxoffice.adapters.ledger.engine.due_work import PAYMENTS, REFUNDS, DueWork
from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerReader, RunProgram
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import MakeMove, Program
from frontrow.boxoffice.adapters.ledger.payments.payment_transactions import (
    ClaimDue,
    RequestRefund,
    SavePayment,
    SaveRefund,
    payment_of,
    refund_of,
    wake_payments,
)
from frontrow.boxoffice.facts.model import Fact
from frontrow.boxoffice.holds.model.bookings import Booking, Move
from frontrow.boxoffice.payments.model.disputes import DisputeState, PaymentDispute, states_before
from frontrow.boxoffice.payments.model.payments import Payment, PaymentChanged
from frontrow.boxoffice.refunds.model.refunds import BookingSeen, Refund
from frontrow.boxoffice.tickets.model.tickets import NewTicket

PAGE = 1_000
EVER = (-1, 2**62)
STATE_AT = 8  # the column of a dispute that has its state


class SqlPaymentBook:
    """Payments and refunds (`payments.ports.PaymentBook`)."""

    def __init__(self, store: LedgerReader, line: CommitLine, reads: ReadsByKey, due: DueWork) -> None:
        self._store, self._line, self._reads, self._due = store, line, reads, due

    async def save_payment(
        self,
        payment: Payment,
        *,
        now_us: int,
        move: Move | None = None,
        fence: int = 0,
        facts: Sequence[Fact] = (),
        reason: str = "",
        tickets: Sequence[NewTicket] = (),
        expires_at_us: int = 0,
    ) -> Booking | None:
        asked = (
            MakeMove(payment.booking_id, move, fence, now_us, expires_at_us, tickets=tuple(tickets), reason=reason)
            if move
            else None
        )
        answer = await self._line.submit(SavePayment(payment, asked, tuple(facts), now_us))
        return cast("tuple[Booking | None]", answer)[0]

    async def payment(self, payment_id: str) -> Payment | None:
        rows = await self._reads["payments_by_id"].read(payment_id)
        return payment_of(rows[0]) if rows else None

    async def payments_of(self, booking_id: str) -> list[Payment]:
        return [payment_of(row) for row in await self._reads["payments_of_bookings"].read(booking_id)]

    async def payment_by_ref(self, provider: str, ref: str) -> Payment | None:
        rows = await self._store.read(Query("payment_by_ref", params=(provider, ref)))
        return payment_of(rows[0]) if rows else None

    async def claim_payments(self, now_us: int, until_us: int, limit: int) -> list[Payment]:
        if not await self._due.may_have(PAYMENTS, now_us):
            return []
        return cast(list[Payment], await self._line.submit(ClaimDue("payments", now_us, until_us, limit)))

    async def wake_payments(self, now_us: int, limit: int) -> int:
        return cast(int, await self._line.submit(RunProgram(lambda _: wake_payments(now_us, limit), now_us)))

    async def seat_prices(self, booking_id: str) -> dict[int, int]:
        return {row[1]: row[2] for row in await self._reads["seat_prices_of"].read(booking_id)}

    async def ask_refund(
        self,
        refund: Refund,
        *,
        fence: int,
        now_us: int,
        late: bool = False,
        seen: BookingSeen | None = None,
        uses: Sequence[tuple[str, int]] = (),
        facts: Sequence[Fact] = (),
    ) -> Refund:
        ask = RequestRefund(refund, fence, now_us, late, seen, tuple(uses), tuple(facts))
        return cast(Refund, await self._line.submit(ask))

    async def save_refund(self, refund: Refund, *, now_us: int, facts: Sequence[Fact] = ()) -> None:
        if not await self._line.submit(SaveRefund(refund, tuple(facts), now_us)):
            kept = await self._store.read(Query("refunds_by_id", [(refund.id, refund.booking_id)]))
            if not kept or refund_of(kept[0]) != refund:
                raise PaymentChanged(refund.id)

    async def refunds_of(self, booking_id: str) -> list[Refund]:
        return [refund_of(row) for row in await self._reads["refunds_of_bookings"].read(booking_id)]

    async def claim_refunds(self, now_us: int, until_us: int, limit: int) -> list[Refund]:
        if not await self._due.may_have(REFUNDS, now_us):
            return []
        return cast(list[Refund], await self._line.submit(ClaimDue("refunds", now_us, until_us, limit)))

    async def record_dispute(self, dispute: PaymentDispute, *, facts: Sequence[Fact] = ()) -> bool:
        run = RunProgram(lambda told: _record_dispute(dispute, facts, told), dispute.changed_at_us)
        return cast(bool, await self._line.submit(run))

    async def disputes_of(self, booking_id: str) -> list[PaymentDispute]:
        rows = await self._store.read(Query("disputes_of_booking", params=(booking_id,)))
        return [_dispute_of(row) for row in rows]

    async def disputes_of_ref(self, provider: str, payment_ref: str) -> list[PaymentDispute]:
        rows = await self._store.read(Query("dispute_by_payment_ref", params=(provider, payment_ref)))
        return [_dispute_of(row) for row in rows]

    async def disputes(self, organiser_id: str, event_id: str, limit: int) -> list[PaymentDispute]:
        rows = await self._store.read(Query("disputes_page", params=(organiser_id, event_id, limit)))
        return [_dispute_of(row) for row in rows]

    async def dispute_mark(self, event_id: str) -> tuple[int, int]:
        ((count, last_us),) = await self._store.read(Query("dispute_mark", params=(event_id,)))
        return count, last_us

    async def disputed_tickets(self, event_id: str, limit: int) -> list[str]:
        return [row[0] for row in await self._store.read(Query("disputed_tickets", params=(event_id, limit)))]

    async def all_payments(self) -> AsyncIterator[Payment]:
        """Every payment in the order of ids, read page by page."""
        async for payment in self.payments_between([EVER]):
            yield payment

    async def payments_between(self, spans: Sequence[tuple[int, int]]) -> AsyncIterator[Payment]:
        """The payments created in one of these spans (from, until], and all that are unfinished or lapsed."""
        after = ""
        while True:  # ends with the table
            rows = await self._store.read(Query("payments_page", [*spans], (after, PAGE)))
            for row in rows:
                yield payment_of(row)
            if len(rows) < PAGE:
                return
            after = str(rows[-1][0])


def _record_dispute(dispute: PaymentDispute, facts: Sequence[Fact], told: list[Fact]) -> Program[bool]:
    """Write a new dispute or move a known one; whether anything changed. The facts are told only then."""
    columns = msgspec.structs.astuple(dispute)
    row = (*columns[:STATE_AT], dispute.state.value, *columns[STATE_AT + 1 :])
    if not (yield Query("add_disputes", [row])):
        key, moved = (dispute.provider, dispute.ref), (dispute.state.value, dispute.changed_at_us)
        moves = [(*key, was.value, *moved) for was in states_before(dispute.state)]
        if not moves or not (yield Query("move_disputes", moves)):
            return False
    if dispute.booking_id and dispute.state is not DisputeState.OPEN:
        yield Query("wake_waiting_refunds", [(dispute.booking_id, dispute.changed_at_us)])
    told.extend(facts)
    return True


def _dispute_of(row: Row) -> PaymentDispute:
    values = list(row)
    values[STATE_AT] = DisputeState(values[STATE_AT])
    return PaymentDispute(*values)
