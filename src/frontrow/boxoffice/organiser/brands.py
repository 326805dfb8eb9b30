"""The brands of organisations: one colour and a logo each, kept in memory because every page of a sale shows them.

`Brands` follows the ledger: what another server changes is known here some seconds later, what this one changes at
once.
"""

from typing import Final

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.events.pictures import PREPARE_WITHIN_S, prepare_logo
from frontrow.boxoffice.organiser.model.brands import Brand, Logo, checked_colour
from frontrow.boxoffice.organiser.ports.ledger import OrganiserLedger
from frontrow.core.clock import US_PER_S, Clock
from frontrow.shared.heavy_work import HeavyWork, Urgency
from frontrow.shared.jobs import Job, every

REFRESH_EVERY_S: Final = 3.0
OVERLAP_US: Final = 60 * US_PER_S  # how late a change may become visible, and by how much servers' clocks may differ
PAGE: Final = 500
BEGIN: Final = -1


class Brands:
    """Every organisation's brand, and how its members change it."""

    def __init__(self, ledger: OrganiserLedger, clock: Clock, work: HeavyWork) -> None:
        self._ledger, self._clock, self._work = ledger, clock, work
        self._known: dict[str, Brand] = {}
        self._seen_us = BEGIN

    def of(self, organiser_id: str) -> Brand:
        """The brand of an organisation as this server knows it; an empty one if it has none."""
        return self._known.get(organiser_id) or Brand(organiser_id)

    async def read(self, organiser_id: str) -> Brand:
        """The brand as the ledger has it now; an empty one if there is none."""
        return await self._ledger.brands.of(organiser_id) or Brand(organiser_id)

    async def refresh(self) -> None:
        """Read what changed since the last time."""
        after = (self._seen_us, "")
        while True:  # ends with the last page
            page = await self._ledger.brands.changed(after, PAGE)
            for brand in page:
                self._keep(brand)
            if len(page) < PAGE:
                break
            after = (page[-1].changed_at_us, page[-1].organiser_id)
        newest_us = max((one.changed_at_us for one in self._known.values()), default=BEGIN)
        self._seen_us = max(BEGIN, newest_us - OVERLAP_US)

    async def change_colour(self, editor: Editor, text: str) -> Brand:
        """Show this colour, or the site's own for an empty text."""
        colour, was = checked_colour(text), await self._stored(editor)
        if colour != was.colour:
            change = self._change(editor, "change_brand", {"changes": {"colour": [was.colour, colour]}})
            await self._ledger.brands.put_colour(editor.organiser_id, colour, change)
        return await self._stored(editor)

    async def put_logo(self, editor: Editor, encoded: str) -> Brand:
        """Show this logo (in base64). It is decoded, made small and written anew beside the event loop."""
        picture = await self._work.run(Urgency.IMPORT, PREPARE_WITHIN_S, prepare_logo, encoded)
        await self._ledger.pictures.add(picture.hash, editor.organiser_id, picture.body, self._clock())
        return await self._show_logo(editor, Logo(picture.hash, picture.width, picture.height), "put_logo")

    async def remove_logo(self, editor: Editor) -> Brand:
        """Show the site's name again."""
        return await self._show_logo(editor, None, "remove_logo")

    async def _show_logo(self, editor: Editor, logo: Logo | None, act: str) -> Brand:
        was = await self._stored(editor)
        if logo != was.logo:
            await self._ledger.brands.put_logo(editor.organiser_id, logo, was.logo, self._change(editor, act, {}))
        return await self._stored(editor)

    async def _stored(self, editor: Editor) -> Brand:
        """The brand as the ledger has it now; this server shows it from now on."""
        stored = await self._ledger.brands.of(editor.organiser_id)
        if stored is not None:
            self._keep(stored)
        return self.of(editor.organiser_id)

    def _keep(self, brand: Brand) -> None:
        if brand.changed_at_us >= self.of(brand.organiser_id).changed_at_us:  # a slow read brings an older one
            self._known[brand.organiser_id] = brand

    def _change(self, editor: Editor, act: str, detail: dict[str, object]) -> Change:
        return Change(editor, act, "", self._clock(), detail)

    def job(self) -> Job:
        return every("brands", self.refresh, REFRESH_EVERY_S)
