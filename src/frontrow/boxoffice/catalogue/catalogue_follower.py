"""Follows what organisers publish and change: every process that sells or serves events has one follower.

It begins with what is on sale, then asks for the number of the newest change a few times a second: one row, and nothing
else while nothing changes. Numbers become visible in the order in which they were given (the ledger commits them so),
so whatever lies behind the last number seen is new, whichever server wrote it and whatever its clock says. What cannot
be opened now, because a store does not answer, is tried again at the next look.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.ports.ledger import Catalogue
from frontrow.core.errors import FrontrowError

log = logging.getLogger("frontrow.catalogue")

EVERY_S: Final = 0.4
PAGE: Final = 500
FRONT: Final = (-1, "")
BEGIN: Final = (0, "")  # changes have numbers from 1 on

Opened = Callable[[Event], Awaitable[None]]
Ended = Callable[[str, Event], Awaitable[None]]


class CatalogueFollower:
    """Calls `opened` for every event that is on sale or sold out, first and after each change, and `ended` when an
    event is so no longer. Both may fail; they are called again. `changes` grows with every change that was seen."""

    def __init__(self, catalogue: Catalogue, opened: Opened, ended: Ended, *, every_s: float = EVERY_S) -> None:
        self._catalogue, self._opened, self._ended, self._every_s = catalogue, opened, ended, every_s
        self._next = BEGIN  # the first change that was not seen yet
        self._live: set[str] = set()  # told to `opened`, not yet to `ended`
        self._again: dict[str, Event | None] = {}  # what failed, as last seen
        self._looking = asyncio.Lock()
        self._woken = asyncio.Event()
        self.changes = 0
        self.failures = 0
        self.last_error = ""

    def wake(self) -> None:
        """Look now: this process has just changed the catalogue."""
        self._woken.set()

    async def look(self) -> None:
        """Make this process agree with the catalogue now."""
        async with self._looking:
            again, self._again = self._again, {}
            for event_id, event in again.items():
                await self._take(event_id, event)
            newest = await self._catalogue.newest_change()
            if self._next == BEGIN or newest + 1 < self._next[0]:  # the beginning, or the ledger is a restored one
                await self._begin(newest)
            elif newest >= self._next[0]:
                await self._catch_up(newest)

    async def _begin(self, newest: int) -> None:
        """Read what is on sale; what changes meanwhile has a number behind `newest`."""
        missing, after = set(self._live), FRONT
        while True:  # ends with the last page
            page = await self._catalogue.live_events(after, PAGE)
            for event in page:
                missing.discard(event.id)
                await self._take(event.id, event)
            if len(page) < PAGE:
                break
            after = (page[-1].starts_at_us, page[-1].id)
        for event_id in missing:
            await self._take(event_id, None)
        self._next = (newest + 1, "")
        self.changes += 1

    async def _catch_up(self, newest: int) -> None:
        while True:  # ends with the last page
            page = await self._catalogue.changed_events(self._next, PAGE)
            for number, event_id, event in page:
                if event is not None or event_id in self._live:
                    await self._take(event_id, event)
                self._next = (number, event_id)
                self.changes += 1
            if len(page) < PAGE:
                break
        self._next = (max(newest, self._next[0]) + 1, "")

    async def _take(self, event_id: str, event: Event | None) -> None:
        try:
            if event is not None:
                self._live.add(event_id)
                await self._opened(event)
            else:
                await self._ended(event_id, await self._catalogue.event(event_id))
                self._live.discard(event_id)
        except FrontrowError as error:
            self._again[event_id] = event
            self.failures += 1
            self.last_error = error.message
            log.warning("event not taken over", extra={"event_id": event_id, "problem": error.code})

    async def run(self, look: Callable[[], Awaitable[None]] | None = None) -> None:
        """Look again and again until cancelled; `look` if there is more to do each time."""
        while True:
            try:
                await (look or self.look)()
            except FrontrowError as error:  # the ledger is away: nothing changes until it is back
                self.failures += 1
                self.last_error = error.message
            self._woken.clear()
            try:
                async with asyncio.timeout(self._every_s):
                    await self._woken.wait()
            except TimeoutError:
                continue
