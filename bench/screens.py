"""Pictures of the pages for the documents, light and dark, small and large: `python -m bench.screens [folder]`.

An arena that is half sold, other shows around it, and the tour of every page of fans (`tests.browser.tour`). All
of them go to bench/out/screens, those that documents show also to docs/img.
"""

import asyncio
import contextlib
import random
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from bench.measure import options
from bench.screens_gate import shoot_gate
from bench.show_times import evening_us
from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.holds.model.holds import SeatsTaken, ShopPass
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.core.clock import US_PER_S
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff
from tests.browser.steps import EVENT_ID, SHORT_ID, settled, until
from tests.browser.tour import PARTS, STAYS, pages_of, put_slow_money
from tests.support.chromium import launch

OUT = Path("bench/out/screens")
SEATS = 12_000
SOLD = 400  # bookings that were paid while the pictures are taken
CROWD = 3_000  # people who come to the organiser's live sale
DAY_US = 86_400 * US_PER_S
# name in the tour -> name of its picture in docs/img
SHOWN = {
    "events": "events",
    "event": "event",
    "event soon": "event-soon",
    "event sold_out": "sold-out",
    "room, in the draw": "room",
    "seats": "seats",
    "seats of a section": "seats-chosen",
    "checkout": "checkout",
    "tickets of a booking": "ticket",
    "my tickets": "tickets",
    "sign in": "sign-in",
    "not found": "not-found",
    "style guide": "style-guide",
}
OFFICE = {
    "office": "/organiser",
    "office-prices": f"/organiser/events/{EVENT_ID}/prices",
    "office-preview": "/organiser/events/evt_soon/preview",
    "live": f"/organiser/events/{EVENT_ID}/live",
    "reports": f"/organiser/events/{EVENT_ID}/reports",
    "bookings": f"/organiser/events/{EVENT_ID}/bookings",
    "team": "/organiser/team",
    "audit": "/organiser/audit",
}
COLOURS = 96  # a palette keeps the pictures small; k-means keeps rare colours, such as that of the lit seat
SIZES = {"wide": (1280, 800), "small": (390, 844), "large": (1920, 1080)}
LOOKS = [(size, scheme) for size in SIZES for scheme in ("light", "dark")]
KEPT = [("wide", "light"), ("small", "dark")]  # of each picture in docs/img


async def put_shows(platform: Platform) -> None:
    """What the tour expects, with names and halls that look like a season."""
    now_us = platform.clock()
    sold = frozenset(random.Random(5).sample(range(SEATS), SEATS * 45 // 100))
    starts = {"starts_at_us": evening_us(now_us, days=10)}
    await put_hall(platform, generate("arena", SEATS), withheld=sold, **starts)
    small = generate("theatre", 400)
    opens_us = now_us + DAY_US + 7_384 * US_PER_S
    all_seats = frozenset(range(400))
    await put_hall(
        platform, small, id="evt_soon", name="Harbour City v Northgate", sale_starts_at_us=opens_us, **starts
    )
    await put_hall(platform, small, id="evt_paused", name="Late Night Comedy Gala", paused=True, **starts)
    await put_hall(platform, small, id="evt_sold_out", name="Winter Philharmonic", withheld=all_seats, **starts)
    await put_hall(platform, small, id="evt_cancelled", name="Open Air", status=EventStatus.CANCELLED, **starts)
    later_us = evening_us(now_us, days=30)
    await put_hall(platform, small, id=SHORT_ID, name="The Quick and the Slow", hold_ttl_s=2, starts_at_us=later_us)
    await put_slow_money(platform, plan=small, starts_at_us=evening_us(now_us, days=60))


async def hold_some(platform: Platform) -> None:
    """Other people's holds, for the rings on the map."""
    ids = platform.box_office.sales.get(EVENT_ID).plan.seat_ids
    states = platform.box_office.feeds[EVENT_ID].ring.states
    free = [seat for seat in random.Random(7).sample(range(SEATS), 600) if states[seat] == 0]
    for number, seat in enumerate(free[:250]):
        visit = ShopPass(EVENT_ID, f"place:{number}", platform.clock() + 600 * US_PER_S, f"pass{number}")
        await platform.box_office.holds.place(EVENT_ID, visit, [ids[seat]])


async def sell_some(platform: Platform) -> None:
    """A sale in progress: bookings that are paid for, in every price."""
    ids = platform.box_office.sales.get(EVENT_ID).plan.seat_ids
    states = platform.box_office.feeds[EVENT_ID].ring.states
    free = [seat for seat in random.Random(11).sample(range(SEATS), 2_000) if states[seat] == 0]
    for number, seat in enumerate(free[:SOLD]):
        visit = ShopPass(EVENT_ID, f"buyer:{number}", platform.clock() + 600 * US_PER_S, f"paid{number}")
        with contextlib.suppress(SeatsTaken):  # held a moment ago: the map does not show it yet
            held = await platform.box_office.holds.place(EVENT_ID, visit, [ids[seat]])
            await platform.box_office.checkout.pay(held.booking_id, held.fence, "pm_card_visa")


async def bring_crowd(platform: Platform) -> None:
    """People in line, who are let in a few at a time."""
    await platform.room.service.control.set_rate(EVENT_ID, 4, 4)
    for _ in range(CROWD // 500):
        await asyncio.gather(*(platform.room.service.joins.join(EVENT_ID) for _ in range(500)))


class Shoot:
    """Takes a small picture of a page as it is now."""

    def __init__(self, page: Page, folder: Path, ending: str) -> None:
        self._page, self._folder, self._ending = page, folder, ending

    def __call__(self, name: str) -> Path:
        path = self._folder / f"{name}-{self._ending}.png"
        settled(self._page)
        self._page.screenshot(path=str(path))
        Image.open(path).convert("RGB").quantize(COLOURS, kmeans=1, dither=Image.Dither.NONE).save(path, optimize=True)
        return path


def shoot_office(page: Page, site: Site, shoot: Shoot) -> None:
    """The organiser's pages."""
    staff(page, site)
    for name, path in OFFICE.items():
        page.goto(site.url + path)
        if name == "live":  # its stream never ends
            until(page, "window.live?.charts.points.length > 2 && document.querySelector('.heat path[data-full]')")
        shoot(name)


def shoot_all(browser: Browser, site: Site, folder: Path) -> None:
    """Every page in every look, each part of the tour by a browser that has seen nothing yet. The crowd comes after the
    fans' pages: whoever takes those would have to wait behind it."""
    for part in (*PARTS, "office"):
        if part == "office":
            site.call(bring_crowd)
        for size, scheme in LOOKS:
            width, height = SIZES[size]
            ending = f"{size}-{scheme}"
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
            context.set_default_timeout(60_000)
            context.add_init_script(STAYS)
            kept = (size, scheme) in KEPT
            if part == "office":
                page = context.new_page()
                shoot_office(page, site, Shoot(page, folder if kept else OUT, ending))
            else:
                for number, (name, page) in enumerate(pages_of(part, context, site, f"{ending}@example.org")):
                    plain = name.replace(" ", "-").replace(",", "")
                    made = Shoot(page, OUT, ending)(f"{part}-{number:02d}-{plain}")
                    if kept and name in SHOWN:
                        shutil.copy(made, folder / f"{SHOWN[name]}-{ending}.png")
            context.close()


def main() -> None:
    arguments = options(__doc__)
    arguments.add_argument("folder", nargs="?", type=Path, default=Path("docs/img"), help="(default: %(default)s)")
    arguments.add_argument("--all", action="store_true", help="the gate's pages in every look")
    chosen = arguments.parse_args()
    folder: Path = chosen.folder
    for one in (folder, OUT):
        one.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as kept, Site(Path(kept), put_shows) as site, sync_playwright() as tools:
        site.call(hold_some)
        site.call(sell_some)
        browser = launch(tools.chromium)
        shoot_all(browser, site, folder)
        looks = LOOKS if chosen.all else KEPT
        shoot_gate(browser, site, looks, SIZES, lambda page, ending: Shoot(page, folder, ending))
        browser.close()
    print(f"{len(list(OUT.glob('*.png')))} pictures in {OUT}, {len(SHOWN) * len(KEPT)} of them in {folder}")


if __name__ == "__main__":
    main()
