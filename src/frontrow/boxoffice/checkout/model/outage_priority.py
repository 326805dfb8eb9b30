"""Priority for a fan whose booking was lost to an outage of the payment provider (B8): one pass, within a day.

Pure. The payment driver notifies the fan until when; the checkout checks it when the fan claims the pass.
"""

from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.payments.model.payments import ENDED, PROVIDER_UNAVAILABLE, Payment, PaymentState
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import Refused

PRIORITY_US: Final = 86_400 * US_PER_S  # from when the payment was given up
GIVEN_UP: Final = ENDED | {PaymentState.VOIDING}  # voided, or as soon as the provider is back


class NoPriority(Refused):
    """This booking was not given up because of the provider, or its priority has ended."""

    code = "no_priority"


def check_priority(booking: Booking, payments: Sequence[Payment], now_us: int) -> None:
    """Raise `NoPriority` unless this booking gives priority now. `payments` are those of the booking, in order."""
    last = payments[-1] if payments else None
    over = booking.state in (BookingState.CANCELLED, BookingState.EXPIRED)
    if not over or last is None or last.state not in GIVEN_UP or last.reason != PROVIDER_UNAVAILABLE:
        raise NoPriority("this booking gives no priority", booking=booking.id)
    if now_us >= last.changed_at_us + PRIORITY_US:
        raise NoPriority("the priority has run out; join the waiting room", booking=booking.id)
