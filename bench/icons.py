"""The app's icons from `icon.svg`, in the sizes phones ask for: `python -m bench.icons`. Needs Chromium.

The mark sits in the middle 60 % on the brand's colour to the edge, so that a phone may cut any shape out of it.
"""

import io
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import frontrow.web
from bench.measure import options
from frontrow.web.site.gate.pages import ICONS
from tests.support.chromium import launch

STATIC = Path(frontrow.web.__file__).parent / "static"
MARK_PERCENT = 76  # of the side: the round corners of the drawing lie outside the safe circle's colour anyway
COLOURS = 32


def main() -> None:
    options(__doc__).parse_args()
    drawing = (STATIC / "img" / "icon.svg").read_text()
    with sync_playwright() as tools:
        browser = launch(tools.chromium)
        for side, path in ICONS.items():
            page = browser.new_page(viewport={"width": side, "height": side})
            mark = f"svg {{ width: {MARK_PERCENT}% }}"
            page.set_content(
                f"<style>html, body {{ margin: 0; height: 100% }} body {{ display: grid; place-items: center;"
                f" background: #9a1750 }} {mark}</style>{drawing}"
            )
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            picture.quantize(COLOURS, dither=Image.Dither.NONE).save(STATIC / path, optimize=True)
            print(path, (STATIC / path).stat().st_size, "bytes")
        browser.close()


if __name__ == "__main__":
    main()
