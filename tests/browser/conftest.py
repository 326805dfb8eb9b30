"""One small site for the browser tests of a file; each test has a fresh profile in the Chromium of its process."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from frontrow.app.wiring import Platform
from tests.browser.served import PATIENT_ROOM, Site, put_hall
from tests.browser.staff import staff
from tests.browser.steps import SHORT_ID

WAIT_MS = 45_000  # nobody waits that long unless something is broken or the machine is very busy
expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    async def put(platform: Platform) -> None:
        await put_hall(platform)
        await put_hall(platform, id=SHORT_ID, name="A short hold", hold_ttl_s=2)

    with Site(tmp_path_factory.mktemp("site"), put, room=PATIENT_ROOM) as running:
        yield running


@pytest.fixture
def profile(browser: Browser) -> Iterator[Any]:
    """Makes browser profiles: `profile(width=390, height=844, color_scheme="dark", …)`."""
    made: list[BrowserContext] = []

    def make(width: int = 1280, height: int = 800, **more: Any) -> BrowserContext:
        context = browser.new_context(viewport={"width": width, "height": height}, **more)
        context.set_default_timeout(WAIT_MS)
        made.append(context)
        return context

    yield make
    for context in made:
        context.close()


@pytest.fixture
def fan(profile: Any) -> Page:
    page: Page = profile().new_page()
    return page


@pytest.fixture
def gate_page(profile: Any, site: Site) -> Page:
    """A phone at the gate, in the hands of a gatekeeper."""
    page: Page = profile(390, 844).new_page()
    staff(page, site, role="door")
    return page
