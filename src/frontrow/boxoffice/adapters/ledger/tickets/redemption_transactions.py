"""Transaction programs of redemptions (see `holds/booking_transactions.py` for what a program is).

Redeeming locks the booking, as refunds and returns do, so an add-on is either handed out or paid back.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program, booking_of
from frontrow.boxoffice.facts.model import Fact
from frontrow.boxoffice.gate.model.redemptions import (
    RedeemAnswer,
    Redeemed,
    Redemption,
    count_used,
    decide_redemption,
    find_add_ons,
)
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound
from frontrow.boxoffice.refunds.model.refund_lines import add_ons_gone, decode_refund_lines
from frontrow.core.errors import InvalidInput

REFUND_LINES = 18  # the column of a refund (engine/statements.py) that holds its lines


def redemption_of(row: Row) -> Redemption:
    return Redemption(*row[:10])


def read_used(booking_ids: Sequence[str]) -> Program[dict[str, Counter[str]]]:
    """How many of which add-on were redeemed, per booking."""
    used: dict[str, list[Redemption]] = {}
    if not booking_ids:
        return {}
    for row in (yield Query("redemptions_of_bookings", [(one,) for one in booking_ids])):
        used.setdefault(row[2], []).append(redemption_of(row))
    return {booking_id: count_used(some) for booking_id, some in used.items()}


def redeem(ask: Redemption, offline: bool, facts: list[Fact]) -> Program[Redeemed | BaseException]:
    """Write the redemption if the booking has as many left. `offline`: it has happened, so it is written in any case,
    as refused if it was not possible."""
    rows = yield Query("lock_bookings", [(ask.booking_id,)])
    booking = booking_of(rows[0]) if rows else None
    if booking is None or booking.event_id != ask.event_id:
        return BookingNotFound(ask.booking_id)
    known = [redemption_of(row) for row in (yield Query("redemptions_of_bookings", [(booking.id,)]))]
    refunds = yield Query("refunds_of_bookings", [(booking.id,)])
    gone = add_ons_gone([decode_refund_lines(row[REFUND_LINES]) for row in refunds])
    earlier = next((one for one in known if one.id == ask.id), None)
    if earlier is not None:
        if (earlier.add_on, earlier.quantity) != (ask.add_on, ask.quantity):
            return _taken(ask)
        return _answer(booking, gone, known, earlier.answer, ask.add_on)
    answer = decide_redemption(find_add_ons(booking, gone, count_used(known)), ask.add_on, ask.quantity)
    if answer is not RedeemAnswer.OK and not offline:
        return _answer(booking, gone, known, answer, ask.add_on)
    new = ask if answer is RedeemAnswer.OK else replace(ask, refused=answer.value)
    row = (new.id, new.event_id, new.booking_id, new.add_on, new.quantity, new.gate, new.made_by, new.at_us)
    if not (yield Query("add_redemptions", [(*row, new.refused)])):
        return _taken(ask)
    return _answer(booking, gone, [*known, new], answer, ask.add_on)


def _answer(
    booking: Booking, gone: Counter[str], known: Sequence[Redemption], answer: RedeemAnswer, add_on: str
) -> Redeemed:
    before = [one for one in known if one.counts and one.add_on == add_on]
    last = before[-1] if before and answer is RedeemAnswer.USED_UP else None
    return Redeemed(answer, find_add_ons(booking, gone, count_used(known)), last)


def _taken(ask: Redemption) -> InvalidInput:
    return InvalidInput(f"redemption {ask.id} was another one; choose a new id", param="redemption")
