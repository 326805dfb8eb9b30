"""The sums behind an organiser's figures. Each is one bounded statement; the ledger adds up, so no booking is read."""

from collections.abc import Sequence

from frontrow.boxoffice.adapters.ledger.engine.group_commit import LedgerReader
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.organiser.model.reports import MAX_QUARTERS, QUARTER_US
from frontrow.boxoffice.organiser.model.sales_figures import MAX_BUCKETS
from frontrow.core.errors import InvalidInput


class SqlFiguresBook:
    """Sums over one event's bookings, payments and refunds."""

    def __init__(self, store: LedgerReader) -> None:
        self._store = store

    async def bookings_by_state(self, event_id: str) -> list[Row]:
        """(state, currency, bookings, seats, amount)."""
        return await self._store.read(Query("bookings_by_state", params=(event_id,)))

    async def taken_by_run(self, event_id: str, firsts: Sequence[int], now_us: int) -> list[Row]:
        """(run, sold?, seats, price) of taken seats. A run is given by its first seat, in rising order."""
        return await self._store.read(Query("taken_by_run", list(enumerate(firsts)), (event_id, now_us)))

    async def payments_by_state(self, event_id: str) -> list[Row]:
        """(state, currency, payments, amount, bookings)."""
        return await self._store.read(Query("payments_by_state", params=(event_id,)))

    async def refunds_by_state(self, event_id: str) -> list[Row]:
        """(state, currency, refunds, amount, fees)."""
        return await self._store.read(Query("refunds_by_state", params=(event_id,)))

    async def over_time(self, what: str, event_id: str, from_us: int, to_us: int, step_us: int) -> list[Row]:
        """(bucket, …sums) of what was held, sold or refunded; at most MAX_BUCKETS."""
        if step_us < 1 or not 0 <= to_us - from_us <= MAX_BUCKETS * step_us:
            raise InvalidInput(f"a series has at most {MAX_BUCKETS} steps; make them longer", param="step_s")
        assert what in ("held", "sold", "refunded"), what
        return await self._store.read(Query(f"{what}_over_time", params=(event_id, from_us, to_us, step_us)))

    async def sold_span(self, event_id: str) -> tuple[int, int]:
        """When the event's first booking was made, and when one last changed."""
        rows = await self._store.read(Query("sold_span", params=(event_id,)))
        return int(rows[0][0]), int(rows[0][1])

    async def purchase_times(self, event_id: str, since_us: int) -> list[Row]:
        """(total, place, took) at 50, 95 and 99 percent."""
        return await self._store.read(Query("purchase_times", params=(event_id, since_us)))

    async def sold_by_quarter(self, event_id: str) -> list[Row]:
        """(quarter of an hour since 1970, bookings, seats, amount), newest first."""
        return await self._store.read(Query("sold_by_quarter", params=(event_id, QUARTER_US, MAX_QUARTERS)))

    async def refunded_by_quarter(self, event_id: str) -> list[Row]:
        """(quarter, refunds, amount), newest first."""
        return await self._store.read(Query("refunded_by_quarter", params=(event_id, QUARTER_US, MAX_QUARTERS)))

    async def sold_by_channel(self, event_id: str, sale_starts_at_us: int) -> list[Row]:
        """(channel, bookings, seats, amount)."""
        return await self._store.read(Query("sold_by_channel", params=(event_id, sale_starts_at_us)))

    async def checked_in(self, event_id: str) -> Row:
        """(valid tickets, admitted ones)."""
        return (await self._store.read(Query("checked_in", params=(event_id,))))[0]

    async def checked_in_by_quarter(self, event_id: str) -> list[Row]:
        """(quarter, admitted), oldest first."""
        return await self._store.read(Query("checked_in_by_quarter", params=(event_id, QUARTER_US, MAX_QUARTERS)))

    async def newest_fence(self, event_id: str) -> int:
        return int((await self._store.read(Query("newest_fence", params=(event_id,))))[0][0])

    async def held_since(self, event_id: str, fence: int) -> tuple[int, int, int]:
        """(bookings, seats, newest fence) made after that fence."""
        rows = await self._store.read(Query("held_since", params=(event_id, fence)))
        return int(rows[0][0]), int(rows[0][1]), int(rows[0][2])
