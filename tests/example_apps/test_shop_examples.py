"""The shops: a Django shop behind the room, a purchase over the API, a provider and colours of one's own."""

import json
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontrow.boxoffice.payments.model.provider_intents import Intent
from frontrow.client import Client, calls
from frontrow.core.clock import SystemClock
from frontrow.settings.deployment import PaymentsSettings
from frontrow.settings.platform import read_settings
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.credentials.passes import Pass, PassSigner, new_key
from frontrow.waitingroom.ports import PlaceKey
from frontrow.waitingroom.protect.guard import PASS_COOKIES
from frontrow.web.http.cookies import BOOKINGS_COOKIES
from tests.browser.served import Site, put_hall
from tests.contracts.payment_provider import CHECKS, Check, ProviderCase
from tests.support.built_files import serving_built

ROOT = Path(__file__).parents[2]
EVENT = "evt_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"
ASK_DJANGO = """
import io, sys
from examples import django_shop

def ask(path, cookie=""):
    told = []
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "SERVER_NAME": "shop", "SERVER_PORT": "80",
               "HTTP_COOKIE": cookie, "HTTP_ACCEPT": "text/html", "wsgi.input": io.BytesIO(), "wsgi.url_scheme": "http"}
    body = b"".join(django_shop.app(environ, lambda status, headers: told.extend((status[:3], dict(headers)))))
    return told[0], told[1].get("Location", ""), body.decode()

print(ask("/seats"), ask("/health"), ask("/seats", sys.argv[1]), sep="\\n")
"""


class _Room(BaseHTTPRequestHandler):
    """What a shop needs of a room: its public keys."""

    signer = PassSigner([new_key()])

    def do_GET(self) -> None:
        body = json.dumps(self.signer.jwks()).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *about: object) -> None: ...


def served(server: HTTPServer) -> Iterator[str]:
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


@pytest.fixture
def room_url() -> Iterator[str]:
    yield from served(HTTPServer(("127.0.0.1", 0), _Room))


def test_the_django_shop_asks_for_a_pass(room_url: str) -> None:
    now_s = SystemClock()() // 1_000_000
    visit = Pass("aurora", "ada", PlaceKey(0, 1, 7), now_s, now_s + 900, now_s)
    told = subprocess.run(
        [sys.executable, "-c", ASK_DJANGO, f"{PASS_COOKIES[-1]}={_Room.signer.mint(visit)}"],
        cwd=ROOT, env={"ROOM_URL": room_url}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    refused, health, welcome = told.stdout.splitlines()
    assert refused == f"('303', '{room_url}/?return=/seats', '')"
    assert health == "('200', '', 'ok')"
    assert welcome == "('200', '', '<h1>Welcome! Choose your seats.</h1><p>Your pass: ada</p>')"


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from examples.own_provider.bank import BankPage

    class QuietBank(BankPage):
        def log_message(self, *about: object) -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OUR_BANK_BOOK", str(tmp_path_factory.mktemp("bank") / "bank.sqlite"))
        for url in served(ThreadingHTTPServer(("127.0.0.1", 0), QuietBank)):
            patch.setenv("OUR_BANK_URL", url)
            yield url


@pytest.fixture(scope="module")
def shop(bank: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with the money of our bank and the colours of the opera house."""
    payments = tomllib.loads((ROOT / "examples/own_provider/frontrow.toml").read_text())["payments"]
    given = tomllib.loads((ROOT / "examples/own_theme/frontrow.toml").read_text())["room"]
    room = RoomSettings(
        capacity=1_000, window_size=100, interval_s=0.05, **given | {"colours": tuple(given["colours"])}
    )
    folder = tmp_path_factory.mktemp("shop")
    money = PaymentsSettings(**payments)
    with (
        serving_built(folder / "built"),
        Site(folder, put_hall, payments=money, room=room) as site,
    ):  # as a wheel serves
        yield site


def test_the_headless_shop_buys_tickets(shop: Site, capsys: pytest.CaptureFixture[str]) -> None:
    from examples.headless_shop import buy

    seats = buy(shop.url, "aurora", 2, "account", "fan@example.org", pause_s=0.1)
    assert len(seats) == 2
    assert f"ticket for {seats[0]}" in capsys.readouterr().out


def test_a_fan_pays_on_the_page_of_our_own_bank(shop: Site, bank: str) -> None:
    """The checkout page asks for no card; the bank's page takes the answer; the fan comes back to a booking."""
    with Client(shop.url) as fan, httpx.Client(base_url=shop.url, timeout=60) as browser:
        visit = fan.enter(EVENT, most_pause_s=0.1)
        hold = fan.hold_best(EVENT, 1)
        browser.cookies.set(PASS_COOKIES[-1], visit.pass_)
        browser.cookies.set(BOOKINGS_COOKIES[-1], hold.booking_token)
        form = browser.get(f"/checkout/{hold.booking}").text
        assert 'name="email"' in form
        assert 'name="card"' not in form
        sent = browser.post(
            f"/checkout/{hold.booking}/pay", data={"email": "ada@example.org"}, headers={"origin": shop.url}
        )
        assert sent.headers["location"] == f"/checkout/{hold.booking}"
        checkout = fan.send(calls.get_booking(hold.booking)).checkout
        page = browser.get(f"/checkout/{hold.booking}").text
        assert checkout is None or checkout.action_url.startswith(bank)
        [address] = [part for part in page.split('"') if part.startswith(bank)]
        address = address.replace("&amp;", "&")
        assert "Pay" in httpx.get(address).text
        back = httpx.post(address, data={"answer": "yes"}).headers["location"]
        assert back == f"{shop.url}/checkout/{hold.booking}"
        assert browser.get(back).headers["location"] == f"/bookings/{hold.booking}"
        assert fan.send(calls.get_booking(hold.booking)).state == "confirmed"


UNPROMISED = (
    "a_refund_that_fails_gave_nothing_back_and_is_made_again",
    "a_refund_may_be_pending",
)  # refunds are instant


@pytest.mark.parametrize(
    "check", [one for one in CHECKS if one.__name__ not in UNPROMISED], ids=lambda one: one.__name__
)
async def test_our_own_provider_keeps_the_promises_of_the_port(check: Check, tmp_path: Path) -> None:
    from examples.own_provider.provider import BankProvider

    provider = BankProvider(str(tmp_path / "bank.sqlite"), "http://bank", SystemClock(), "http://shop")

    async def answer(intent: Intent, success: bool) -> None:
        told = ("authorised", "") if success else ("created", "refused_by_fan")
        provider._book.execute("UPDATE payments SET state = ?, error = ? WHERE ref = ?", (*told, intent.ref))

    try:
        await check(ProviderCase(provider, {"visa": "account", "declined": "other", "3ds": "hosted"}, answer))
    finally:
        await provider.aclose()


def test_every_page_has_the_colours_of_the_theme(shop: Site) -> None:
    with httpx.Client(base_url=shop.url, timeout=60, headers={"accept": "text/html"}) as browser:
        page = browser.get("/").text
        [theme] = [part for part in page.split('"') if part.startswith("/static/theme/")]
        style = browser.get(theme)
        assert "--brand:light-dark(#a3123f,#ff8fa9)" in style.text
        assert "immutable" in style.headers["cache-control"]
        assert "Opera House" in page
        room = browser.get(f"/v1/events/{EVENT}/room")
        assert "light-dark(#a3123f,#ff8fa9)" in room.text
        assert len(room.content) <= 14_600, "what fits into the first round trip"
        style = room.text.split("<style>")[1].split("</style>")[0]
        named = re.findall(r"--[a-z0-9-]+(?=:)", style)
        assert len(named) == len(set(named)), "a colour of the theme is in place of ours, not after it"
        assert set(re.findall(r"var\((--[a-z0-9-]+)\)", style)) <= set(named), "every colour is still known"
        assert theme in browser.get("/docs").text


@pytest.mark.parametrize("name", ["own_provider", "own_theme"])
def test_a_configuration_of_the_examples_is_accepted(name: str) -> None:
    read: Any = read_settings(ROOT / "examples" / name / "frontrow.toml", {"FRONTROW_SERVER_DEMO": "1"})
    assert read.payments.url if name == "own_provider" else read.room.colours
