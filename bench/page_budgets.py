"""What a page may weigh and take on a slow phone, and what the last `make bench-pages` says of it.

Bytes are those of a first visit without fonts, which all pages share, and without the event's picture. LCP, INP and CLS
are what Chromium reports on a phone whose CPU is four times slower, over slow 4G.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

PAGES: Final = {
    "event": "event",
    "events": "home",
    "seats": "seats",
    "checkout": "checkout",
    "going": "“You’re going!”",
    "tickets": "My tickets",
    "live": "organiser’s live sale",
}
MAX_BYTES: Final = {"seats": 72_000, "live": 160_000}  # a map, and charts
USUAL_MAX_BYTES: Final = 60_000
QUICKEST_MS: Final = 16  # Chromium tells of no interaction that took less
MAX_LCP_MS, MAX_INP_MS, MAX_CLS = 1_200, 200, 0.01


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure beside what it may be."""

    page: str
    name: str
    value: float
    most: float

    @property
    def met(self) -> bool:
        return self.value <= self.most

    @property
    def text(self) -> str:
        if self.name == "INP" and not self.value:
            return f"< {QUICKEST_MS}"
        exact = f"{self.value:.3f}" if self.name == "CLS" else f"{self.value:,.0f}"
        return exact if self.met else f"**{exact}, missed**"


def max_bytes(page: str) -> int:
    return MAX_BYTES.get(page, USUAL_MAX_BYTES)


def judged(pages: dict[str, dict[str, float]]) -> dict[str, list[Figure]]:
    """The figures of each page on the phone, in the order of the table."""
    found = {}
    for page in PAGES:
        row = pages[f"{page}, phone"]
        found[page] = [
            Figure(page, "bytes", row["total_bytes"], max_bytes(page)),
            Figure(page, "LCP", row["lcp_ms"], MAX_LCP_MS),
            Figure(page, "INP", row["inp_ms"], MAX_INP_MS),
            Figure(page, "CLS", row["shift"], MAX_CLS),
        ]
    return found


def missed(pages: dict[str, dict[str, float]]) -> Iterator[Figure]:
    return (figure for row in judged(pages).values() for figure in row if not figure.met)


def budget_table(pages: dict[str, dict[str, float]]) -> str:
    """The figures of docs/pages.md."""
    head = (
        "page, on a slow phone",
        "bytes without font and picture",
        "may have",
        f"LCP, ms (target {MAX_LCP_MS:,})",
        f"INP, ms (target {MAX_INP_MS})",
        f"CLS (target {MAX_CLS})",
        "",
    )
    lines = [head, ("---", *["---:"] * 5, "---")]
    for page, row in judged(pages).items():
        size, *others = (figure.text for figure in row)
        verdict = "met" if all(figure.met for figure in row) else "missed"
        lines.append((PAGES[page], size, f"{max_bytes(page):,}", *others, verdict))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def late_pages(pages: dict[str, dict[str, float]]) -> list[str]:
    """What fails the command: bytes and what moves. Times belong to a quiet machine and are only printed."""
    return [
        f"{figure.page}: {figure.name} {figure.value:g}, {figure.most:g} allowed"
        for figure in missed(pages)
        if figure.name in ("bytes", "CLS")
    ]


def acted(page: Any, name: str) -> None:
    """What somebody does on a page, for its INP; nothing leaves the page."""
    match name:
        case "event":
            page.get_by_role("link", name="Share").click()
        case "events":
            page.get_by_label("Artist, team, venue or city").press_sequentially("aurora", delay=60)
        case "seats":
            page.locator("#list button").first.tap()
            page.locator("#grid button:not([aria-disabled=true])").first.tap()
        case "checkout":
            page.locator("#email").press_sequentially("ada@example.org", delay=30)
            page.locator("#card").press_sequentially("4242424242424242", delay=30)
        case "going":
            page.get_by_role("link", name="Show full screen").tap()
            page.keyboard.press("Escape")
        case "live":
            page.get_by_role("radio", name="60 min").check(force=True)
        case _:
            for _ in range(3):
                page.keyboard.press("Tab")
