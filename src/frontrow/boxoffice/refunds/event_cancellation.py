"""The job that refunds everyone after an event was cancelled, one page of bookings at a time.

The bookings themselves say what is done, so any server can continue where another died. A work claim keeps two servers
from working on the same event at once; even that would do no harm. Bookings that could not be ended are tried again.

The ledger takes neither holds nor confirmations for a cancelled event, but a transaction that began before may commit
after the first round. So rounds go on until one that began at least `SURE_US` after the cancellation had no failures.
"""

from typing import Final

from frontrow.boxoffice.refunds.ports.refunds import RefundBook
from frontrow.boxoffice.refunds.refunds import CancellationProgress, Refunds
from frontrow.core.clock import US_PER_S, Clock
from frontrow.shared.jobs import Job, every
from frontrow.shared.quiet_time import QuietTime

WORK_CLAIM_US: Final = 60 * US_PER_S
RETRY_US: Final = 5 * US_PER_S  # between two rounds over bookings that failed
SURE_US: Final = 30 * US_PER_S  # longer than any transaction and than a reconnect of the ledger
PAGE: Final = 200
EVENTS_PER_TURN: Final = 4
EVERY_S: Final = 0.5


class EventCancellations:
    """Refunds the bookings of cancelled events."""

    def __init__(self, book: RefundBook, refunds: Refunds, clock: Clock) -> None:
        self._book, self._refunds, self._clock = book, refunds, clock

    async def work(self) -> int:
        """One round over every cancellation that is due. Returns how many there were."""
        now_us = self._clock()
        due = await self._book.claim_cancellations(now_us, now_us + WORK_CLAIM_US, EVENTS_PER_TURN)
        for event_id, started_at_us in due:
            await self._round(event_id, started_at_us)
        return len(due)

    def job(self, quiet: QuietTime | None = None) -> Job:
        """The background job, for a server or `frontrow work`."""
        return every("cancellations", self.work, EVERY_S, quiet)

    async def _round(self, event_id: str, started_at_us: int) -> None:
        began_us, before = self._clock(), CancellationProgress()
        async for so_far in self._refunds.cancel_event(event_id, page=PAGE):
            now_us = self._clock()
            done = _difference(before, so_far)
            await self._book.note_cancellation(event_id, "running", done, now_us + WORK_CLAIM_US, now_us)
            before = so_far
        now_us = self._clock()
        finished = not before.failed and began_us >= started_at_us + SURE_US
        state = "done" if finished else "running"
        await self._book.note_cancellation(event_id, state, (0, 0, 0, before.failed, 0), now_us + RETRY_US, now_us)


def _difference(before: CancellationProgress, now: CancellationProgress) -> tuple[int, int, int, int, int]:
    return (
        now.refunded - before.refunded,
        now.released - before.released,
        now.stopped - before.stopped,
        now.failed,
        now.returned - before.returned,
    )
