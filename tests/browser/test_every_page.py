"""Every page of fans is for everybody: axe-core finds nothing, nothing jumps, the console is clean, text reflows.

One walk on a phone and one on a desktop: each page is loaded under its real policy, then looked at in light, dark, with
forced colours and at 320 px, without being loaded again. A desktop is 1280 px wide in one scheme and 1920 in the other.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.looks import MOST_MOVED, SHIFTS, axe, axe_rules, bring_axe, console_of
from tests.browser.served import Site
from tests.browser.steps import settled
from tests.browser.tour import PARTS, STAYS, pages_of, put_all

PAGES = {"errors": 5, "plain": 19, "choosing": 9, "endings": 10, "signed in": 3}
WIDE = (1280, 1920)
LOOKED_AT: set[int] = set()  # by both walks, if they are of one process
# text that cannot be told from what is behind it, among what people must see, when the system chooses the colours
UNSEEN = """() => [...document.querySelectorAll("a, button, h1, h2, p, label, input, .chip")].filter((one) => {
  const style = getComputedStyle(one);
  return one.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && style.color === style.backgroundColor;
}).map((one) => one.outerHTML.slice(0, 120))"""  # noqa: E501


@pytest.fixture(scope="module")
def full_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("full"), put_all) as running:
        yield running


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("part", PARTS)
def test_every_page_is_for_everybody(profile: Any, full_site: Site, part: str, width: int) -> None:
    small = width < 500
    context = profile(width, 844 if small else 800, reduced_motion="reduce" if small else "no-preference")
    context.add_init_script(SHIFTS)
    context.add_init_script(STAYS)
    bring_axe(context)
    told = console_of(context)
    names, found = [], []
    for name, page in pages_of(part, context, full_site, f"ada{width}@example.org"):
        names.append(name)
        settled(page)
        if jumps(page):  # a busy machine may still be resizing from the page before: a real jump comes every time
            page.reload()
            settled(page)
        wrong = [*jumps(page), *told]
        wide = WIDE if len(names) % 2 else WIDE[::-1]  # one page in light at the one width, the next at the other
        for scheme, across in zip(("light", "dark"), (width, width) if small else wide, strict=True):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size({"width": across, "height": 844 if small else 800})
            settled(page)
            problems = axe(page, axe_rules(page, scheme, LOOKED_AT))
            wrong += [f"{scheme}, {across} px: {problem}" for problem in problems]
        page.emulate_media(color_scheme="light", forced_colors="active")
        wrong += [f"forced colours hide {one}" for one in page.evaluate(UNSEEN)]
        page.emulate_media(forced_colors="none")
        wrong += reflows(page, width) if small else []
        found += [f"{name} at {width}: {one}" for one in wrong]
        told.clear()
    assert len(set(names)) == PAGES[part], "pages are missing from the tour"
    assert not found, f"{len(found)}\n" + "\n".join(found)


def jumps(page: Page) -> list[str]:
    """What moved while the page came, and what moves although nobody wants it to."""
    moved = page.evaluate("window.moved || 0")
    busy = page.evaluate(
        "matchMedia('(prefers-reduced-motion: reduce)').matches ? document.getAnimations().map((one) => one.id) : []"
    )
    return [f"jumps by {moved}"] * (moved > MOST_MOVED) + [f"moves: {busy}"] * bool(busy)


def reflows(page: Page, width: int) -> list[str]:
    """Whether a page fits 320 px without scrolling sideways (WCAG 1.4.10)."""
    page.set_viewport_size({"width": 320, "height": 640})
    settled(page)
    wide = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size({"width": width, "height": 844})
    return [f"is {wide} px wide at 320"] * (wide > 320)
