"""The holds that this server has placed and nobody has acted on yet, as the ledger has written them.

Most holds are paid at the server that placed them, unchanged, so paying need not read them again. What is remembered
may be out of date: another server may have changed, sold or released the hold. So it serves only who writes next with
a condition on what was read (`Purchases.just_held` says who that is). It is used once: whoever asks again reads.
"""

from collections import OrderedDict
from typing import Final

from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.holds.model.holds import PlacedHold
from frontrow.boxoffice.pricing.model.prices import Quote

MAX_HOLDS: Final = 10_000  # remembered by a process; the oldest are forgotten first


class RecentHolds:
    """At most `max_holds` holds, by booking."""

    __slots__ = ("_holds", "_max_holds")

    def __init__(self, max_holds: int = MAX_HOLDS) -> None:
        self._holds: OrderedDict[str, tuple[PlacedHold, Quote, str, str, int]] = OrderedDict()
        self._max_holds = max_holds

    def __len__(self) -> int:
        return len(self._holds)

    def remember(self, placed: PlacedHold, quote: Quote, price_lines: str, visit_id: str, now_us: int) -> None:
        """A hold that the ledger has written for this visit. One that it had before may have changed since."""
        if placed.repeated:
            return
        self._holds[placed.booking_id] = (placed, quote, price_lines, visit_id, now_us)
        if len(self._holds) > self._max_holds:
            self._holds.popitem(last=False)

    def find(self, booking_id: str, now_us: int) -> Booking | None:
        """The hold as it was placed, if it is remembered and has not ended since."""
        found = self._holds.get(booking_id)
        if found is None:
            return None
        placed, quote, price_lines, visit_id, placed_at_us = found
        if placed.expires_at_us <= now_us:
            self.forget(booking_id)
            return None
        return Booking(
            placed.booking_id,
            placed.event_id,
            placed.fan,
            BookingState.HELD,
            placed.fence,
            placed.seats,
            quote.total_minor,
            quote.currency,
            visit_id,
            placed_at_us,
            placed_at_us,
            placed.expires_at_us,
            price_lines=price_lines,
        )

    def forget(self, booking_id: str) -> None:
        """This server has used or changed the hold."""
        self._holds.pop(booking_id, None)
