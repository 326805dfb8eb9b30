"""What axe-core says of a page, and how the walks through the pages ask it."""

from pathlib import Path

from playwright.sync_api import Page

AXE = (Path(__file__).parents[1] / "node" / "node_modules" / "axe-core" / "axe.min.js").read_text()
COLOURS = ["color-contrast", "link-in-text-block", "target-size"]  # all that a colour scheme can change, and one more
RUN = "(only) => axe.run(document, { resultTypes: ['violations'], ...(only.length && { runOnly: only }) })"


def axe_rules(scheme: str) -> list[str]:
    """All rules in light; in dark those that colours can break, for time's sake."""
    return [] if scheme == "light" else COLOURS


def axe(page: Page, only: list[str]) -> list[str]:
    """What axe-core finds wrong with a page as it is now, by all its rules or `only` some."""
    return [
        f"{one['id']} {one['nodes'][0]['html'][:150]} {one['nodes'][0]['failureSummary'][:200]}"
        for one in page.evaluate(RUN, only)["violations"]
    ]
