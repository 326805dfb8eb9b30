"""A short animated picture of a sale, from real pages while simulated fans buy: `python -m bench.film [file]`.

One browser waits behind a crowd, is let in, sees the arena sell out under its eyes, takes two seats, pays and has its
tickets. Everybody else is simulated: they hold and pay through the same services, some of them change their mind.
"""

import asyncio
import io
import itertools
import random
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from bench.measure import options
from bench.show_times import evening_us
from frontrow.app.wiring import Platform
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.holds.model.requested_seats import Wish
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError
from tests.browser.served import Site, put_hall
from tests.browser.steps import EVENT_ID, fill_card_form, landed, settled, until
from tests.support.chromium import launch

FILM = Path("docs/img/sale.webp")
SEATS, CROWD = 9_000, 30_000
WIDTH, HEIGHT, SHOWN_WIDTH = 1180, 740, 800
MAX_BYTES = 1_500_000
A_TICK = 320  # people who try at once
AHEAD = "Number((document.querySelector('#ahead')?.textContent ?? '0').replace(/\\D/g, ''))"
numbers = itertools.count()


async def put(platform: Platform) -> None:
    await put_hall(platform, generate("arena", SEATS), starts_at_us=evening_us(platform.clock(), days=10))


async def crowd_comes(platform: Platform) -> None:
    """Everybody who is earlier than the one we watch."""
    await platform.room.service.control.pause(EVENT_ID)
    for _ in range(CROWD // 500):
        await asyncio.gather(*(platform.room.service.joins.join(EVENT_ID) for _ in range(500)))


async def crowd_buys(platform: Platform) -> None:
    """A moment of the sale: people want two or three together, most pay, some hesitate, some give up."""
    chance = random.Random(next(numbers))

    async def one() -> None:
        number = next(numbers)
        visit = ShopPass(EVENT_ID, f"place:crowd{number}", platform.clock() + 600 * US_PER_S, f"crowd{number}")
        try:
            sections = (chance.choice(platform.box_office.sales.get(EVENT_ID).plan.sections).id,)
            made = await platform.box_office.holds.place_best(
                EVENT_ID, visit, Wish(chance.choice((1, 2, 2, 3, 4)), sections)
            )
            if chance.random() < 0.75:
                await platform.box_office.checkout.pay(made.booking_id, made.fence, "pm_card_visa")
            elif chance.random() < 0.2:
                await platform.box_office.holds.held.release(made.booking_id, made.fence)
        except FrontrowError:
            pass  # somebody was faster

    await asyncio.gather(*(one() for _ in range(A_TICK)))


class Film:
    """Frames with how long each is shown."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.frames: list[tuple[Image.Image, int]] = []

    def take(self, shown_ms: int) -> None:
        settled(self._page)
        picture = Image.open(io.BytesIO(self._page.screenshot())).convert("RGB")
        size = (SHOWN_WIDTH, HEIGHT * SHOWN_WIDTH // WIDTH)
        self.frames.append((picture.resize(size, Image.Resampling.LANCZOS), shown_ms))

    def save(self, path: Path) -> int:
        """As WebP, in the best quality that fits; the number of bytes."""
        first, *others = (frame for frame, _ in self.frames)
        times = [shown_ms for _, shown_ms in self.frames]
        for quality in (80, 65, 50, 35, 20):
            first.save(
                path,
                save_all=True,
                append_images=others,
                duration=times,
                loop=0,
                quality=quality,
                method=6,
                minimize_size=True,
            )
            if path.stat().st_size <= MAX_BYTES:
                break
        return path.stat().st_size


def waits(page: Page, site: Site, film: Film) -> None:
    """Behind the crowd; the number falls until it is our turn."""
    site.call(crowd_comes)
    page.goto(f"{site.url}/v1/events/{EVENT_ID}/room/")
    page.get_by_role("button", name="Join the queue").click()
    page.wait_for_selector("#wait:not([hidden])")
    film.take(1500)
    site.call(lambda platform: platform.room.service.control.resume(EVENT_ID))
    for _ in range(9):
        before = page.evaluate(AHEAD)
        if not page.url.endswith("/seats"):
            film.take(450)
        page.wait_for_function(f"(before) => /seats$/.test(location.pathname) || {AHEAD} < before * 0.78", arg=before)


def chooses(page: Page, site: Site, film: Film) -> None:
    """The map sells out while we look; we take two seats in time."""
    page.wait_for_url("**/seats")
    until(page, "window.frontrow")
    film.take(900)
    for _ in range(9):
        buys(page, site, film, 280)
    section = page.evaluate(
        "() => { const { sections } = window.frontrow.model, free = sections.map((one) => (one.area ? 0 : one.free));"
        " const most = Math.max(...free); return sections.findIndex((one) => !one.area && one.free === most); }"
    )
    page.evaluate("(s) => window.frontrow.open(s)", section)
    landed(page)
    film.take(600)
    for _ in range(3):
        buys(page, site, film, 300)
    for _ in range(2):
        page.locator("#grid button:not([aria-disabled=true]):not([aria-selected=true])").nth(1).click()
        film.take(500)
    film.take(600)


def buys(page: Page, site: Site, film: Film, shown_ms: int) -> None:
    seq = page.evaluate("window.frontrow.model.seq")
    site.call(crowd_buys)
    until(page, "(seq) => window.frontrow.model.seq > seq", seq)
    film.take(shown_ms)


def main() -> None:
    arguments = options(__doc__)
    arguments.add_argument("file", nargs="?", type=Path, default=FILM, help="(default: %(default)s)")
    path: Path = arguments.parse_args().file
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as kept, Site(Path(kept), put) as site, sync_playwright() as tools:
        browser = launch(tools.chromium)
        page = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light").new_page()
        page.set_default_timeout(60_000)
        film = Film(page)
        waits(page, site, film)
        chooses(page, site, film)
        page.locator("#go").click()
        page.wait_for_url("**/checkout/**")
        film.take(700)
        page.get_by_label("Name").fill("Ada Lovelace")
        page.get_by_label("Email for your tickets").fill("ada@example.org")
        fill_card_form(page, "4242 4242 4242 4242")
        film.take(1000)
        page.locator("#pay #go").click()
        page.wait_for_selector(".ticket")
        film.take(2500)
        browser.close()
    size = film.save(path)
    print(f"{path}: {len(film.frames)} frames, {size / 1000:,.0f} KB")


if __name__ == "__main__":
    main()
