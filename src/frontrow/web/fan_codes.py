"""Verified-Fan codes that organisers import over HTTP: kept by their digests in the waiting room's shared trail, so
they work at once on every server; the ledger keeps the note of who imported how many."""

import csv
from typing import Final

from frontrow.boxoffice.ledger.organise import OrganiserBook
from frontrow.boxoffice.model.organising import Change, Editor
from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.codes import read_csv
from frontrow.waitingroom.config import RoomConfig
from frontrow.waitingroom.ports import Audit, ImportRow

MAX_IMPORT: Final = 50_000
MAX_CODES: Final = 1_000_000  # of an event


class FanCodes:
    """Imports and counts codes."""

    def __init__(self, ledger: OrganiserBook, trail: Audit, config: RoomConfig, clock: Clock) -> None:
        self._ledger, self._trail, self._clock = ledger, trail, clock
        self.lanes = {rule.name: number for number, rule in enumerate(config.lanes)}

    async def take(self, editor: Editor, event_id: str, text: str) -> int:
        """Keep the codes of a CSV; how many. All or nothing."""
        try:
            found = read_csv(text.splitlines(), self.lanes)
        except csv.Error as error:
            raise InvalidInput(f"this is no CSV: {error}", param="csv") from None
        except InvalidInput as error:
            raise InvalidInput(error.message, param="csv") from None
        if not 1 <= len(found) <= MAX_IMPORT:
            raise InvalidInput(f"import 1 to {MAX_IMPORT:,} codes at once, not {len(found):,}", param="csv")
        if sum((await self.counts(event_id)).values()) + len(found) > MAX_CODES:
            raise InvalidInput(f"an event has at most {MAX_CODES:,} codes", param="csv")
        await self._trail.append(event_id, [ImportRow(found)])
        await self._ledger.note(Change(editor, "import_codes", event_id, self._clock(), {"codes": len(found)}))
        return len(found)

    async def used(self, event_id: str) -> int:
        """How many codes brought somebody in."""
        return await self._trail.used_codes(event_id)

    async def counts(self, event_id: str) -> dict[str, int]:
        """How many codes were imported, by lane."""
        names = {number: name for name, number in self.lanes.items()}
        counts = await self._trail.imported_counts(event_id)
        return {names.get(lane, str(lane)): count for lane, count in counts.items()}
