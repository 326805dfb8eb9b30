"""Verified-Fan codes of organisers. Imported ones are kept by their digests in the waiting room's shared trail, so they
work at once on every server. Made ones are signed and need not be kept: the ledger's note of a batch (which numbers, by
whom) is enough to write it again."""

import csv
import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.events.model.room_rules import RoomRules
from frontrow.boxoffice.organiser.ports.organiser_book import OrganiserBook
from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.credentials.fan_codes import MAX_CODES as MAX_NUMBERS
from frontrow.waitingroom.credentials.fan_codes import Codes, read_csv
from frontrow.waitingroom.ports import Audit, ImportRow

MAX_IMPORT: Final = 50_000
MAX_CODES: Final = 1_000_000  # of an event
MAX_BATCH: Final = 10_000
BLOCK: Final = 1 << 14  # each batch has numbers of its own
NOTES_A_PAGE: Final = 100
MAX_PAGES: Final = 20


class Batch(msgspec.Struct, frozen=True):
    """Codes made together: `count` numbers from `first` on, for one lane."""

    lane: str
    first: int
    count: int
    at_us: int = 0


class FanCodes:
    """Makes, imports and counts codes."""

    def __init__(
        self,
        book: OrganiserBook,
        trail: Audit,
        rules_of: Callable[[Event], RoomRules],
        clock: Clock,
        codes: Codes,
    ) -> None:
        self._book, self._trail, self._clock, self._codes = book, trail, clock, codes
        self._rules_of = rules_of

    def lanes(self, event: Event) -> dict[str, int]:
        """The event's lanes by name, with their numbers in codes."""
        return {lane.name: number for number, lane in enumerate(self._rules_of(event).lanes or ())}

    async def import_codes(self, editor: Editor, event: Event, text: str) -> int:
        """Import the codes of a CSV, all or none, and return how many."""
        try:
            found = read_csv(text.splitlines(), self.lanes(event))
        except csv.Error as error:
            raise InvalidInput(f"this is not valid CSV: {error}", param="csv", reason="fan_codes_unreadable") from None
        except InvalidInput as error:
            raise InvalidInput(error.message, param="csv", reason="fan_codes", **error.about) from None
        if not 1 <= len(found) <= MAX_IMPORT:
            said = f"import 1 to {MAX_IMPORT:,} codes at once, not {len(found):,}"
            raise InvalidInput(said, param="csv", reason="fan_codes_count")
        if sum((await self.counts(event)).values()) + len(found) > MAX_CODES:
            raise InvalidInput(f"an event has at most {MAX_CODES:,} codes", param="csv")
        await self._trail.append(event.id, [ImportRow(found)])
        await self._book.note(Change(editor, "import_codes", event.id, self._clock(), {"codes": len(found)}))
        return len(found)

    async def used(self, event_id: str) -> int:
        """How many codes brought somebody in."""
        return await self._trail.used_codes(event_id)

    async def counts(self, event: Event) -> dict[str, int]:
        """How many codes were imported, by lane."""
        names = {number: name for name, number in self.lanes(event).items()}
        counts = await self._trail.imported_counts(event.id)
        return {names.get(lane, str(lane)): count for lane, count in counts.items()}

    async def make(self, editor: Editor, event: Event, lane: str, count: int) -> Batch:
        """A batch of new single-use codes; only its numbers are noted."""
        if lane not in self.lanes(event):
            raise InvalidInput(f"there is no lane {lane[:40]!r}", param="lane")
        if not 1 <= count <= MAX_BATCH:
            raise InvalidInput(f"make 1 to {MAX_BATCH:,} codes at once", param="count")
        taken = {batch.first for batch in await self.batches(editor, event.id)}
        free = (secrets.randbelow(MAX_NUMBERS // BLOCK) * BLOCK for _ in range(100))
        first = next(number for number in free if number not in taken)
        now_us = self._clock()
        detail = {"lane": lane, "first": first, "codes": count}
        await self._book.note(Change(editor, "make_codes", event.id, now_us, detail))
        return Batch(lane, first, count, now_us)

    async def reserve(self, editor: Editor, event: Event, lane: str, count: int) -> int:
        """The first of so many fresh numbers (`presale.ports.CodeMaker`)."""
        return (await self.make(editor, event, lane, count)).first

    def text(self, event: Event, lane: str, number: int) -> str:
        """The code with this number."""
        return next(self._codes.make(event.id, self.lanes(event)[lane], [number]))

    def lane_names(self, event: Event) -> list[str]:
        return list(self.lanes(event))

    async def batches(self, editor: Editor, event_id: str) -> list[Batch]:
        """The batches made for an event, newest first."""
        found: list[Batch] = []
        before = 0
        for _ in range(MAX_PAGES):
            notes = await self._book.changes(editor.organiser_id, event_id, before, NOTES_A_PAGE)
            for note in notes:
                if note.act == "make_codes":
                    detail = msgspec.json.decode(note.detail)
                    found.append(Batch(detail["lane"], detail["first"], detail["codes"], note.at_us))
            if len(notes) < NOTES_A_PAGE:
                break
            before = notes[-1].number
        return found

    def texts(self, event: Event, batch: Batch) -> list[str]:
        """The codes of a batch."""
        numbers = range(batch.first, batch.first + batch.count)
        return list(self._codes.make(event.id, self.lanes(event)[batch.lane], numbers))
