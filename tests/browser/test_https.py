"""The shop behind deploy/'s nginx with TLS: a purchase by https, where every cookie is bound to this host."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.served import Site, put_hall
from tests.browser.steps import choose, pay, walk_in
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
    walk_in(fan, secure_site)
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
