"""Several processes that share the ports. The parent starts them, passes signals on, and replaces one that dies.

A worker ends by itself when its parent is gone: its standard input, a pipe from the parent, then ends.
"""

import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.limits_service.server import bind
from frontrow.limits_service.settings import ServeSettings, read_address

log = logging.getLogger("frontrow.limits_service")

MAX_DEATHS, WITHIN_S = 5, 60.0  # workers that die more often than that end the service
START_S = 30.0
KILL_AFTER_S = 5.0  # beyond the grace
SECRET_VARIABLE = "FRONTROW_WORKER_SECRET"  # noqa: S105  # the name of it


class Workers:
    """The workers of one service."""

    def __init__(self, settings: ServeSettings, arguments: Sequence[str]) -> None:
        """`arguments` are those of the command, which each worker gets too."""
        self._settings = settings
        self._arguments = list(arguments)
        self._workers: dict[int, subprocess.Popen[str]] = {}
        self._deaths: deque[float] = deque()
        self._stopping = False
        self._held: list[socket.socket] = []

    def run(self, listening: Callable[[str], None]) -> int:
        """Until a signal. The exit code of the service."""
        settings = self._hold_ports()
        with tempfile.TemporaryDirectory(prefix="frontrow-limits-") as folder:
            environment = {
                **os.environ,
                SECRET_VARIABLE: secrets.token_hex(16),
                "FRONTROW_WORKER_FOLDER": folder,
                "FRONTROW_SERVE_HTTP": settings.http,
                "FRONTROW_SERVE_GRPC": settings.grpc,
            }
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._begin_stop)
            try:
                for worker in range(1, settings.workers + 1):
                    self._workers[worker] = self._start(worker, environment)
                addresses = [self._first_line(each) for each in self._workers.values()]
                listening(addresses[0])
                return self._watch(environment)
            finally:
                self._end()

    def _hold_ports(self) -> ServeSettings:
        """Bind the ports, so that a port 0 becomes the same number for all. A socket that does not listen gets none of
        the connections."""
        found: dict[str, Any] = {}
        for name in ("http", "grpc"):
            address = read_address(getattr(self._settings, name), f"serve.{name}")
            if address is not None:
                held = bind(address, shares=True)
                self._held.append(held)
                found[name] = str(address._replace(port=held.getsockname()[1]))
        return replace(self._settings, **found)

    def _start(self, number: int, environment: dict[str, str]) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "frontrow.limits_service.command", *self._arguments, "--worker", str(number)]
        return subprocess.Popen(  # noqa: S603  # our own command
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def _first_line(self, worker: "subprocess.Popen[str]") -> str:
        assert worker.stdout is not None
        line = worker.stdout.readline().strip()
        if not line:
            worker.wait(START_S)
            raise ConfigError("a worker ended before it listened; its lines above say why")
        return line

    def _watch(self, environment: dict[str, str]) -> int:
        """Replace workers that die, until a signal or until too many have died."""
        while not self._stopping:
            for number, worker in list(self._workers.items()):
                if worker.poll() is None or self._stopping:
                    continue
                if not self._may_replace(time.monotonic()):
                    log.error("%d workers died within %g s; the service ends", MAX_DEATHS, WITHIN_S)
                    return 1
                log.error("worker %d ended with %s; starting another", number, worker.returncode)
                self._close(worker)
                self._workers[number] = self._start(number, environment)
                self._first_line(self._workers[number])
            time.sleep(0.05)
        return 0

    def _may_replace(self, now_s: float) -> bool:
        self._deaths.append(now_s)
        while self._deaths[0] < now_s - WITHIN_S:
            self._deaths.popleft()
        return len(self._deaths) < MAX_DEATHS

    def _begin_stop(self, _number: int, _frame: object) -> None:
        self._stopping = True

    def _end(self) -> None:
        for worker in self._workers.values():
            if worker.poll() is None:
                worker.terminate()
        ends_s = time.monotonic() + self._settings.grace_s + KILL_AFTER_S
        for worker in self._workers.values():
            try:
                worker.wait(max(0.1, ends_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.error("a worker did not end within its grace; it is killed")
                worker.kill()
                worker.wait()
            self._close(worker)
        for held in self._held:
            held.close()

    def _close(self, worker: "subprocess.Popen[str]") -> None:
        for pipe in (worker.stdin, worker.stdout):
            if pipe is not None:
                pipe.close()
