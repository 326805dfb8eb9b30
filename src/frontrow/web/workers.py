"""Several processes of one server: started, watched, replaced when they die, stopped together."""

import logging
import multiprocessing
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


class Workers:
    """`count` processes running `target(*arguments)`."""

    def __init__(self, count: int, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._spawn = multiprocessing.get_context("spawn")
        self._target = target
        self._arguments = arguments
        self._stop = threading.Event()
        self._deaths: list[float] = []
        self._processes = [self._start() for _ in range(count)]

    def _start(self) -> SpawnProcess:
        process = self._spawn.Process(target=self._target, args=self._arguments)
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
            if len(self._deaths) >= MOST_DEATHS:
                raise SystemExit("frontrow: workers keep dying; the log above says why")
            self._processes[index] = self._start()

    def _end(self) -> None:
        for process in self._processes:
            process.terminate()
        deadline_s = time.monotonic() + STOP_TIMEOUT_S
        for process in self._processes:
            process.join(max(0.1, deadline_s - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join(5)
