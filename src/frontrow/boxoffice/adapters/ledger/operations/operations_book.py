"""What operators read: figures for dashboards, the number of rows, heads of the audit chains, checks of the ledger."""

from typing import Final

from frontrow.boxoffice.adapters.ledger.engine.group_commit import LedgerReader
from frontrow.boxoffice.adapters.ledger.engine.queries import Query

CHECKS: Final = ("seats_sold_twice", "seats_out_of_step", "bookings_out_of_step")  # each must find nothing


class SqlOperationsBook:
    """Reads about the ledger as a whole."""

    def __init__(self, store: LedgerReader) -> None:
        self._store = store

    async def operating_figures(self) -> dict[str, dict[str, int]]:
        """What is counted -> state or part -> number. No names and no amounts."""
        figures: dict[str, dict[str, int]] = {}
        for what, which, number in await self._store.read(Query("operating_figures")):
            figures.setdefault(what, {})[which] = int(number)
        return figures

    async def row_counts(self) -> dict[str, int]:
        """The number of events, active seats, unpublished facts, and bookings by state."""
        return {str(row[0]): int(row[1]) for row in await self._store.read(Query("ledger_counts"))}

    async def audit_heads(self) -> list[tuple[str, int, str]]:
        """The newest entry of each audit chain: (chain, number, hash)."""
        return [(str(row[0]), int(row[1]), str(row[2])) for row in await self._store.read(Query("audit_heads"))]

    async def failed_checks(self) -> list[str]:
        """The names of those checks of seats and bookings that find something wrong."""
        return [name for name in CHECKS if await self._store.read(Query(name, params=(1,)))]
