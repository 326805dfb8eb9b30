"""Room and shop on two registrable domains, by https, in a browser that blocks third-party cookies (O6, J18).

The names lead to this machine by Chromium's own resolver. nginx speaks TLS for both; the shop is the ASGI example.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from examples.shops import asgi_shop
from frontrow.waitingroom.protect.connector import Setup
from frontrow.waitingroom.protect.connector_asgi import AsgiConnector
from frontrow.waitingroom.protect.connector_client import Connector, fetch
from tests.browser.steps import enter_when_it_is_time
from tests.support.chromium import launch
from tests.support.nginx import Nginx, write_own_certificate
from tests.support.servers import free_port
from tests.web.room.room_process import Served
from tests.web.room.served import serving

SHOP_NAME, ROOM_NAME = "tickets.shop-of-others.test", "queue.room-of-ours.example"
WANTED = "/seats/caf%C3%A9?row=3&seat=a%26b"
BLOCKING = {
    "enableThirdPartyCookieRestriction": True,
    "disableThirdPartyCookieMetadata": True,
    "disableThirdPartyCookieHeuristics": True,
}
ASK = "(url) => fetch(url, { mode: 'no-cors', credentials: 'include' }).then(() => null)"
WELCOME, PLACE = "Welcome! Choose your seats.", "Get your place"
CONF = """
server {
    listen 8080;
    listen 127.0.0.1:%(port)d ssl;
    server_name %(name)s;
    ssl_certificate %(folder)s/fullchain.pem;
    ssl_certificate_key %(folder)s/privkey.pem;
    location = /probe { add_header Set-Cookie "probe=1; Secure; SameSite=None; Path=/" always; return 204; }
    location / {
        proxy_pass http://127.0.0.1:%(upstream)d;
        proxy_http_version 1.1;
        proxy_buffering off;
        proxy_set_header Connection "";
        proxy_set_header Host $http_host;
    }
}
"""


class Domains:
    """The two addresses, the room behind one of them, and a browser for both."""

    def __init__(self, shop: str, room: str, served: Served, browser: Browser) -> None:
        self.shop, self.room, self.served, self._browser = shop, room, served, browser

    def fan(self, **more: Any) -> Page:
        """A page of a fresh profile that blocks third-party cookies."""
        context = self._browser.new_context(ignore_https_errors=True, **more)
        context.set_default_timeout(45_000)
        page: Page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.setCookieControls", BLOCKING)
        page.goto(f"{self.shop}/health")
        page.reload()  # the controls hold from here on
        return page


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Served]]:
    """One person at a time fits into the shop."""
    folder, tls = tmp_path_factory.mktemp("domains"), free_port()
    write_own_certificate(folder / "tls")
    shop, room = f"https://{SHOP_NAME}:{tls}", f"https://{ROOM_NAME}:{tls}"
    with contextlib.ExitStack() as stack:
        served = Served(folder / "room", capacity=1, shops=shop, public_url=room)
        stack.callback(served.close)

        def call(url: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, Any]:
            return fetch(url.replace(room, f"http://127.0.0.1:{served.port}"), body, headers)

        setup = Setup(f"{room}/v1/events/aurora/room", "aurora", shop, ["/health"])
        shop_port = stack.enter_context(
            serving(AsgiConnector(asgi_shop.shop, Connector(setup, call=call)), lifespan="off")
        )
        told = {"folder": str(folder / "tls"), "port": tls}
        pages = CONF % (told | {"name": ROOM_NAME, "upstream": served.port})
        pages += CONF % (told | {"name": SHOP_NAME, "upstream": shop_port})
        stack.enter_context(Nginx(pages))
        yield shop, room, served


@pytest.fixture
def domains(addresses: tuple[str, str, Served], browser: Browser) -> Iterator[Domains]:
    """In a Chromium of its own, which knows the names."""
    names = f"--host-resolver-rules=MAP {SHOP_NAME} 127.0.0.1,MAP {ROOM_NAME} 127.0.0.1"
    with contextlib.closing(launch(browser.browser_type, args=[names])) as own:
        yield Domains(*addresses, own)


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_fan_waits_at_one_domain_and_lands_on_the_wanted_page_of_another(domains: Domains, scripts: bool) -> None:
    fan = domains.fan(java_script_enabled=scripts)
    handed: list[str] = []
    fan.on("request", lambda request: handed.append(request.url) if "frontrow=" in request.url else None)
    fan.goto(domains.shop + WANTED)
    assert fan.url.startswith(f"{domains.room}/v1/events/aurora/room/?bind=")
    fan.get_by_role("button", name="Join").click()
    if not scripts:
        enter_when_it_is_time(fan)
    fan.wait_for_url(domains.shop + WANTED)
    expect(fan.get_by_role("heading", name=WELCOME)).to_be_visible()
    [url] = set(handed)
    fan.evaluate(ASK, f"{domains.room}/probe")
    assert "probe" not in [one["name"] for one in fan.context.cookies(domains.room)], "third-party cookies are blocked"
    at_shop = {cookie["name"]: cookie for cookie in fan.context.cookies(domains.shop)}
    assert {"__Host-frontrow-pass-aurora", "__Host-frontrow-bind-aurora"} <= at_shop.keys()
    assert all(one["httpOnly"] and one["secure"] and one["sameSite"] == "Lax" for one in at_shop.values())
    assert not [one for one in fan.context.cookies(domains.room) if "pass" in one["name"]]

    thief = domains.fan(java_script_enabled=scripts)
    thief.goto(url)
    assert thief.url.startswith(f"{domains.room}/v1/events/aurora/room/?bind="), "a copied URL leads to the room"
    expect(thief.get_by_role("heading", name=PLACE)).to_be_visible()
    fan.goto(url)
    assert fan.url == domains.shop + WANTED, "its owner is in, and sees no hand-over in the address"

    if scripts:
        thief.get_by_role("button", name="Join").click()
        expect(thief.get_by_role("heading", name="You’re in the queue")).to_be_visible()
        fan.get_by_role("button", name="Leave").click()
        fan.wait_for_url(f"{domains.room}/**")
        thief.wait_for_url(f"{domains.shop}{WANTED}")  # the next in line is let in by itself
        expect(thief.get_by_role("heading", name=WELCOME)).to_be_visible()
        thief.get_by_role("button", name="Leave").click()
    else:
        given = at_shop["__Host-frontrow-pass-aurora"]["value"]
        ended = domains.served.client.post("/give-back", headers={"Frontrow-Pass": given})
        assert ended.json() == {"ended": True}


def test_this_browser_blocks_third_party_cookies(domains: Domains) -> None:
    """Without that the test above would show nothing."""
    page = domains.fan()
    page.evaluate(ASK, f"{domains.room}/probe")
    assert page.context.cookies(domains.room) == [], "asked from the other domain"
    page.evaluate(ASK, f"{domains.shop}/probe")
    assert [one["name"] for one in page.context.cookies(domains.shop)] == ["probe"], "asked from the own one"
