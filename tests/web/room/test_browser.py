"""The page in a real browser: a place bound to the browser's own key is worthless anywhere else (W1, W7, W9)."""

import json
from collections.abc import Iterator

import httpx
import jwt
import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.web.room.room_process import Served, wait_for

PLACE = "frontrow_place_aurora"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    room = Served(tmp_path_factory.mktemp("browser") / "room", capacity=100, shop_url="/healthz")
    yield room
    room.close()


def joined(page: Page, served: Served) -> str:
    """Join by the page while nobody is let in; the place it got."""
    page.goto(f"http://127.0.0.1:{served.port}/")
    page.click("#join button")
    page.wait_for_selector("#wait:visible", timeout=20_000)
    return next(str(cookie["value"]) for cookie in page.context.cookies() if cookie["name"] == PLACE)


def steer(served: Served, action: str) -> None:
    key = {"Authorization": "Bearer organiser-key-of-the-tests"}
    assert served.client.patch("/room", headers=key, json={"action": action}).status_code == 200


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_w1_a_place_copied_out_of_the_browser_is_worthless(browser: Browser, served: Served) -> None:
    steer(served, "pause")
    mine: BrowserContext = browser.new_context()
    page = mine.new_page()
    place = joined(page, served)
    assert len(jwt.decode(place, options={"verify_signature": False})["cnf"]["jkt"]) == 43
    told = page.evaluate("() => document.body.dataset.ath")
    assert len(told) == 43, "the page knows what its proof must name, not the place itself"
    steer(served, "queue_all")
    steer(served, "resume")
    wait_for(lambda: served.status(place)["state"] == "active" or bool(mine.pages[0].url.endswith("/healthz")))
    assert code_of(served.claim(place)) in ((401, "proof_invalid"), (409, "already_claimed"))
    thief = browser.new_context()  # another browser with the same cookie, another key
    thief.add_cookies([{"name": PLACE, "value": place, "url": f"http://127.0.0.1:{served.port}"}])
    stolen = thief.new_page()
    stolen.goto(f"http://127.0.0.1:{served.port}/")
    stolen.wait_for_selector("#bad:visible", timeout=20_000)
    assert "frontrow_pass" not in {cookie["name"] for cookie in thief.cookies()}
    page.wait_for_url("**/healthz", timeout=20_000)
    assert any("pass" in str(cookie["name"]) for cookie in mine.cookies()), "the browser that joined goes in by itself"


def test_a_browser_without_webcrypto_joins_and_goes_in_all_the_same(browser: Browser, served: Served) -> None:
    context = browser.new_context()
    context.add_init_script("Object.defineProperty(window.crypto, 'subtle', {value: undefined})")
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{served.port}/")
    page.click("#join button")
    page.wait_for_url("**/healthz", timeout=20_000)
    places = [str(cookie["value"]) for cookie in context.cookies() if cookie["name"] == PLACE]
    assert "cnf" not in jwt.decode(places[0], options={"verify_signature": False})


def test_an_old_window_makes_nobodys_position_worse(browser: Browser, served: Served) -> None:
    """F1: a server that is cut off from the store still serves the window that it saw last."""
    steer(served, "pause")
    page = browser.new_context().new_page()
    document = served.client.get("/now-serving").json()
    windows = [document | {"l": [[-99, hi]]} for hi in (-10, -50)]
    stream = "".join(f"event: now-serving\ndata: {json.dumps(window)}\n\n" for window in windows)
    page.route("**/stream", lambda route: route.fulfill(content_type="text/event-stream", body=stream))
    place = joined(page, served)
    page.wait_for_function("() => document.getElementById('ahead').textContent.trim()", timeout=20_000)
    number = served.status(place)["position"]
    assert page.inner_text("#ahead") == str(number + 9)
    page.context.close()
    steer(served, "resume")


def test_the_page_survives_flight_mode_and_goes_in_when_the_network_is_back(browser: Browser, served: Served) -> None:
    steer(served, "pause")
    context = browser.new_context()
    page = context.new_page()
    joined(page, served)
    before = page.inner_text("#ahead")
    context.set_offline(True)
    page.evaluate("() => dispatchEvent(new Event('online'))")  # a network that is there and leads nowhere
    page.wait_for_selector("#mode.bad", timeout=20_000)
    assert page.inner_text("#ahead") == before, "nobody's position gets worse by a lost network"
    steer(served, "resume")
    context.set_offline(False)
    page.wait_for_url("**/healthz", timeout=30_000)
    context.close()


def test_the_page_survives_a_phone_that_was_put_away(browser: Browser, served: Served) -> None:
    steer(served, "pause")
    context = browser.new_context()
    page = context.new_page()
    joined(page, served)
    life = context.new_cdp_session(page)
    life.send("Page.setWebLifecycleState", {"state": "frozen"})
    steer(served, "resume")  # the turn comes while the page sleeps
    life.send("Page.setWebLifecycleState", {"state": "active"})
    page.wait_for_url("**/healthz", timeout=30_000)
    context.close()


def test_a_stream_that_died_without_a_word_is_opened_anew(browser: Browser, served: Served) -> None:
    steer(served, "pause")
    context = browser.new_context()
    context.add_init_script(
        """(() => {
          const Real = EventSource;
          window.opened = 0;
          window.EventSource = class { // the first one never says anything, as after a sleep
            constructor(url) { if (window.opened++) return new Real(url); this.readyState = 1; }
            addEventListener() {}
            close() {}
          };
        })()"""
    )
    page = context.new_page()
    joined(page, served)
    steer(served, "resume")
    page.wait_for_function("() => window.opened === 1")
    page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")  # taken out of the pocket
    page.wait_for_url("**/healthz", timeout=30_000)
    context.close()


def test_a_turn_on_a_phone_without_page_notifications_still_goes_in(browser: Browser, served: Served) -> None:
    steer(served, "pause")
    context = browser.new_context()
    context.add_init_script(
        "window.Notification = class { static permission = 'granted'; constructor() { throw new TypeError(); } };"
    )
    page = context.new_page()
    joined(page, served)
    steer(served, "resume")
    page.wait_for_url("**/healthz", timeout=30_000)
    context.close()
