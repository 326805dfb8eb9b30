"""In an office that sets `http_proxy`, commands still reach the servers of this machine: a proxy knows none of them."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from frontrow.app import demo, storm_tokens


class Answering(BaseHTTPRequestHandler):
    """Answers everything with 200."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *about: object) -> None: ...


@pytest.fixture
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server here, where the environment names a proxy that does not reach it."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_demo_sees_its_own_server_open(own_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "START_WITHIN_S", 2.0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as running:
        demo._wait_until_open(own_server, running)
        assert running.poll() is None
        running.communicate("\n")


async def test_a_storm_token_waits_for_the_server_itself(own_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm_tokens, "OPEN_WITHIN_S", 2.0)
    assert await storm_tokens.wait_until_open(own_server, "frt_evt_x.1.token")
