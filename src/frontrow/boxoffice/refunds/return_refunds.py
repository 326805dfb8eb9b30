"""Refunds the price of a returned ticket that was resold. It is saved once, as a refund of the ticket's booking.

The refund worker pays it out like any other, through outages and crashes. Its id follows from the return's id, so a
repeated call finds it. It is never more than was captured and not yet refunded.
"""

import contextlib
from typing import Final

from frontrow.boxoffice.payments.model.payments import ENDED, PaymentChanged
from frontrow.boxoffice.payments.ports import PaymentLedger
from frontrow.boxoffice.refunds.model.refunds import Refund
from frontrow.boxoffice.refunds.model.ticket_returns import Return

MAX_TRIES: Final = 20  # when refunds of one booking race, the loser counts its refunds again


class ReturnRefunds:
    """Saves the refund of a returned ticket."""

    def __init__(self, ledger: PaymentLedger) -> None:
        self._ledger = ledger

    async def refund_return(self, resold: Return, now_us: int, reason: str = "resold") -> None:
        """Save the refund of this return, unless it is saved already: its price, to whoever paid the booking.

        When it returns, the refund is paid or will be. On any FrontrowError, call it again later.
        """
        refund_id = f"rfd_{resold.id.removeprefix('rtn_')}"
        for _ in range(MAX_TRIES):
            refunds = await self._ledger.payments.refunds_of(resold.booking_id)
            if any(one.id == refund_id for one in refunds):
                return
            payments = [p for p in await self._ledger.payments.payments_of(resold.booking_id) if p.state not in ENDED]
            paid = payments[-1].id if payments else ""
            promised = sum(one.promised_minor for one in refunds if one.payment_id == paid)
            amount_minor = min(resold.price_minor, payments[-1].amount_minor - promised) if payments else 0
            if amount_minor <= 0:  # a free seat, or everything was refunded another way
                return
            number = max([one.number for one in refunds], default=0) + 1
            refund = Refund(
                refund_id,
                resold.booking_id,
                payments[-1].id,
                number,
                amount_minor,
                resold.currency,
                (resold.seat_index,),
                reason=reason,
                retry_at_us=now_us,
                created_at_us=now_us,
                changed_at_us=now_us,
            )
            with contextlib.suppress(PaymentChanged):
                await self._ledger.payments.ask_refund(refund, fence=resold.fence, now_us=now_us, late=True)
                return
        raise PaymentChanged(refund_id)
