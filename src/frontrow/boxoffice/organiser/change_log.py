"""Notes in the organiser's audit log about what changes nothing in the ledger: exports, steering the room, check-ins.

Everything else is noted in the transaction of the change itself.
"""

from typing import Any

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.organiser.ports.organiser_book import OrganiserBook
from frontrow.core.clock import Clock


class ChangeLog:
    """Writes notes of what members of a team did."""

    def __init__(self, book: OrganiserBook, clock: Clock) -> None:
        self._book, self._clock = book, clock

    async def note(self, editor: Editor, act: str, event_id: str, detail: dict[str, Any]) -> None:
        """Note that the editor did this. `detail` is small, public and without secrets."""
        await self._book.note(Change(editor, act, event_id, self._clock(), detail))
