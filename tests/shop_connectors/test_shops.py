"""The example shop of every language before a real room on another origin: handed over, ended, revoked (O6)."""

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx
import jwt
import pytest

from connectors.make_vectors import ROOMS, signed
from tests.shop_connectors.languages import HERE, Language
from tests.shop_connectors.running_shop import PLAIN, ROOM, Shop, running
from tests.support.servers import free_port
from tests.web.room.room_process import Served, wait_for

WANTED = "/seats/caf%C3%A9?row=3&seat=a%26b"


@pytest.fixture(scope="module", params=HERE, ids=lambda one: one.name)
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    language: Language = request.param
    folder, port = tmp_path_factory.mktemp(language.name), free_port()
    url = f"http://127.0.0.1:{port}"
    room = Served(folder / "room", capacity=100, window_size=50, pass_ttl_s=900, shops=url)
    try:
        with running(language, folder, port, f"http://127.0.0.1:{room.port}") as log:
            yield Shop(language.name, url, room, log)
    finally:
        room.close()


def walk(shop: Shop, browser: httpx.Client, wanted: str = WANTED) -> str:
    """From the shop to the room, through the line, and to the URL with the hand-over."""
    sent = browser.get(wanted)
    assert sent.status_code == 303, sent.text + shop.log.read_text()[-3000:]
    room = f"http://127.0.0.1:{shop.room.port}{ROOM}"
    assert sent.headers["location"].startswith(f"{room}/?bind="), sent.headers["location"]
    with httpx.Client(trust_env=False, timeout=30, headers=PLAIN) as at_room:  # the room has cookies of its own
        page = at_room.get(sent.headers["location"])
        wish = re.search(r'name=wish value="([^"]+)"', page.text)
        assert wish is not None
        form = {"page": "true", "wish": wish[1].replace("&amp;", "&")}
        assert at_room.post(f"{room}/join", data=form).status_code == 303
        wait_for(lambda: "data-state=active" in at_room.get(sent.headers["location"]).text, shop.room.log)
        claimed = at_room.post(f"{room}/claim", data=form)
        assert claimed.status_code == 303, claimed.text
        return str(claimed.headers["location"])


def enter(shop: Shop, browser: httpx.Client) -> str:
    """Walk in; the pass in the shop's cookie."""
    url = walk(shop, browser)
    assert url.startswith(f"{shop.url}{WANTED}&frontrow=")
    inside = browser.get(url)
    assert (inside.status_code, inside.headers["location"]) == (303, WANTED), inside.text + shop.log.read_text()[-3000:]
    assert inside.headers["cache-control"] == "no-store"
    assert "Welcome" in browser.get(WANTED).text
    return str(browser.cookies["frontrow_pass_aurora"])


def test_a_visitor_comes_to_the_wanted_page_and_leaves_early(shop: Shop) -> None:
    with shop.browser() as browser:
        given = enter(shop, browser)
        name = str(jwt.decode(given, options={"verify_signature": False})["sub"])
        page = browser.get("/any/page")
        assert name in page.text
        assert browser.post("/.frontrow/end", headers={"origin": "https://evil.example"}).status_code == 403
        assert "Welcome" in browser.get("/any/page").text
        ended = browser.post("/.frontrow/end", headers={"origin": shop.url})
        assert ended.status_code == 204
        assert "frontrow_pass_aurora" not in browser.cookies, "the cookie is gone"
        assert browser.get("/any/page").status_code == 303
        asked = {"frontrow-pass": given, "accept": "*/*"}
        wait_for(lambda: browser.get("/x", headers=asked).status_code == 401, within_s=30)
        assert browser.get("/x", headers=asked).json()["code"] == "pass_ended", "the pass itself is refused too"


def test_a_copied_url_admits_nobody_and_does_not_use_it_up(shop: Shop) -> None:
    with shop.browser() as browser, shop.browser() as thief, shop.browser() as marked:
        url = walk(shop, browser)
        assert thief.get(url).headers["location"].startswith(f"http://127.0.0.1:{shop.room.port}{ROOM}/?bind=")
        marked.get("/")  # has a verifier, of its own
        assert marked.get(url).headers["location"].startswith(f"http://127.0.0.1:{shop.room.port}{ROOM}/?bind=")
        cookies = dict(browser.cookies)

        def come(_: int) -> httpx.Response:
            with shop.browser() as one:
                one.cookies.update(cookies)
                return one.get(url)

        with ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(come, range(50)))
        admitted = [one for one in answers if "frontrow_pass_aurora" in one.headers.get("set-cookie", "")]
        assert len(admitted) == 1, "one of fifty, though all know the verifier"


def test_a_visit_that_the_room_ends_is_refused_within_seconds(shop: Shop) -> None:
    with shop.browser() as browser:
        given = enter(shop, browser)
        ended = shop.room.client.post(f"{ROOM}/give-back", headers={"Frontrow-Pass": given})
        assert ended.json() == {"ended": True}
        began_s = time.monotonic()
        wait_for(lambda: browser.get("/any").status_code == 303, within_s=30)
        assert time.monotonic() - began_s < 10


def test_programs_are_refused_with_a_problem_and_nobody_names_themselves(shop: Shop) -> None:
    with shop.browser() as browser:
        refused = browser.get("/api", headers={"accept": "application/json"})
        assert (refused.status_code, refused.json()["code"]) == (401, "pass_required")
        assert refused.headers["content-type"].startswith("application/problem+json")
        assert browser.post("/api", data={"a": "b"}).status_code == 401
        forged = {"frontrow-person": "queen", "frontrow_person": "queen", "x-frontrow-visit": "1"}
        assert "queen" not in browser.get("/health", headers=forged).text
        tricks = ["/Health", "/health/../x", "/health;x", "/health%00", "/x%2f..%2fhealth"]
        # some servers tidy an address up before anybody sees it: then the shop gets the tidy one too
        tricks += [] if shop.name in ("wsgi", "django") else ["//health"]
        tricks += [] if shop.name == "edge" else ["/./health"]
        for path in tricks:
            status, text = raw_get(shop.url, path)
            assert status in (303, 400, 404), (path, status, text)


def raw_get(url: str, path: str) -> tuple[int, str]:
    """Status and body for exactly this path; most clients tidy paths up."""
    host, _, port = url.removeprefix("http://").partition(":")
    with contextlib.closing(socket.create_connection((host, int(port)), 30)) as line:
        line.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/html\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b"".join(iter(lambda: line.recv(65_536), b""))
        told, _, body = answer.partition(b"\r\n\r\n")
        return int(told.split()[1]), body.decode()


class StubRoom(BaseHTTPRequestHandler):
    """Says what its class was told to, so that a visit can be about to end without anybody waiting for it."""

    renewed: int = 200
    asked: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        self._answer(200, ROOMS["usual"] | {"now_s": int(time.time())})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.asked.append((self.path.rpartition("/")[2], self.headers.get("frontrow-pass", "")))
        self._answer(self.renewed, {"pass": "a.renewed.pass"})

    def _answer(self, status: int, told: Any) -> None:
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *about: object) -> None: ...


@pytest.mark.parametrize("language", HERE, ids=lambda one: one.name)
def test_a_visit_that_is_used_is_renewed_and_goes_on_without_the_room(language: Language, tmp_path: Path) -> None:
    port, now_s = free_port(), int(time.time())
    url = f"http://127.0.0.1:{port}"
    due = signed(shop=url, iat=now_s - 800, exp=now_s + 100)
    StubRoom.asked.clear()
    room = ThreadingHTTPServer(("127.0.0.1", 0), StubRoom)
    serving = threading.Thread(target=room.serve_forever, daemon=True)
    serving.start()

    def ask(**cookies: str) -> httpx.Response:
        kept = "; ".join(f"frontrow_{kind}_aurora={value}" for kind, value in cookies.items())
        return httpx.get(f"{url}/x", trust_env=False, timeout=30, headers=PLAIN | {"cookie": kept})

    with running(language, tmp_path, port, f"http://127.0.0.1:{room.server_port}"):
        StubRoom.renewed = 200
        renewed = ask(**{"pass": due})
        assert (renewed.status_code, "guest_7" in renewed.text) == (200, True)
        assert renewed.headers["set-cookie"].startswith("frontrow_pass_aurora=a.renewed.pass;")
        assert ("renew", due) in StubRoom.asked
        StubRoom.renewed = 409  # as long as a visit may last
        refused = ask(**{"pass": due})
        assert (refused.status_code, refused.headers["set-cookie"][:22]) == (200, "frontrow_kept_aurora=1")
        asked = len(StubRoom.asked)
        again = ask(**{"pass": due, "kept": "1"})
        assert (again.status_code, "set-cookie" in again.headers, len(StubRoom.asked)) == (200, False, asked)
        room.shutdown()
        room.server_close()
        serving.join(10)
        alone = ask(**{"pass": due})
        assert (alone.status_code, "guest_7" in alone.text) == (200, True), "the room is away"
        handed = httpx.get(
            f"{url}/x?frontrow=AAAA",
            trust_env=False,
            timeout=30,
            headers=PLAIN | {"cookie": f"frontrow_bind_aurora={'V' * 43}"},
        )
        assert (handed.status_code, handed.headers["retry-after"]) == (503, "2")
