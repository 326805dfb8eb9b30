"""Every command in the table of examples/README.md is run as it stands, only on other ports, to its last page."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.steps import choose, get_tickets, until
from tests.support.eventually import eventually_sync
from tests.support.servers import free_port
from tests.web.api.support import room_keys

ROOT = Path(__file__).parents[2]
WAIT_MS = 60_000
PORTS = ("8000", "8008", "9000", "6379")  # in the commands, or where they listen if they say nothing
NOT_RUN = {"nginx/frontrow.conf": "nginx is no command of ours: tests/browser/test_other_shops.py runs this file"}


def read_table() -> dict[str, tuple[list[str], str]]:
    """The example of each row -> its commands, and what its last cell says."""
    rows = re.findall(
        r"^\| \[([^\]]+)\]\([^)]+\) \|.*?\| (.*?) \| (.*?) \|$", (ROOT / "examples/README.md").read_text(), re.M
    )
    return {name: (re.findall(r"`([^`]+)`", start), then) for name, start, then in rows}


ROWS = read_table()


class Terminal:
    """Runs commands of the table in one folder, each port replaced by a free one; the long ones go on until the end."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        self.ports = {number: str(free_port()) for number in PORTS}
        (folder / "examples").symlink_to(ROOT / "examples")
        room, bank = (f"http://127.0.0.1:{self.ports[number]}" for number in ("8008", "9000"))
        plain = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
        self.env = plain | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(folder),
            "FRONTROW_SERVER_PORT": self.ports["8000"],
            "FRONTROW_ROOM_PORT": self.ports["8008"],
            "ROOM_URL": room,
            "OUR_BANK_URL": bank,
            "PYTHONUNBUFFERED": "1",
        }
        for keys in (folder / "frontrow-data" / "room", folder / "frontrow-room"):
            keys.mkdir(parents=True)
            room_keys().save(keys)  # an RSA key takes a second
        self._running: list[subprocess.Popen[bytes]] = []

    def here(self, text: str) -> str:
        """The same words with the ports of this test."""
        for number, own in self.ports.items():
            text = re.sub(rf"\b{number}\b", own, text)
        return text

    def told(self) -> str:
        return self.log.read_text("utf-8", "replace")[-4_000:]

    def start(self, command: str, path: str = "") -> None:
        """Start it; wait until it answers at `path` of its port, if that is given."""
        words = shlex.split(self.here(command))
        env = dict(self.env)
        while re.match(r"[A-Z_]+=", words[0]):
            name, _, value = words.pop(0).partition("=")
            env[name] = value
        if words[0] == "frontrow" and words[1] == "room":
            env.pop("FRONTROW_SERVER_PORT")
        elif words[0] == "frontrow":
            env.pop("FRONTROW_ROOM_PORT")
        with self.log.open("ab") as log:
            process = subprocess.Popen(words, cwd=self.folder, env=env, stdout=log, stderr=log)
        self._running.append(process)
        if path:
            url = self.here(path)
            eventually_sync(lambda: process.poll() is not None or _answers(url), 120, every_s=0.05)
            assert process.poll() is None, self.told()

    def run(self, command: str) -> str:
        """Run it to its end; what it printed."""
        words = shlex.split(self.here(command))
        done = subprocess.run(
            words, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr + self.told()
        return done.stdout

    def close(self) -> None:
        for process in reversed(self._running):
            process.send_signal(signal.SIGTERM)
        for process in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            process.wait(10)


def _answers(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(url, trust_env=False, timeout=5).status_code > 0
    return False


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    made.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(WAIT_MS)
    yield context.new_page()
    context.close()


def opened(then: str) -> str:
    """The address that the last cell says to open."""
    found = re.search(r"open (http\S+)", then)
    assert found is not None, then
    return found[1]


@pytest.mark.parametrize(
    "name", ["limiter/fastapi_app.py", "limiter/litestar_app.py", "limiter/flask_app.py", "limiter/django_app.py"]
)
def test_a_limited_app_sends_one_code_and_refuses_the_second(name: str, terminal: Terminal) -> None:
    ([start], then) = ROWS[name]
    terminal.start(start, "http://127.0.0.1:8000/")
    asked = re.search(r"`curl -X POST (\S+)` twice", then)
    assert asked is not None
    url = terminal.here(asked[1])
    assert [httpx.post(url, trust_env=False).status_code // 100 for _ in range(2)] == [2, 4]


def test_celery_workers_keep_to_the_limit_together(terminal: Terminal, redis_url: str) -> None:
    worker, send = ROWS["limiter/celery_tasks.py"][0]
    terminal.env["REDIS_URL"] = redis_url
    terminal.start(worker)
    eventually_sync(terminal.told, 120, until=lambda told: "[queues]" in told)
    terminal.run(send)
    eventually_sync(terminal.told, 120, until=lambda told: told.count("report for ada") >= 2)


def test_a_client_keeps_to_the_limit_of_another(terminal: Terminal) -> None:
    server, client = ROWS["limiter/httpx_client.py"][0]
    terminal.start(server, "http://127.0.0.1:8000/")
    told = terminal.run(client)
    assert told.count("200") == 5, told


@pytest.mark.parametrize("name", ["protected_shop.py", "django_shop.py"])
def test_whoever_wants_into_a_protected_shop_comes_through_the_room(name: str, terminal: Terminal, page: Page) -> None:
    ([room, shop], then) = ROWS[name]
    terminal.start(room, "http://127.0.0.1:8008/healthz")
    terminal.start(shop, "http://127.0.0.1:8000/static/x")
    page.goto(terminal.here(opened(then)))
    enter = page.locator("#join button")
    expect(enter).to_be_visible()
    enter.click()
    expect(page.get_by_role("heading", name=re.compile("Welcome.*Choose your seats"))).to_be_visible(timeout=WAIT_MS)
    assert page.url == terminal.here(opened(then))


def test_a_purchase_over_the_api_ends_with_two_tickets(terminal: Terminal) -> None:
    server, buy = ROWS["headless_shop.py"][0]
    terminal.start(server, "http://127.0.0.1:8000/v1/events/evt_example")
    assert terminal.run(buy).count("ticket for ") == 2


def test_a_fan_pays_at_the_bank_of_the_example(terminal: Terminal, page: Page) -> None:
    ([bank, shop], then) = ROWS["own_provider/"]
    terminal.start(bank)
    terminal.start(shop, "http://127.0.0.1:8000/v1/events/evt_example")
    page.goto(terminal.here(opened(then)))
    get_tickets(page)
    until(page, "window.frontrow")
    choose(page)
    page.locator("#go").click()
    page.get_by_label("Email for your tickets").fill("fan@example.org")
    page.get_by_role("button", name=re.compile("Pay")).click()
    page.get_by_role("link", name="Go to my bank").click()
    page.wait_for_url(re.compile(f":{terminal.ports['9000']}/"))
    page.get_by_role("button", name="Pay").click()
    page.wait_for_url("**/bookings/**")


def test_the_theme_of_the_example_is_on_the_pages(terminal: Terminal, page: Page) -> None:
    ([server], then) = ROWS["own_theme/"]
    terminal.start(server, "http://127.0.0.1:8000/healthz")
    page.goto(terminal.here(opened(then)))
    expect(page.get_by_role("banner")).to_contain_text("Opera House")
    brand = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--brand')")
    assert brand == "rgb(163, 18, 63)", "the brand of the file, in light colours"


def test_every_row_of_the_table_is_run_by_a_test_of_this_file() -> None:
    text = Path(__file__).read_text("utf-8")
    run = {name for name in ROWS if f'"{name}"' in text}
    assert ROWS.keys() == run, "a new row needs a test here"
    assert NOT_RUN.keys() <= ROWS.keys()
