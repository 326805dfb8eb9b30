"""Moves of bookings that the platform makes only together with a payment or a refund, made alone.

A test that needs a declined, cancelled or refunded booking need not ask a provider for it. The moves are those that the
transactions of payments and refunds make (`MakeMove`), in the same group commit.
"""

from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import MakeMove
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.holds.model.bookings import Booking, Move


async def decline_booking(ledger: SqlLedger, booking_id: str, fence: int, now_us: int) -> Booking:
    """paying -> cancelled. The seats are free."""
    return await ledger._submit(MakeMove(booking_id, Move.DECLINE, fence, now_us))


async def cancel_booking(ledger: SqlLedger, booking_id: str, fence: int, now_us: int) -> Booking:
    """confirmed -> cancelled, without a refund. The seats are free."""
    return await ledger._submit(MakeMove(booking_id, Move.CANCEL, fence, now_us))


async def refund_booking(ledger: SqlLedger, booking_id: str, fence: int, now_us: int) -> Booking:
    """confirmed -> refunded. The seats are free."""
    return await ledger._submit(MakeMove(booking_id, Move.REFUND, fence, now_us))
