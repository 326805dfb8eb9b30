"""Pictures of the gate for the documents: a phone's camera that sees a ticket, let in and shown a second time."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from playwright.sync_api import Browser, Page

from frontrow.app.wiring import Platform
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.core.clock import US_PER_S
from tests.browser.gates import CAMERA, buy, film, open_gate, scan
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff
from tests.browser.steps import until
from tests.support.chromium import launch

TONIGHT = "evt_tonight"
Shooting = Callable[[Page, str], Callable[[str], object]]


async def put_tonight(platform: Platform) -> None:
    starts_us = platform.clock() + 3600 * US_PER_S
    small = generate("theatre", 400)
    await put_hall(
        platform, small, id=TONIGHT, name="Harbour Lights", starts_at_us=starts_us, sale_ends_at_us=starts_us
    )
    await platform.box_office.openings.refresh()


def shoot_gate(
    browser: Browser,
    site: Site,
    looks: Sequence[tuple[str, str]],
    sizes: dict[str, tuple[int, int]],
    shooting: Shooting,
) -> None:
    """Each look with a ticket of its own; `shooting(page, ending)` takes the pictures."""
    site.call(put_tonight)
    for size, scheme in looks:
        tickets = buy(site, 3, TONIGHT)
        with tempfile.TemporaryDirectory() as folder:
            film(Path(folder) / "ticket.y4m", tickets[0].code)
            args = [*CAMERA, f"--use-file-for-fake-video-capture={folder}/ticket.y4m"]
            watching = launch(browser.browser_type, args=args)
            width, height = sizes[size]
            page = watching.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
            page.context.grant_permissions(["camera"])
            staff(page, site, role="door")
            shoot = shooting(page, f"{size}-{scheme}")
            page.goto(f"{site.url}/door")
            shoot("gate-shows")
            open_gate(page, site, event_id=TONIGHT)
            until(page, "() => document.querySelector('#verdict').dataset.verdict")
            page.wait_for_timeout(400)
            shoot("gate")
            scan(page, tickets[1].code, "ok")
            scan(page, tickets[0].code, "duplicate")
            page.wait_for_timeout(400)
            shoot("gate-used")
            watching.close()
