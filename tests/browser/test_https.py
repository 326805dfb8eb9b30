"""The shop behind deploy/'s nginx with TLS: a purchase by https, where every cookie is bound to this host."""

import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page

from tests.browser.served import Site, put_hall
from tests.browser.steps import EVENT_ID, choose, pay, until
from tests.support.nginx import DeployedNginx


@pytest.fixture(scope="module")
def secure_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose public address is nginx's, by https."""
    site = Site(tmp_path_factory.mktemp("https"), put_hall)
    nginx = DeployedNginx("upstream.conf", {"127.0.0.1:8000": f"127.0.0.1:{site.port}"}, https=True)
    site.url = nginx.url
    with site, nginx:
        yield site


def test_a_purchase_by_https_keeps_only_cookies_of_this_host(profile: Any, secure_site: Site) -> None:
    fan: Page = profile(ignore_https_errors=True).new_page()
    fan.goto(f"{secure_site.url}/language/en")
    fan.goto(f"{secure_site.url}/v1/events/{EVENT_ID}/room/")
    fan.get_by_role("button", name="Join the queue").click()
    fan.wait_for_url("**/seats")
    until(fan, "window.frontrow")
    choose(fan)
    fan.locator("#go").click()
    pay(fan)
    fan.wait_for_url("**/bookings/**")
    kept = fan.context.cookies()
    kinds = {cookie["name"].removeprefix("__Host-frontrow-").partition("-")[0] for cookie in kept}
    assert {"place", "from", "bookings", "lang"} <= kinds
    for cookie in kept:
        assert cookie["name"].startswith("__Host-frontrow-"), cookie["name"]
        assert (cookie["secure"], cookie["httpOnly"], cookie["path"]) == (True, True, "/")
    assert fan.evaluate("document.cookie") == ""
    fan.goto(f"{secure_site.url}/tickets")
    assert fan.locator("a[href*='/bookings/']").count() >= 1, "the browser remembers what it bought"


def test_guests_share_the_pages_of_an_event_and_nobody_gets_anothers(secure_site: Site) -> None:
    """N1: through deploy/'s nginx a crowd of guests costs the servers one page per second. A page that could be
    somebody's is never kept, and nothing that was counted for one caller is passed on."""
    paths = (f"/events/{EVENT_ID}", "/", f"/v1/events/{EVENT_ID}", f"/v1/events/{EVENT_ID}/room/now-serving")
    for path in paths:
        seen: set[str] = set()
        began_s = time.monotonic()
        for number in range(30):  # each from another browser
            answer = httpx.get(
                secure_site.url + path, verify=False, trust_env=False, headers={"user-agent": str(number)}
            )
            assert (answer.status_code, answer.headers.get("set-cookie")) == (200, None)
            assert not {"ratelimit", "ratelimit-policy", "x-request-id"} & answer.headers.keys()
            if path in ("/", f"/events/{EVENT_ID}"):
                seen |= set(re.findall(r'data-now="(\d+)"', answer.text))
        assert len(seen) <= 2 + time.monotonic() - began_s, "each guest was given a page of their own"
    with httpx.Client(base_url=secure_site.url, verify=False, trust_env=False) as known:
        known.cookies.set("__Host-frontrow-lang", "de")
        pages = [known.get(f"/events/{EVENT_ID}") for _ in range(2)]
    assert {page.headers["cache-control"] for page in pages} == {"private, no-store"}
    assert all('lang="de"' in page.text for page in pages)
    guest = httpx.get(f"{secure_site.url}/events/{EVENT_ID}", verify=False, trust_env=False)
    assert 'lang="en-GB"' in guest.text
