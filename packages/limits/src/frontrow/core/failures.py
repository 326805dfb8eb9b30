"""The failures of background work in one process: each is counted, and its cause is logged.

A cause is logged with its traceback the first time and then once per `REPEAT_S`, with the number of times since. So a
job that fails every second is heard and does not fill the log. An error of ours (`FrontrowError`: a store is away) is
a warning without a traceback; everything else is an error.

Each event loop has one book (`failures_here`), so a test or a second server in one process sees its own failures only.
/metrics and /readyz read it.
"""

import asyncio
import contextlib
import logging
import threading
import time
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from frontrow.core.errors import FrontrowError
from frontrow.core.forks import begin_in_child
from frontrow.core.log_line import JOB_FAILED

log = logging.getLogger("frontrow.jobs")

REPEAT_S: Final = 600.0  # the same cause is logged again after this long
FAILING_S: Final = 60.0  # a job that keeps failing fails more often than that
MAX_CAUSES: Final = 1_000
MAX_ERROR_CHARS: Final = 300

job_name: Final[ContextVar[str]] = ContextVar("job_name", default="unnamed")  # of the work that runs now


class FailureBook:
    """Counts failures by the name of the job, and logs each cause once in a while."""

    def __init__(self, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        begin_in_child(self._begin)
        self._begin()
        self.counts: dict[str, int] = {}  # job -> failures since the process began; 0 for jobs that are known
        self.last_errors: dict[str, str] = {}
        self._in_a_row: dict[str, tuple[int, float]] = {}  # job -> failures since it worked, and when the last was
        self._causes: dict[tuple[str, str, str], tuple[float, int]] = {}  # -> when it was logged, and times since

    def _begin(self) -> None:
        self._lock = threading.RLock()  # the collector may report a lost task in the middle of anything

    def expect(self, job: str) -> None:
        """Show this job with no failures from now on."""
        self.counts.setdefault(job, 0)

    def note(self, job: str, error: BaseException, **ids: object) -> None:
        """Count a failure of this job, and log it if its cause was not logged lately. `ids` say what it was about."""
        now_s = self._monotonic_s()
        with self._lock:
            self.counts[job] = self.counts.get(job, 0) + 1
            self.last_errors[job] = repr(error)[:MAX_ERROR_CHARS]
            self._in_a_row[job] = (self._in_a_row.get(job, (0, 0.0))[0] + 1, now_s)
            times = self._times_to_log((job, *_cause_of(error)), now_s)
        if times:
            _log_failure(job, error, times, ids)

    def note_success(self, job: str) -> None:
        """This job works: it is not failing any more."""
        if job in self._in_a_row:
            with self._lock:
                self._in_a_row.pop(job, None)

    def failing(self) -> list[str]:
        """The jobs that failed more than once and have not worked since, the last time just now."""
        now_s = self._monotonic_s()
        with self._lock:
            return [job for job, (times, at_s) in self._in_a_row.items() if times > 1 and now_s - at_s < FAILING_S]

    def failed(self) -> dict[str, int]:
        """The jobs that have failed since the process began, and how often."""
        with self._lock:
            return {job: count for job, count in self.counts.items() if count}

    def _times_to_log(self, cause: tuple[str, str, str], now_s: float) -> int:
        """How many failures a line about this cause stands for; 0 if it was logged lately."""
        logged_at_s, times = self._causes.get(cause, (0.0, 0))
        times += 1
        if cause in self._causes and now_s - logged_at_s < REPEAT_S:
            self._causes[cause] = (logged_at_s, times)
            return 0
        if len(self._causes) >= MAX_CAUSES:
            self._causes.pop(next(iter(self._causes)))
        self._causes[cause] = (now_s, 0)
        return times


def _cause_of(error: BaseException) -> tuple[str, str]:
    """What two failures with the same reason have in common: the kind of error and where it was raised."""
    if isinstance(error, FrontrowError):
        return type(error).__name__, error.code
    frame, place = error.__traceback__, ""
    while frame is not None:
        place = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}"
        frame = frame.tb_next
    return type(error).__name__, place


def _log_failure(job: str, error: BaseException, times: int, ids: dict[str, object]) -> None:
    about = {"action": JOB_FAILED.action, "job": job, "times": times, **ids}
    if isinstance(error, FrontrowError):
        log.warning("a background job failed", extra=about | {"problem": error.message})
    else:
        log.error("a background job failed", exc_info=error, extra=about)


_books: Final["weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, FailureBook]"] = weakref.WeakKeyDictionary()
_outside: Final = FailureBook()  # of threads without an event loop


def failures_here() -> FailureBook:
    """The failures of the event loop that runs here."""
    with contextlib.suppress(RuntimeError):
        return failures_of(asyncio.get_running_loop())
    return _outside


def failures_of(loop: asyncio.AbstractEventLoop) -> FailureBook:
    """The failures of this event loop."""
    book = _books.get(loop)
    if book is None:
        book = _books[loop] = FailureBook()
    return book


def note_failure(error: BaseException, **ids: object) -> None:
    """Count and log a failure of the job that runs now."""
    failures_here().note(job_name.get(), error, **ids)


def note_success() -> None:
    """The job that runs now works."""
    failures_here().note_success(job_name.get())
