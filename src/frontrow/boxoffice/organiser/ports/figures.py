"""The port of the sums behind an organiser's figures and reports."""

from collections.abc import Sequence
from typing import Any, Protocol

Sums = Sequence[Any]  # one row; each method names its columns


class FiguresBook(Protocol):
    """Sums over one event's bookings, payments, refunds and scans (`ledger.figures`). No booking is read.

    A quarter is a quarter of an hour since 1970.
    """

    async def bookings_by_state(self, event_id: str) -> list[Sums]:
        """(state, currency, bookings, seats, amount)."""
        ...

    async def taken_by_run(self, event_id: str, firsts: Sequence[int], now_us: int) -> list[Sums]:
        """(run, sold?, seats, price) of taken seats. A run is given by its first seat, in rising order."""
        ...

    async def payments_by_state(self, event_id: str) -> list[Sums]:
        """(state, currency, payments, amount, bookings)."""
        ...

    async def refunds_by_state(self, event_id: str) -> list[Sums]:
        """(state, currency, refunds, amount, fees)."""
        ...

    async def over_time(self, what: str, event_id: str, from_us: int, to_us: int, step_us: int) -> list[Sums]:
        """(bucket, …sums) of what was held, sold or refunded; at most MAX_BUCKETS."""
        ...

    async def sold_span(self, event_id: str) -> tuple[int, int]:
        """When the event's first booking was made, and when one last changed."""
        ...

    async def purchase_times(self, event_id: str, since_us: int) -> list[Sums]:
        """(total, place, took) at 50, 95 and 99 percent."""
        ...

    async def newest_fence(self, event_id: str) -> int: ...

    async def held_since(self, event_id: str, fence: int) -> tuple[int, int, int]:
        """(bookings, seats, newest fence) made after that fence."""
        ...

    # -- reports
    async def sold_by_quarter(self, event_id: str) -> list[Sums]:
        """(quarter, bookings, seats, amount), newest first."""
        ...

    async def refunded_by_quarter(self, event_id: str) -> list[Sums]:
        """(quarter, refunds, amount), newest first."""
        ...

    async def sold_by_channel(self, event_id: str, sale_starts_at_us: int) -> list[Sums]:
        """(channel, bookings, seats, amount)."""
        ...

    async def checked_in(self, event_id: str) -> Sums:
        """(valid tickets, admitted ones)."""
        ...

    async def checked_in_by_quarter(self, event_id: str) -> list[Sums]:
        """(quarter, admitted), oldest first."""
        ...
