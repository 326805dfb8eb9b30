"""The job behind the cancellation of an event: everybody's money back, a page of bookings at a time.

What is done is known by the bookings themselves, so any server may go on where another died: a lease keeps two from
working on the same event at once, and even that would do no harm. Bookings that could not be ended are tried again.

The ledger takes neither holds nor confirmations for a cancelled event, but a transaction that began before may end
after the first look. So rounds go on until one finds nothing at all, at least `SURE_US` after the cancellation.
"""

from collections.abc import AsyncIterator
from typing import Final, Protocol

from frontrow.boxoffice.jobs.background_jobs import Job, every
from frontrow.boxoffice.refunds.refunds import Progress
from frontrow.core.clock import US_PER_S, Clock

LEASE_US: Final = 60 * US_PER_S
AGAIN_US: Final = 5 * US_PER_S  # between two rounds over bookings that failed
SURE_US: Final = 30 * US_PER_S  # longer than any transaction, and than the ledger's reconnecting
PAGE: Final = 200
AT_ONCE: Final = 4  # events
EVERY_S: Final = 0.5


class CancellationBook(Protocol):
    async def lease_cancellations(self, now_us: int, until_us: int, limit: int) -> list[tuple[str, int]]: ...

    async def note_cancellation(
        self, event_id: str, state: str, done: tuple[int, int, int, int, int], next_at_us: int, now_us: int
    ) -> None: ...


class CancelsEvents(Protocol):
    def cancel_event(self, event_id: str, *, page: int = PAGE) -> AsyncIterator[Progress]: ...


class Cancelling:
    """Works through cancelled events."""

    def __init__(self, book: CancellationBook, refunds: CancelsEvents, clock: Clock) -> None:
        self._book, self._refunds, self._clock = book, refunds, clock

    async def work(self) -> int:
        """One round over every cancellation that is due; how many there were."""
        now_us = self._clock()
        due = await self._book.lease_cancellations(now_us, now_us + LEASE_US, AT_ONCE)
        for event_id, started_at_us in due:
            await self._round(event_id, started_at_us)
        return len(due)

    def job(self) -> Job:
        """What goes on by itself, in a server or in `frontrow work`."""
        return every("cancellations", self.work, EVERY_S)

    async def _round(self, event_id: str, started_at_us: int) -> None:
        began_us, before = self._clock(), Progress()
        async for so_far in self._refunds.cancel_event(event_id, page=PAGE):
            now_us = self._clock()
            done = _since(before, so_far)
            await self._book.note_cancellation(event_id, "running", done, now_us + LEASE_US, now_us)
            before = so_far
        now_us = self._clock()
        done_now = not before.failed and began_us >= started_at_us + SURE_US
        state = "done" if done_now else "running"
        await self._book.note_cancellation(event_id, state, (0, 0, 0, before.failed, 0), now_us + AGAIN_US, now_us)


def _since(before: Progress, now: Progress) -> tuple[int, int, int, int, int]:
    return (
        now.refunded - before.refunded,
        now.released - before.released,
        now.stopped - before.stopped,
        now.failed,
        now.returned - before.returned,
    )
