"""Files of tickets (PDFs, wallet passes), made beside the event loop, each once: same tickets, same file."""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from frontrow.boxoffice.organiser.model.brands import TicketLook
from frontrow.boxoffice.tickets.ticket_sheets import Sheet
from frontrow.shared.heavy_work import HeavyWork, Urgency

MAX_CACHED_BYTES: Final = 16 * 1024 * 1024  # of files; one ticket's PDF has about 3 kB
DRAWN_WITHIN_S: Final = 20.0


class TicketDrawings:
    """Makes files by `HeavyWork`, keeps the latest, and lets callers who want the same file wait for one drawing."""

    def __init__(self, work: HeavyWork) -> None:
        self._work = work
        self._cached: dict[Hashable, bytes] = {}  # the least recently used first
        self._cached_bytes = 0
        self._drawing: dict[Hashable, asyncio.Task[bytes]] = {}

    async def draw(self, key: Hashable, urgency: Urgency, function: Callable[..., bytes], *arguments: Any) -> bytes:
        """The file that `function` makes of its arguments. `key` names everything that decides its content."""
        found = self._cached.pop(key, None)
        if found is not None:
            self._cached[key] = found
            return found
        drawing = self._drawing.get(key)
        if drawing is None:
            work = self._work.run(urgency, DRAWN_WITHIN_S, function, *arguments)
            drawing = self._drawing[key] = asyncio.create_task(work, name="tickets")
            drawing.add_done_callback(lambda task: self._end(key, task))
        return await asyncio.shield(drawing)

    def _end(self, key: Hashable, task: "asyncio.Task[bytes]") -> None:
        self._drawing.pop(key, None)
        if task.cancelled() or task.exception() is not None:
            return
        self._cached[key] = drawn = task.result()
        self._cached_bytes += len(drawn)
        while self._cached_bytes > MAX_CACHED_BYTES:
            self._cached_bytes -= len(self._cached.pop(next(iter(self._cached))))


def draw_tickets(sheets: Sequence[Sheet], language: str, look: TicketLook) -> bytes:
    from frontrow.boxoffice.tickets.ticket_pdf import tickets_pdf  # slow to import: not at startup

    return tickets_pdf(sheets, locale=language, look=look)
