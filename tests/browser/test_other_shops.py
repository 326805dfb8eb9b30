"""The waiting room before somebody else's shop, in a browser: both examples as they stand, started as they say (W7).

Whoever asks for a page of the shop waits in the room and is led back to that page, with scripts and without.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import enter_when_it_is_time
from tests.support.nginx import CONF, Nginx
from tests.support.servers import free_port
from tests.web.api.support import room_keys
from tests.web.room.room_process import wait_for
from tests.web.room.served import serving

ROOT = Path(__file__).parents[2]
WANTED = "/seats/caf%C3%A9?row=3&seat=a%26b"  # encoded, with a query: the browser must come back to exactly this


@contextlib.contextmanager
def running(folder: Path, command: list[str], url: str, **env: str) -> Iterator[None]:
    """A process that answers at `url`, until the block ends."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
    with (folder / "process.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=plain | env, stdout=log, stderr=log)
    try:
        told = (folder / "process.log").read_text
        wait_for(lambda: process.poll() is not None or httpx.get(url, trust_env=False).status_code > 0, told)
        assert process.poll() is None, told()
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def example_command(text: str, program: str, **values: int) -> list[str]:
    """A command as an example tells it, with other ports."""
    found = re.search(rf"`((?:[A-Z_]+=\S+ )*{program} [^`]+)`", " ".join(text.split()))
    assert found is not None, program
    words = found[1]
    for was, now in values.items():
        words = words.replace(was.removeprefix("p"), str(now))
    return words.split()


@contextlib.contextmanager
def room(folder: Path, text: str, port: int, **values: int) -> Iterator[None]:
    """The room beside the shop, by the command in the example's own words."""
    (folder / "room").mkdir(parents=True)
    room_keys().save(folder / "room")
    words = example_command(text, "frontrow room serve", **values)
    env = dict(word.split("=", 1) for word in words[: words.index("frontrow")])
    command = words[words.index("frontrow") + 1 :]
    own = ["--port", str(port), "--folder", str(folder / "room")]
    url = f"http://127.0.0.1:{port}/healthz"
    with running(folder, [sys.executable, "-m", "frontrow.cli.main", *command, *own], url, **env):
        yield


@pytest.fixture(scope="module")
def shop_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """examples/protected_shop.py: the middleware asks for the pass."""
    text = (ROOT / "examples" / "protected_shop.py").read_text()
    room_port, port = free_port(), free_port()
    folder = tmp_path_factory.mktemp("shop")
    command = [sys.executable, "-m", *example_command(text, "uvicorn", p8000=port)]
    with (
        room(folder, text, room_port, p8000=port),
        running(folder, command, f"http://127.0.0.1:{port}/static/x", ROOM_URL=f"http://127.0.0.1:{room_port}"),
    ):
        yield f"http://127.0.0.1:{port}"


async def plain_shop(scope: Any, receive: Any, send: Any) -> None:
    """Knows nothing of the room."""
    person = dict(scope["headers"]).get(b"frontrow-person", b"").decode()
    body = f"<h1>Welcome! Choose your seats.</h1>{person}".encode()
    headers = [(b"content-type", b"text/html"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def nginx_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """examples/nginx/frontrow.conf: nginx asks for the pass."""
    text = CONF.read_text()
    room_port = free_port()
    comments = text.replace("#", "")
    with room(tmp_path_factory.mktemp("nginx"), comments, room_port), serving(plain_shop, lifespan="off") as port:
        changed = text.replace("127.0.0.1:8008", f"127.0.0.1:{room_port}").replace(
            "127.0.0.1:8000", f"127.0.0.1:{port}"
        )
        with Nginx(changed) as nginx:
            yield f"http://127.0.0.1:{nginx.port}"


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("example", ["shop_url", "nginx_url"])
def test_w7_the_browser_waits_and_comes_back_to_the_page_it_wanted(
    request: pytest.FixtureRequest, profile: Any, example: str, scripts: bool
) -> None:
    url = request.getfixturevalue(example)
    page: Page = profile(java_script_enabled=scripts).new_page()
    page.goto(url + WANTED)
    expect(page.get_by_role("heading", name="Get your place")).to_be_visible()
    page.get_by_role("button", name="Join").click()
    if not scripts:
        enter_when_it_is_time(page)
    page.wait_for_url(url + WANTED)
    expect(page.get_by_role("heading", name="Welcome! Choose your seats.")).to_be_visible()
    page.goto(f"{url}/another/page")
    expect(page.get_by_role("heading", name="Welcome! Choose your seats.")).to_be_visible()
