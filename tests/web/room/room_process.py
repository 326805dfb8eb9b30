"""`frontrow room serve` as a process, and `frontrow room …` as commands."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from click.testing import Result
from typer.testing import CliRunner

from frontrow.cli.room import app
from tests.support.eventually import eventually_sync
from tests.support.servers import free_port

KEY = "organiser-key-of-the-tests"
PROGRAM = [sys.executable, "-m", "frontrow.cli.main", "room"]


def environment(**settings: object) -> dict[str, str]:
    wide = "100000/second"
    given = {"organiser_key": KEY, "per_ip": wide, "per_person": wide, "interval_s": 0.1, "window_size": 5}
    given |= {"human": "none"} | settings  # tests join by plain requests
    left_out = ("FRONTROW_", "PYTHONDONTWRITEBYTECODE")  # compiling everything anew is most of a start
    plain = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return plain | {f"FRONTROW_ROOM_{name.upper()}": str(value) for name, value in given.items()}


class Served:
    """One `frontrow room serve`, with its files in `folder`."""

    def __init__(self, folder: Path, *arguments: str, **settings: object) -> None:
        self.folder, self.port = folder, free_port()
        where = ["--port", str(self.port), "--folder", str(folder)]
        self.command = [*PROGRAM, "serve", "-e", "aurora", *where, *arguments]
        self.environment = environment(**settings)
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=20)
        self.start()

    def start(self) -> None:
        with (self.folder.parent / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.environment)
        wait_for(lambda: self.client.get("/healthz").status_code == 200, self.log)

    def log(self) -> str:
        return (self.folder.parent / "serve.log").read_text()[-2000:]

    def stop(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(20)

    def close(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.stop()

    def join(self) -> str:
        answer = self.client.post("/join")
        assert answer.status_code == 201, answer.text
        return str(answer.json()["place"])

    def workers(self) -> list[int]:
        """The processes that serve."""
        main = self.process.pid
        children = [int(one) for one in Path(f"/proc/{main}/task/{main}/children").read_text().split()]
        return [one for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]

    def recorded(self) -> int:
        """The last position in the durable trail."""
        with contextlib.closing(sqlite3.connect(self.folder / "audit.sqlite")) as trail:
            return int(trail.execute("SELECT coalesce(max(last), 0) FROM room_joins").fetchone()[0])

    def status(self, place: str) -> Any:
        return self.client.get("/status", headers={"Authorization": f"Bearer {place}"}).json()

    def claim(self, place: str) -> httpx.Response:
        return self.client.post("/claim", headers={"Authorization": f"Bearer {place}"})


def wait_for(condition: Callable[[], Any], told: Callable[[], str] = str, within_s: float = 120) -> None:
    """Until a room says so. No answer, or one that does not have it yet, means not yet. A failure shows `told()`."""
    try:
        eventually_sync(condition, within_s, ignoring=(httpx.HTTPError, KeyError), every_s=0.05)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{told()}") from None


def room(*words: str, key: str = KEY) -> Result:
    """`frontrow room …` in this process."""
    return CliRunner().invoke(app, [*words], env={"FRONTROW_ROOM_ORGANISER_KEY": key})
