"""What axe-core says of a page, and how the walks through the pages ask it."""

from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page

from tests.browser.steps import settled

_AXE = (Path(__file__).parents[1] / "node" / "node_modules" / "axe-core" / "axe.min.js").read_text()
_BRING_AXE = "window.bringAxe = function () { if (!window.axe) {" + _AXE + "} };"
COLOURS = ["color-contrast", "link-in-text-block", "target-size"]  # all that a colour scheme can change, and one more
MOST_MOVED = 0.01
SHIFTS = """new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) window.moved = (window.moved || 0) + e.value; }).observe({ type: "layout-shift", buffered: true })"""  # noqa: E501
RUN = """(only) => {
  window.bringAxe();
  const quick = { resultTypes: ["violations"], preload: { assets: ["media"] } };  // no rule of ours reads style sheets
  return axe.run(document, { ...quick, ...(only.length && { runOnly: only }) }).then(({ violations }) => violations.map(
    ({ id, nodes: [first] }) => `${id} ${first.html.slice(0, 150)} ${first.failureSummary.slice(0, 200)}`));
}"""
# a number for the elements that are shown, each with its attributes, and for their text
SHOWN = """() => {
  const all = [...document.querySelectorAll("body, body *")].filter((one) => one.checkVisibility());
  let sum = 7;
  for (const one of [...all.map((one) => one.cloneNode(false).outerHTML), document.body.innerText])
    for (let i = 0; i < one.length; i++) sum = (sum * 31 + one.charCodeAt(i)) % 4503599627370449;
  return sum;
}"""


def bring_axe(context: BrowserContext) -> None:
    """Every page of this profile can be looked at with axe-core; it is sent to the browser once, not for each page."""
    context.add_init_script(_BRING_AXE)


def axe_rules(page: Page, scheme: str, known: set[int]) -> list[str]:
    """All rules in light, unless the same elements were looked at before, for example at another width; otherwise, for
    time's sake, those that colours and sizes can break."""
    if scheme == "dark":
        return COLOURS
    shown = page.evaluate(SHOWN)
    if shown in known:
        return COLOURS
    known.add(shown)
    return []


def axe(page: Page, only: list[str]) -> list[str]:
    """What axe-core finds wrong with a page as it is now, by all its rules or `only` some."""
    if not page.evaluate("'bringAxe' in window"):
        page.evaluate(_BRING_AXE)
    found: list[str] = page.evaluate(RUN, only)
    return found


def read_booking_view(page: Page, name: str) -> list[str]:
    """What is wrong with a page as it is now, in both schemes, on a phone, on desktops of two widths, and at 320 px."""
    found, known = list[str](), set[int]()
    for scheme, widths in (("light", (390, 1280)), ("dark", (390, 1920))):
        for width in widths:
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size({"width": width, "height": 844 if width < 500 else 800})
            settled(page)
            found += [f"{name} {scheme} {width}: {problem}" for problem in axe(page, axe_rules(page, scheme, known))]
    page.set_viewport_size({"width": 320, "height": 640})
    wide = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size({"width": 1280, "height": 800})
    return [*found, f"{name} is {wide} px wide at 320"] if wide > 320 else found


def console_of(context: BrowserContext) -> list[str]:
    """What the console will say, except for the pages' own 4xx and 5xx answers."""
    told: list[str] = []

    def heard(message: Any) -> None:
        if message.type in ("error", "warning") and "the server responded with a status of" not in message.text:
            told.append(message.text)

    context.on("console", heard)
    context.on("weberror", lambda error: told.append(str(error.error)))
    return told
