"""Brands of organisations in the ledger. Colour and logo are written apart, so neither undoes a change of the other."""

from frontrow.boxoffice.adapters.ledger.engine.batched_reads import ReadsByKey
from frontrow.boxoffice.adapters.ledger.engine.group_commit import LedgerStore
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.organiser.organiser_changes import SqlOrganiserBook
from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.events.model.pictures import KEEP_UNUSED_US
from frontrow.boxoffice.organiser.model.brands import Brand, Logo


class SqlBrandBook:
    """Keeps the brand of each organisation that has one."""

    def __init__(self, store: LedgerStore, reads: ReadsByKey, organiser: SqlOrganiserBook) -> None:
        self._store, self._reads, self._organiser = store, reads, organiser

    async def of(self, organiser_id: str) -> Brand | None:
        rows = await self._reads["brands_of"].read(organiser_id)
        return _brand(rows[0]) if rows else None

    async def changed(self, after: tuple[int, str], limit: int) -> list[Brand]:
        """Brands by (time of their last change, organisation), from after that one on."""
        rows = await self._store.read(Query("brands_changed", params=(*after, limit)))
        return [_brand(row) for row in rows]

    async def put_colour(self, organiser_id: str, colour: str, change: Change) -> None:
        await self._organiser.changed(change, Query("put_brand_colours", [(organiser_id, colour, change.at_us)]))

    async def put_logo(self, organiser_id: str, logo: Logo | None, replaced: Logo | None, change: Change) -> None:
        """Show this logo, or none. The replaced one is deleted later if nothing else shows it."""
        shown = (logo.hash, logo.width, logo.height) if logo is not None else ("", 0, 0)
        put = Query("put_brand_logos", [(organiser_id, *shown, change.at_us)])
        left = [(replaced.hash, change.at_us + KEEP_UNUSED_US)] if replaced is not None and replaced != logo else []
        await self._organiser.changed(change, put, [Query("check_pictures", left)] if left else [])


def _brand(row: Row) -> Brand:
    organiser_id, name, colour, logo, width, height, changed_at_us = row
    shown = Logo(logo, int(width), int(height)) if logo else None
    return Brand(organiser_id, name, colour, shown, int(changed_at_us))
