"""Pictures of the pages for the documents, light and dark, small and large: `python -m bench.screens [folder]`.

An arena that is half sold, three other shows around it, a fan who waits, chooses, pays and has a ticket.
"""

import random
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from frontrow.bootstrap import Platform
from frontrow.boxoffice.model.attempts import ShopPass
from frontrow.boxoffice.plans.generate import generate
from frontrow.core.clock import US_PER_S
from tests.browser.conftest import ARGS, chromium
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff
from tests.browser.steps import EVENT_ID, pay, until

SEATS = 12_000
DAY_US = 86_400 * US_PER_S
ENDS = {
    "sold-out": "/events/evt_winter2",
    "sign-in": "/sign-in",
    "not-found": "/nowhere",
    "style-guide": "/style-guide",
}
OFFICE = {
    "office": "/organiser",
    "office-prices": f"/organiser/events/{EVENT_ID}/prices",
    "office-preview": "/organiser/events/evt_harbour/preview",
    "live": f"/organiser/events/{EVENT_ID}/live",
    "bookings": f"/organiser/events/{EVENT_ID}/bookings",
    "team": "/organiser/team",
    "audit": "/organiser/audit",
}
COLOURS = 96  # a palette keeps the pictures small
SIZES = {"wide": (1280, 800), "small": (390, 844)}
LOOKS = [(size, scheme) for size in SIZES for scheme in ("light", "dark")]
KEPT = [("wide", "light"), ("small", "dark")]  # in docs/img; `--all` makes all four


async def put_shows(platform: Platform) -> None:
    now_us = platform.clock()
    plan = generate("arena", SEATS)
    sold = random.Random(5).sample(range(SEATS), SEATS * 45 // 100)
    await put_hall(platform, plan, withheld=frozenset(sold), description="The northern lights, on a stage.")
    small = generate("theatre", 400)
    opens_us = now_us + DAY_US + 7_384 * US_PER_S
    await put_hall(platform, small, id="evt_harbour", name="Harbour City v Northgate", sale_starts_at_us=opens_us)
    everything = frozenset(range(400))
    await put_hall(platform, small, id="evt_winter2", name="Winter Philharmonic", withheld=everything)
    await put_hall(platform, small, id="evt_comedy", name="Late Night Comedy Gala", starts_at_us=now_us + 30 * DAY_US)


async def hold_some(platform: Platform) -> None:
    """Other people's holds, for the rings on the map."""
    ids = platform.sales.get(EVENT_ID).plan.seat_ids
    states = platform.feeds[EVENT_ID].ring.states
    free = [seat for seat in random.Random(7).sample(range(SEATS), 600) if states[seat] == 0]
    for number, seat in enumerate(free[:250]):
        visit = ShopPass(EVENT_ID, f"place:{number}", platform.clock() + 600 * US_PER_S, f"pass{number}")
        await platform.holds.place(EVENT_ID, visit, [ids[seat]])


def walk(page: Page, site: Site, shoot: "Shoot") -> None:
    """Through the site as a fan goes."""
    page.goto(site.url)
    shoot("events")
    page.goto(f"{site.url}/events/evt_harbour")
    shoot("event-soon")
    page.goto(f"{site.url}/events/{EVENT_ID}")
    shoot("event")
    page.goto(f"{site.url}/v1/events/evt_harbour/room/")
    page.get_by_role("button", name="Join the line").click()
    page.wait_for_selector("#wait:not([hidden])")
    shoot("room")
    page.goto(f"{site.url}/v1/events/{EVENT_ID}/room/")
    page.get_by_role("button", name="Join the line").click()
    page.wait_for_url("**/seats")
    until(page, "window.frontrow")
    page.wait_for_timeout(400)
    shoot("seats")
    page.evaluate("window.frontrow.open(window.frontrow.model.sections.findIndex((one) => one.id === '107'))")
    page.wait_for_timeout(700)
    for _ in range(2):
        page.locator("#grid button:not([aria-disabled=true]):not([aria-selected=true])").nth(2).click()
    page.wait_for_timeout(200)
    shoot("seats-chosen")
    page.locator("#go").click()
    page.wait_for_url("**/checkout/**")
    shoot("checkout")
    pay(page)
    page.wait_for_url("**/bookings/**")
    page.wait_for_timeout(300)
    shoot("ticket")
    page.goto(f"{site.url}/tickets")
    shoot("tickets")
    for name, path in ENDS.items():
        page.goto(site.url + path)
        shoot(name)


def walk_office(page: Page, site: Site, shoot: "Shoot") -> None:
    """Through the site as an organiser goes."""
    staff(page, site)
    for name, path in OFFICE.items():
        page.goto(site.url + path)
        if name == "live":  # whose stream never ends
            until(page, "window.live?.charts.points.length > 2 && document.querySelector('.heat path[data-full]')")
        else:
            page.wait_for_load_state("networkidle")
        shoot(name)


class Shoot:
    """Takes a small picture of a page as it is now."""

    def __init__(self, page: Page, folder: Path, ending: str) -> None:
        self._page, self._folder, self._ending = page, folder, ending

    def __call__(self, name: str) -> None:
        path = self._folder / f"{name}-{self._ending}.png"
        self._page.screenshot(path=str(path))
        Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def shoot_all(browser: Browser, site: Site, folder: Path) -> None:
    for size, scheme in LOOKS if "--all" in sys.argv else KEPT:
        width, height = SIZES[size]
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
        page = context.new_page()
        walk(page, site, Shoot(page, folder, f"{size}-{scheme}"))
        walk_office(page, site, Shoot(page, folder, f"{size}-{scheme}"))
        context.close()


def main() -> None:
    folder = Path(next((one for one in sys.argv[1:] if not one.startswith("-")), "docs/img"))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as kept, Site(Path(kept), put_shows) as site, sync_playwright() as tools:
        site.call(hold_some)
        browser = tools.chromium.launch(executable_path=chromium(), args=ARGS)
        shoot_all(browser, site, folder)
        browser.close()
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")


if __name__ == "__main__":
    main()
