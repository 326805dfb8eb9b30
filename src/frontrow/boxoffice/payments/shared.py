"""The simulated provider for several processes on one machine: each call reads what the others wrote, under a lock.

So two servers and a worker of a demo or a test stand before one "bank". The lock is held for the call alone, some tens
of microseconds; nobody would put real money behind a file.
"""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from frontrow.boxoffice.payments.journal import JournaledProvider, Line
from frontrow.boxoffice.payments.simulated import Answer
from frontrow.core.clock import Clock


class SharedProvider(JournaledProvider):
    """See JournaledProvider; `path` may be used by other processes at the same time."""

    def __init__(self, clock: Clock, path: Path, **options: Any) -> None:
        path.touch(mode=0o600)
        self._lock = path.with_suffix(".lock").open("w")
        self._read_to = 0
        with self._alone():
            super().__init__(clock, path, **options)
            self._read_to = path.stat().st_size
        self._path = path

    @contextmanager
    def _alone(self) -> Iterator[None]:
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _catch_up(self) -> None:
        """Take in what others appended; only a crash leaves half a line, and the next writer ends it."""
        with self._path.open("rb") as file:
            file.seek(self._read_to)
            fresh = file.read()
        whole = fresh[: fresh.rfind(b"\n") + 1]
        if len(whole) < len(fresh):
            self._file.write(b"\n")
            whole = fresh[: len(whole)]
        for text in whole.split(b"\n"):
            if text:
                try:
                    self._take(msgspec.json.decode(text, type=Line))
                except msgspec.DecodeError:
                    continue
        self._read_to = self._path.stat().st_size

    async def _do(self, operation: str, key: str, asked: str, act: Callable[[], Answer]) -> Answer:
        with self._alone():
            self._catch_up()
            try:
                return await super()._do(operation, key, asked, act)
            finally:
                self._read_to = self._path.stat().st_size
                self.notices.clear()  # nobody delivers them here

    def finish_action(self, ref: str) -> None:
        with self._alone():
            self._catch_up()
            super().finish_action(ref)
            self._read_to = self._path.stat().st_size
            self.notices.clear()

    async def aclose(self) -> None:
        await super().aclose()
        self._lock.close()
