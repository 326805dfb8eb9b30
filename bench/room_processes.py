"""A room as it is really served, `frontrow room serve` in processes of its own, and what these processes use."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.http_load import cpu_s
from tests.support.servers import free_port

EVENT = "aurora"
START_WITHIN_S = 120
STOP_WITHIN_S = 30
# the crowd comes with addresses of its own, and computes no proofs
SETTINGS = {"TRUSTED_PROXIES": "127.0.0.0/8", "HUMAN": "none"}


@dataclass(frozen=True, slots=True)
class Used:
    """What processes have used and use, together."""

    cpu_s: float
    memory_bytes: int


class ServedRoom:
    """One `frontrow room serve` in a folder; it may be killed and started again there, on the same port."""

    def __init__(self, folder: Path, store: str = "memory://", workers: int = 1, **settings: str) -> None:
        self.port = free_port()
        self.folder = folder
        self._command = [sys.executable, "-m", "frontrow.cli.main", "room", "serve", "-e", EVENT]
        self._command += ["--port", str(self.port), "--folder", str(folder), "--store", store]
        self._command += ["--workers", str(workers)]
        changes = {f"FRONTROW_ROOM_{name}": value for name, value in (SETTINGS | settings).items()}
        self._environment = os.environ | changes
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Begin to start it."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for the benchmark, which ends its servers in order
            )

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.launch()
        assert self._process is not None
        deadline_s = time.monotonic() + START_WITHIN_S
        while time.monotonic() < deadline_s and self._process.poll() is None:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/healthz", timeout=2):
                return
            time.sleep(0.02)
        self.end(signal.SIGKILL)
        said = (self.folder / "log").read_text(errors="replace")[-2_000:]
        raise SystemExit(f"the room did not come up within {START_WITHIN_S} s: {said}")

    def end(self, sig: signal.Signals = signal.SIGTERM) -> None:
        """End it and its workers, and wait until they are gone."""
        process, self._process = self._process, None
        if process is None:
            return
        family = [process.pid, *(child.pid for child in psutil.Process(process.pid).children())]
        process.send_signal(sig)
        try:
            process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_WITHIN_S)
        for pid in family[1:]:
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(pid).wait(STOP_WITHIN_S)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def used(self) -> Used:
        """CPU and memory of the server with its workers."""
        assert self._process is not None
        main = psutil.Process(self._process.pid)
        family = [main, *main.children()]
        return Used(sum(cpu_s(one.pid) for one in family), sum(one.memory_full_info().uss for one in family))


@contextlib.contextmanager
def served_room(folder: Path, store: str = "memory://", workers: int = 1, **settings: str) -> Iterator[ServedRoom]:
    """A room that runs, and is ended whatever happens."""
    folder.mkdir(parents=True, exist_ok=True)
    room = ServedRoom(folder, store, workers, **settings)
    try:
        room.start()
        yield room
    finally:
        room.end()
