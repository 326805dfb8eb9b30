"""How much is refunded for returned seats (B12): the event's policy applied to what was paid."""

from collections.abc import Mapping, Sequence

from frontrow.boxoffice.model.bookings import Booking, SeatsNotInBooking
from frontrow.boxoffice.model.events import Event, EventStatus
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import NotFound, Refused
from frontrow.core.money import Money


class RefundRefused(Refused):
    """The event's policy does not allow it. The organiser still can."""

    code = "refund_refused"


class RefundNotFound(NotFound):
    code = "refund_not_found"


def check_window(event: Event, now_us: int) -> None:
    """Raise `RefundRefused` unless a fan may return seats at `now_us` (before the window closes)."""
    if event.status is EventStatus.CANCELLED:
        return
    if not event.refunds.allowed:
        raise RefundRefused(f"tickets of {event.name} cannot be refunded", event=event.id)
    closes_us = event.starts_at_us - event.refunds.window_s * US_PER_S
    if now_us >= closes_us:
        raise RefundRefused(
            f"tickets of {event.name} could be refunded until {event.refunds.window_s // 3600} h before the show",
            event=event.id,
            closed_at_us=closes_us,
        )


def refund_amount(
    event: Event, booking: Booking, prices_minor: Mapping[int, int], seats: Sequence[int], *, free_of_fee: bool
) -> tuple[int, int]:
    """(refunded, kept by the organiser) for these seats. The two add up to what the seats cost."""
    missing = sorted(set(seats) - prices_minor.keys())
    if missing or not seats:
        raise SeatsNotInBooking(booking.id, missing)
    if set(seats) == set(booking.seats):
        paid = Money(booking.amount_minor, booking.currency)  # everything that is left, to the last cent
    else:
        paid = Money(sum(prices_minor[seat] for seat in seats), booking.currency)
    if free_of_fee or event.status is EventStatus.CANCELLED:
        return paid.minor, 0
    policy = event.refunds
    fee = policy.fee_per_seat_minor * len(seats) + paid.percent(policy.fee_basis_points).minor
    kept = min(fee, paid.minor)
    return paid.minor - kept, kept
