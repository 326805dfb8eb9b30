"""A shop in one of the languages, before a room."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.shop_connectors.languages import ROOT, Language
from tests.web.room.room_process import Served, wait_for

ROOM = "/v1/events/aurora/room"
PLAIN = {"user-agent": "test", "accept": "text/html"}


@dataclass
class Shop:
    """A shop and its room."""

    name: str
    url: str
    room: Served
    log: Path

    def browser(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, trust_env=False, timeout=30, headers=PLAIN)


@contextlib.contextmanager
def running(language: Language, folder: Path, port: int, room_url: str) -> Iterator[Path]:
    """The example shop of a language, before the room at this address; its log."""
    url = f"http://127.0.0.1:{port}"
    environment, command = language.environment(port, room_url, url), language.shop_command(port)
    with (folder / "shop.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        told = (folder / "shop.log").read_text
        wait_for(lambda: httpx.get(f"{url}/health", trust_env=False).status_code == 200, told)
        yield folder / "shop.log"
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # Node and the shells have a child of their own
        process.wait(30)
