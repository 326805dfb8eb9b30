"""Verified-Fan codes that organisers import over HTTP: kept in the ledger by their digests, known to every server.

A server looks about once a second whether its events have imports it has not read, and reads them page by page; so a
code works everywhere within a second or two of the import, whichever server took it.
"""

import csv
from typing import Final

from frontrow.boxoffice.ledger.organise import OrganiserBook
from frontrow.boxoffice.model.organising import Change, Editor
from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput
from frontrow.core.ids import Ids
from frontrow.waitingroom.codes import Codes, read_csv
from frontrow.waitingroom.config import RoomConfig
from frontrow.web.openings import Openings

EVERY_S: Final = 0.8
PAGE: Final = 5_000
MAX_IMPORT: Final = 50_000
MAX_CODES: Final = 1_000_000  # of an event: some 150 bytes each in every server


class FanCodes:
    """Imports codes and follows what other servers import."""

    def __init__(
        self, ledger: OrganiserBook, codes: Codes, config: RoomConfig, openings: Openings, clock: Clock, ids: Ids
    ) -> None:
        self._ledger, self._codes, self._openings, self._clock, self._ids = ledger, codes, openings, clock, ids
        self.lanes = {rule.name: number for number, rule in enumerate(config.lanes)}
        self._read: set[str] = set()

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
        if sum((await self._ledger.code_counts(event_id)).values()) + len(found) > MAX_CODES:
            raise InvalidInput(f"an event has at most {MAX_CODES:,} codes", param="csv")
        change = Change(editor, "import_codes", event_id, self._clock(), {"codes": len(found)})
        rows = [(digest.hex(), lane) for digest, lane in found]
        await self._ledger.import_codes(self._ids.new("imp"), rows, change)
        await self.look()
        return len(found)

    async def look(self) -> None:
        """Read the imports of this server's events that it has not read."""
        for import_id, event_id in await self._ledger.code_imports(list(self._openings.events)):
            if import_id not in self._read:
                await self._take_over(import_id, event_id)
                self._read.add(import_id)

    async def _take_over(self, import_id: str, event_id: str) -> None:
        after = ""
        for _ in range(MAX_IMPORT // PAGE + 1):
            page = await self._ledger.codes_of_import(import_id, after, PAGE)
            known = [(bytes.fromhex(digest), self.lanes[lane]) for digest, lane in page if lane in self.lanes]
            self._codes.learn(event_id, known)
            if len(page) < PAGE:
                return
            after = page[-1][0]
