"""Follows the changes of the catalogue. Every process that sells or serves events has one follower.

It begins with the events on sale. Then it reads the number of the newest change a few times per second: one row, and
nothing else while nothing changes. The ledger commits numbers in order, so every change after the last number seen is
new, whichever server wrote it and whatever its clock says. An event that cannot be opened, because a store does not
answer, is tried again at the next poll.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.events.ports import Catalogue
from frontrow.core.errors import FrontrowError, Overloaded, Unavailable
from frontrow.core.failures import note_failure, note_success

log = logging.getLogger("frontrow.catalogue")

POLL_EVERY_S: Final = 0.4
PAGE: Final = 500
AT_ONCE: Final = 32  # events that are opened at the same time at the start
FIRST_PAGE: Final = (-1, "")
MAX_ERROR_CHARS: Final = 300
BEGIN: Final = (0, "")  # changes have numbers from 1 on

OnOpened = Callable[[Event], Awaitable[None]]
OnEnded = Callable[[str, Event], Awaitable[None]]


class CatalogueFollower:
    """Keeps a process in step with the catalogue.

    It calls `opened` for every event that is on sale or sold out, at first and after each change, and `ended` when an
    event is neither any more. A call that fails is repeated. `changes` counts the changes seen.
    """

    def __init__(
        self, catalogue: Catalogue, opened: OnOpened, ended: OnEnded, *, every_s: float = POLL_EVERY_S
    ) -> None:
        self._catalogue, self._opened, self._ended, self._every_s = catalogue, opened, ended, every_s
        self._next = BEGIN  # the first change not seen yet
        self._live: set[str] = set()  # passed to `opened`, not yet to `ended`
        self._failed: dict[str, Event | None] = {}  # to be tried again, as last seen
        self.unreachable: set[str] = set()  # of these, the events whose store did not answer
        self._syncing = asyncio.Lock()
        self.changes = 0
        self.failures = 0
        self.last_error = ""

    @property
    def has_begun(self) -> bool:
        """Whether the events on sale at the start were read."""
        return self._next != BEGIN

    async def sync(self) -> None:
        """Bring this process in step with the catalogue now."""
        async with self._syncing:
            failed, self._failed = self._failed, {}
            for event_id, event in failed.items():
                await self._apply(event_id, event)
            newest = await self._catalogue.newest_change()
            if not self.has_begun or newest + 1 < self._next[0]:  # the first time, or the ledger was restored
                await self._begin(newest)
            elif newest >= self._next[0]:
                await self._catch_up(newest)

    async def _begin(self, newest: int) -> None:
        """Read the events on sale. Changes made meanwhile have numbers after `newest`."""
        missing, after = set(self._live), FIRST_PAGE
        while True:  # ends with the last page
            page = await self._catalogue.live_events(after, PAGE)
            missing -= {event.id for event in page}
            for start in range(0, len(page), AT_ONCE):
                some = page[start : start + AT_ONCE]
                await asyncio.gather(*(self._apply(event.id, event) for event in some))
            if len(page) < PAGE:
                break
            after = (page[-1].starts_at_us, page[-1].id)
        for event_id in missing:
            await self._apply(event_id, None)
        self._next = (newest + 1, "")
        self.changes += 1
        log.info("events on sale opened", extra={"events": len(self._live - self._failed.keys())})

    async def _catch_up(self, newest: int) -> None:
        while True:  # ends with the last page
            page = await self._catalogue.changed_events(self._next, PAGE)
            for number, event_id, event in page:
                if event is not None or event_id in self._live:
                    await self._apply(event_id, event)
                self._next = (number, event_id)
                self.changes += 1
            if len(page) < PAGE:
                break
        self._next = (max(newest, self._next[0]) + 1, "")

    async def _apply(self, event_id: str, event: Event | None) -> None:
        self.unreachable.discard(event_id)
        try:
            if event is not None:
                self._live.add(event_id)
                await self._opened(event)
            else:
                await self._ended(event_id, await self._catalogue.event(event_id))
                self._live.discard(event_id)
        except FrontrowError as error:
            self._failed[event_id] = event
            if isinstance(error, Unavailable | Overloaded):
                self.unreachable.add(event_id)
            self.failures += 1
            self.last_error = error.message
            log.warning("event could not be opened or closed", extra={"event_id": event_id, "problem": error.code})
        except Exception as error:  # ours: one event that cannot be opened must not stop those after it
            self._failed[event_id] = event
            self.failures += 1
            self.last_error = repr(error)[:MAX_ERROR_CHARS]
            note_failure(error, event_id=event_id)

    async def run(self, sync: Callable[[], Awaitable[None]] | None = None) -> None:
        """Sync repeatedly until cancelled. Pass `sync` if there is more to do each time."""
        while True:
            try:
                await (sync or self.sync)()
                note_success()
            except FrontrowError as error:  # the ledger is unavailable: nothing changes until it is back
                self.failures += 1
                self.last_error = error.message
                note_failure(error)
            await asyncio.sleep(self._every_s)
