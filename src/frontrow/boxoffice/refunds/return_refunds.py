"""The money of a resold return (services.resale.ReturnRefunding): owed once, written down as a refund of its booking.

The refunds' worker pays it out like any other, through outages and crashes. Its id follows from the return's, so asking
again finds it. Never more goes back than was captured and not yet given.
"""

import contextlib
from typing import Final

from frontrow.boxoffice.checkout.provider_calls import SaleLedger
from frontrow.boxoffice.model.payments import ENDED, PaymentChanged, Refund
from frontrow.boxoffice.model.ticket_returns import Return

COUNT_AGAIN: Final = 20  # racing refunds of one booking count its refunds again


class ReturnRefunds:
    """Writes the refund of a return that was resold."""

    def __init__(self, ledger: SaleLedger) -> None:
        self._ledger = ledger

    async def refund_return(self, resold: Return, now_us: int, reason: str = "resold") -> None:
        """See services.resale.ReturnRefunding."""
        refund_id = f"rfd_{resold.id.removeprefix('rtn_')}"
        for _ in range(COUNT_AGAIN):
            refunds = await self._ledger.payments.refunds_of(resold.booking_id)
            if any(refund.id == refund_id for refund in refunds):
                return
            payments = [p for p in await self._ledger.payments.payments_of(resold.booking_id) if p.state not in ENDED]
            paid = payments[-1].id if payments else ""
            promised = sum(refund.promised_minor for refund in refunds if refund.payment_id == paid)
            amount_minor = min(resold.price_minor, payments[-1].amount_minor - promised) if payments else 0
            if amount_minor <= 0:  # a free seat, or all of it went back otherwise
                return
            number = max([refund.number for refund in refunds], default=0) + 1
            owed = Refund(
                refund_id, resold.booking_id, payments[-1].id, number, amount_minor, resold.currency,
                (resold.seat_index,), reason=reason, retry_at_us=now_us, created_at_us=now_us, changed_at_us=now_us,
            )  # fmt: skip
            with contextlib.suppress(PaymentChanged):
                await self._ledger.payments.ask_refund(owed, fence=resold.fence, now_us=now_us, late=True)
                return
        raise PaymentChanged(refund_id)
