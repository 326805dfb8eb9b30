"""Several processes of one server: started, watched, replaced when they die, stopped together.

A worker whose parent is gone stops by itself, so that the next server finds the port free. One that ends with code 2
cannot start at all (a wrong setting): then nothing is tried again.
"""

import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from typing import Any

log = logging.getLogger("frontrow.workers")

STOP_TIMEOUT_S = 15.0
LOOK_EVERY_S = 0.2
MOST_DEATHS = 20  # within a minute: something is wrong that starting again does not mend
CANNOT_START = 2


class Workers:
    """`count` processes running `target(*arguments)`."""

    def __init__(
        self,
        count: int,
        target: Callable[..., None],
        arguments: tuple[Any, ...],
        *,
        stop_within_s: float = STOP_TIMEOUT_S,
        before_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """`before_stop` lets go of what the parent holds for its workers (their socket), so that it ends with them."""
        self._spawn = multiprocessing.get_context("spawn")
        self._target, self._arguments = target, arguments
        self._stop_within_s, self._before_stop = stop_within_s, before_stop
        self._stop = threading.Event()
        self._deaths: list[float] = []
        self._processes = [self._start() for _ in range(count)]

    def _start(self) -> SpawnProcess:
        process = self._spawn.Process(target=run_watched, args=(self._target, self._arguments))
        process.start()
        return process

    def watch(self) -> None:
        """Until SIGTERM or SIGINT: replace who dies; then stop everybody."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        try:
            while not self._stop.wait(LOOK_EVERY_S):
                self._replace_the_dead()
        finally:
            self._end()

    def _replace_the_dead(self) -> None:
        for index, process in enumerate(self._processes):
            if process.is_alive():
                continue
            now_s = time.monotonic()
            self._deaths = [at_s for at_s in self._deaths if now_s - at_s < 60] + [now_s]
            log.error("worker died", extra={"pid": process.pid, "exit_code": process.exitcode})
            if process.exitcode == CANNOT_START:  # it said why
                raise SystemExit(CANNOT_START)
            if len(self._deaths) >= MOST_DEATHS:
                raise SystemExit("frontrow: workers keep dying; the log above says why")
            self._processes[index] = self._start()

    def _end(self) -> None:
        self._before_stop()
        for process in self._processes:
            process.terminate()
        deadline_s = time.monotonic() + self._stop_within_s
        for process in self._processes:
            process.join(max(0.1, deadline_s - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join(5)


def run_watched(target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """What a worker runs: the target, and beside it an eye on the parent."""
    threading.Thread(target=_end_with_the_parent, daemon=True, name="parent").start()
    target(*arguments)


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
