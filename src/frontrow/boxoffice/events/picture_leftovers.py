"""Deletes pictures that nothing shows any more, some days after they were replaced or removed.

Every upload and every replacement says when the picture is to be checked. A picture that an event or a brand shows then
is kept. Days lie between the two, so nobody who is just about to use it, and no cache that still shows it, is harmed.
"""

from typing import Final

from frontrow.boxoffice.events.ports import PictureBook
from frontrow.core.clock import Clock
from frontrow.shared.jobs import Job, every

CHECK_EVERY_S: Final = 600.0
CHECKED_AT_ONCE: Final = 20  # each is looked for in every event's document


class PictureLeftovers:
    """The job that deletes them."""

    def __init__(self, pictures: PictureBook, clock: Clock) -> None:
        self._pictures, self._clock = pictures, clock

    async def drop(self) -> int:
        """Delete what is no longer used among the pictures that are due. Returns how many."""
        now_us, dropped = self._clock(), 0
        for picture_hash, check_at_us in await self._pictures.to_check(now_us, CHECKED_AT_ONCE):
            dropped += await self._pictures.drop_unused(picture_hash, check_at_us, now_us)
        return dropped

    def job(self) -> Job:
        return every("unused pictures", self.drop, CHECK_EVERY_S)
