"""The ledger's tickets and the gates' scans. The contract is `tickets.ports.tickets.TicketBook`.

Tickets are written by the transaction that confirms a booking, and revoked by the one that gives seats back.
"""

from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.adapters.ledger.engine.batched_reads import ReadsByKey
from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerReader, RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.gate.model.scans import DuplicateScan, Scan, Way, find_duplicates
from frontrow.boxoffice.tickets.model.tickets import Ticket, TicketState
from frontrow.core.errors import InvalidInput

MAX_SCANS: Final = 1_000  # per call
MAX_PAGE: Final = 10_000


class SqlTicketBook:
    """Tickets and scans (`tickets.ports.tickets.TicketBook`)."""

    def __init__(self, store: LedgerReader, line: CommitLine, reads: ReadsByKey) -> None:
        self._store, self._line, self._reads = store, line, reads

    async def ticket(self, ticket_id: str, event_id: str = "") -> Ticket | None:
        query = Query("ticket_of_event", params=(ticket_id, event_id))
        rows = await self._store.read(query if event_id else Query("ticket_by_id", params=(ticket_id,)))
        return _ticket_of(rows[0]) if rows else None

    async def tickets_of(self, booking_id: str) -> list[Ticket]:
        rows = await self._reads["tickets_of_bookings"].read(booking_id)
        return [_ticket_of(row) for row in rows]

    async def name_of_buyer(self, booking_id: str) -> str:
        rows = await self._reads["names_of_buyers"].read(booking_id)
        return str(rows[0][1]) if rows else ""

    async def revoked_tickets(
        self, event_id: str, after: tuple[int, str] = (-1, ""), limit: int = 1_000
    ) -> list[tuple[str, int]]:
        limit = max(1, min(limit, MAX_PAGE))
        rows = await self._store.read(Query("revoked_tickets", params=(event_id, *after, limit)))
        return [(row[0], row[1]) for row in rows]

    async def valid_tickets(self, event_id: str, after: int = -1, limit: int = 1_000) -> list[Ticket]:
        params = (event_id, after, max(1, min(limit, MAX_PAGE)))
        return [_ticket_of(row) for row in await self._store.read(Query("valid_tickets", params=params))]

    async def record_scans(self, scans: Sequence[Scan]) -> list[DuplicateScan]:
        if len(scans) > MAX_SCANS:
            raise InvalidInput(f"hand in at most {MAX_SCANS} scans at once, not {len(scans)}", param="scans")
        if not scans:
            return []
        first: dict[tuple[str, str], int] = {}
        for scan in scans:
            if scan.way is Way.IN:
                ticket = (scan.ticket_id, scan.event_id)
                first[ticket] = min(first.get(ticket, scan.at_us), scan.at_us)
        named = sorted({(scan.ticket_id, scan.event_id) for scan in scans})
        unique = sorted({scan.id: scan for scan in scans}.values(), key=lambda scan: scan.id)
        queries = (
            Query("add_scans", [scan_row(scan) for scan in unique]),
            *([Query("stamp_scanned", [(*ticket, at_us) for ticket, at_us in sorted(first.items())])] if first else []),
            Query("stamp_left", named),
            Query("scans_of", named),
        )
        rows = await self._line.submit(RunStatements(queries, now_us=max(scan.at_us for scan in scans)))
        return find_duplicates([scan_of(row) for row in rows])

    async def duplicate_scans(self, event_id: str, after: int = 0, limit: int = 100) -> list[DuplicateScan]:
        limit = max(1, min(limit, MAX_SCANS))
        found = await self._store.read(Query("duplicate_scans", params=(event_id, after, limit)))
        if not found:
            return []
        rows = await self._store.read(Query("scans_of", [(row[0], event_id) for row in found]))
        return find_duplicates([scan_of(row) for row in rows])

    async def conflicting_scans(self, event_id: str, limit: int = 100) -> list[Scan]:
        """First admissions of tickets that were revoked, before or after: the gate was offline."""
        limit = max(1, min(limit, MAX_SCANS))
        found = await self._store.read(Query("conflicting_scans", params=(event_id, limit)))
        return [scan_of(row) for row in found]


def _ticket_of(row: Row) -> Ticket:
    return Ticket(row[0], row[1], row[2], row[3], TicketState(row[4]), *row[5:11])


def scan_row(scan: Scan) -> tuple[str, str, str, str, int, str]:
    """The row of `add_scans`."""
    return scan.id, scan.event_id, scan.ticket_id, scan.gate, scan.at_us, scan.way.value


def scan_of(row: Row) -> Scan:
    """A scan from (id, event, ticket, gate, at_us, way)."""
    scan_id, event_id, ticket_id, gate, at_us, way = row
    return Scan(scan_id, event_id, ticket_id, gate, at_us, way=Way(way))
