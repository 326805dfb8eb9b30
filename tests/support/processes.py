"""Real server processes for tests: `frontrow serve` and `frontrow work` on given stores, killed and started at will."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.support.eventually import eventually, eventually_sync
from tests.web.api.support import SECRET, room_keys

START_WITHIN_S = 150.0
EVERY_S = 0.05


def until_healthy(url: str, server: "subprocess.Popen[Any]", log: Path | None = None) -> None:
    """Until this process answers; fails with the end of its log if the process ends."""

    def status() -> int:
        assert server.poll() is None, log.read_text()[-2000:] if log else "the server ended"
        return httpx.get(f"{url}/healthz", timeout=10).status_code

    eventually_sync(
        status, START_WITHIN_S, until=lambda code: code == 200, ignoring=httpx.TransportError, every_s=EVERY_S
    )


class Process:
    """One `frontrow …` process; its address if it serves."""

    def __init__(
        self,
        command: list[str],
        folder: Path,
        *,
        own_keys: bool = False,
        program: str = "frontrow.cli.main",
        **env: str,
    ) -> None:
        """`own_keys`: nothing is put into its folder, it finds or makes its keys by itself."""
        (folder / "room").mkdir(exist_ok=True, parents=True)
        if not own_keys and not (folder / "room" / "master.key").exists():
            room_keys().save(folder / "room")
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")},
            "FRONTROW_SERVER_DEMO": "true",
            "FRONTROW_SERVER_FOLDER": str(folder),
            "FRONTROW_SECRET_KEY": SECRET,
            "FRONTROW_SERVER_PER_IP": "10000/second",
            "FRONTROW_SERVER_PER_PERSON": "1000/second",
            "FRONTROW_ROOM_INTERVAL_S": "0.05",
            "FRONTROW_ROOM_GRACE_S": "600",
            **env,
        }
        self._command = [sys.executable, "-c", f"from {program} import main; main()", *command]
        self._folder = folder
        self.url = ""
        self.start()

    def start(self) -> None:
        self._errors = (self._folder / "errors.log").open("ab")
        self.process = subprocess.Popen(
            self._command, env=self._env, cwd=self._folder, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )

    def listening(self) -> str:
        """Its address, once it has said so."""
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1]
        return self.url

    async def alive(self) -> None:
        """Until it answers, with or without an event to sell."""
        await self._answers("/healthz", lambda answer: answer.status_code == 200)

    async def ready(self) -> None:
        """Until it can sell."""
        await self._answers("/readyz", lambda answer: answer.json().get("events"))

    async def _answers(self, path: str, as_wanted: Callable[[httpx.Response], Any]) -> None:
        async def ask() -> httpx.Response:
            assert self.process.poll() is None, (self._folder / "errors.log").read_text()[-2000:]
            return await client.get(path)

        async with httpx.AsyncClient(base_url=self.url, timeout=5) as client:
            await eventually(ask, START_WITHIN_S, until=as_wanted, ignoring=httpx.TransportError, every_s=EVERY_S)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(40)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self._errors.close()
