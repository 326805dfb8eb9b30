"""A poll loop with back-off: rounds of work until stopped, with longer pauses while a store does not answer.

While nothing is due for any job, a loop sleeps until there may be work (`QuietTime`).
"""

import asyncio
from collections.abc import Awaitable, Callable

from frontrow.core.errors import Overloaded, Unavailable
from frontrow.core.failures import note_failure, note_success
from frontrow.shared.quiet_time import QuietTime


class PollLoop:
    """Runs rounds with a pause of `every_s` between them. After a failed round the pause doubles, up to `longest_s`."""

    def __init__(self, every_s: float, longest_s: float, quiet: QuietTime | None = None) -> None:
        self._every_s, self._longest_s, self._quiet = every_s, longest_s, quiet
        self._stopping = asyncio.Event()
        self.failures = 0

    def stop(self) -> None:
        """Stop after the present round."""
        self._stopping.set()
        if self._quiet is not None:
            self._quiet.wake()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    async def run(self, work: Callable[[], Awaitable[float]]) -> None:
        """Call `work` until stopped. It returns how long to pause."""
        pause_s = self._every_s
        while not self._stopping.is_set():
            try:
                pause_s = await work()
                note_success()
            except (Unavailable, Overloaded) as error:
                self.failures += 1
                note_failure(error)
                pause_s = min(2 * max(pause_s, self._every_s), self._longest_s)
            try:
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
            except TimeoutError:
                if self._quiet is not None and not self._stopping.is_set():  # `stop` has rung before anybody slept
                    await self._quiet.wait_while_quiet()
