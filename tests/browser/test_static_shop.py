"""A static page before which people wait, by the snippet alone: the example as it stands, in a browser (O6)."""

import functools
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.room.room_process import Served

ROOT = Path(__file__).parents[2]
PAGE = "/examples/shops/static/"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *about: object) -> None: ...


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A web server that knows nothing, with the room's port in the page."""
    folder = tmp_path_factory.mktemp("static")
    shutil.copytree(ROOT / "connectors/javascript", folder / "site/connectors/javascript")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder / "site")))
    url = f"http://127.0.0.1:{server.server_port}"
    room = Served(folder / "room", capacity=1, shops=url)
    text = (ROOT / "examples/shops/static/index.html").read_text().replace("8008", str(room.port))
    (folder / "site/examples/shops/static").mkdir(parents=True)
    (folder / "site/examples/shops/static/index.html").write_text(text)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    yield url
    server.shutdown()
    serving.join(10)
    server.server_close()
    room.close()


def test_a_static_page_is_shown_after_the_room_and_a_copied_address_is_not(shop: str, profile: Any) -> None:
    fan: Page = profile().new_page()
    handed: list[str] = []
    fan.on("request", lambda request: handed.append(request.url) if "frontrow=" in request.url else None)
    fan.goto(f"{shop}{PAGE}?seat=7#there")
    fan.get_by_role("button", name="Join").click()
    fan.wait_for_url(f"{shop}{PAGE}?seat=7")
    expect(fan.get_by_role("heading", name="Welcome! Choose your seats.")).to_be_visible()
    fan.reload()
    expect(fan.get_by_role("heading", name="Welcome! Choose your seats.")).to_be_visible()
    thief: Page = profile().new_page()
    thief.goto(handed[0])
    expect(thief.get_by_role("heading", name="Get your place")).to_be_visible()
    thief.get_by_role("button", name="Join").click()
    expect(thief.get_by_role("heading", name="You’re in the queue")).to_be_visible()
    fan.get_by_role("button", name="Leave").click()
    thief.wait_for_url(f"{shop}{PAGE}?seat=7")
    expect(thief.get_by_role("heading", name="Welcome! Choose your seats.")).to_be_visible()
