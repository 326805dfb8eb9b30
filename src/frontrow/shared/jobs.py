"""Background jobs: what one is, and the runner that runs several of them side by side.

A job that fails is started again after a pause that grows up to a bound, while the others go on. Each failure is logged
and counted (`core.failures`). `stop` lets every job finish its present work within a bounded time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frontrow.core.background_tasks import FIRST_PAUSE_S, keep_running
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.core.failures import failures_here, note_failure, note_success
from frontrow.shared.quiet_time import QuietTime

GRACE_S: Final = 20.0


@dataclass(frozen=True)
class Job:
    """One background job: `run` goes on until `stop`. Without a `stop` it may be cancelled at any time."""

    name: str
    run: Callable[[], Awaitable[Any]]
    stop: Callable[[], None] | None = None


class JobRunner:
    """Runs jobs side by side and restarts those that fail."""

    def __init__(self, jobs: Sequence[Job], *, grace_s: float = GRACE_S, first_pause_s: float = FIRST_PAUSE_S) -> None:
        self.jobs = tuple(jobs)
        self._grace_s, self._first_pause_s = grace_s, first_pause_s
        self._stopping = asyncio.Event()
        self.book = failures_here()
        for job in self.jobs:
            self.book.expect(job.name)

    async def run(self) -> bool:
        """Run until `stop`. Returns whether every job ended within the grace period."""
        tasks = {job.name: asyncio.create_task(self._keep_running(job), name=job.name) for job in self.jobs}
        try:
            await self._stopping.wait()
        finally:
            for job in self.jobs:
                if job.stop is not None:
                    job.stop()
                else:
                    tasks[job.name].cancel()
            _, unfinished = await asyncio.wait(tasks.values(), timeout=self._grace_s)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
        return not unfinished

    def stop(self) -> None:
        """End all jobs after their present work. Safe to call from a signal handler."""
        self._stopping.set()

    async def _keep_running(self, job: Job) -> None:
        """Run a job and start it again when it fails."""
        await keep_running(job.run, job.name, first_pause_s=self._first_pause_s, until=self._stopping)


def every(name: str, act: Callable[[], Awaitable[Any]], every_s: float, quiet: QuietTime | None = None) -> Job:
    """A job that repeats `act`, and sleeps in `quiet` times. A round that finds a store or the provider unavailable is
    skipped."""

    async def run() -> None:
        while True:  # until cancelled
            try:
                await act()
                note_success()
            except (Unavailable, Overloaded) as error:
                note_failure(error)
            await asyncio.sleep(every_s)
            if quiet is not None:
                await quiet.wait_while_quiet()

    return Job(name, run)
