"""Starts the processes of one server, watches them, replaces those that die and stops them together.

A worker whose parent is gone stops by itself, so that the next server finds the port free. A worker that keeps dying is
restarted after growing pauses. When no worker is left that works, the server ends.
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
YOUNG_S = 10.0  # a worker that lived shorter died young
MAX_YOUNG_DEATHS = 10  # after this many in a row and with no worker left, a restart does not help
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 30.0


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
        """`before_stop` releases what the parent holds for its workers (their socket), so that it ends with them."""
        self._spawn = multiprocessing.get_context("spawn")
        self._target, self._arguments = target, arguments
        self._stop_within_s, self._before_stop = stop_within_s, before_stop
        self._stop = threading.Event()
        self._young_deaths = 0
        self._due_s = [0.0] * count  # when a dead worker may be restarted; 0 while it lives
        self._started_s = [0.0] * count
        self._processes = [self._start(index) for index in range(count)]

    def _start(self, index: int) -> SpawnProcess:
        self._started_s[index] = time.monotonic()
        process = self._spawn.Process(target=run_watched, args=(self._target, self._arguments))
        process.start()
        return process

    def watch(self) -> None:
        """Replace workers that die until SIGTERM or SIGINT, then stop all of them."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        try:
            while not self._stop.wait(LOOK_EVERY_S):
                self._replace_dead()
        finally:
            self._end()

    def _replace_dead(self) -> None:
        now_s = time.monotonic()
        for index, process in enumerate(self._processes):
            if process.is_alive():
                continue
            if not self._due_s[index]:
                self._due_s[index] = now_s + self._restart_pause_s(index, process, now_s)
            if now_s >= self._due_s[index]:
                self._due_s[index] = 0.0
                self._processes[index] = self._start(index)

    def _restart_pause_s(self, index: int, process: SpawnProcess, now_s: float) -> float:
        """How long to wait before the restart; ends the server when no worker is left and a restart would not help."""
        log.error("worker died", extra={"pid": process.pid, "exit_code": process.exitcode})
        if now_s - self._started_s[index] > YOUNG_S:
            self._young_deaths = 0
        self._young_deaths += 1
        if self._young_deaths >= MAX_YOUNG_DEATHS and not any(other.is_alive() for other in self._processes):
            raise SystemExit("frontrow: workers keep dying; the log above says why")
        return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self._young_deaths - 1, 20))

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
    """Run the target in a worker, and stop it when the parent is gone."""
    threading.Thread(target=_end_with_the_parent, daemon=True, name="parent").start()
    target(*arguments)


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
