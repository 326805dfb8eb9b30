"""The pictures of a wallet pass: our own mark, a ticket, drawn in every size that phones ask for."""

import functools
import io
from typing import Final

BRAND: Final = (51, 64, 196)
ICON_SIDE: Final = 29
LOGO_SIDE: Final = 50
SCALES: Final = {"": 1, "@2x": 2, "@3x": 3}
_FINE: Final = 4  # drawn so much larger, then made small, so that edges are smooth
_GRID: Final = 24  # the mark's own units


@functools.cache
def pass_pictures() -> dict[str, bytes]:
    """The files of a pass: icon (on the brand's colour) and logo (white, for the pass itself), as PNG."""
    found = {}
    for end, scale in SCALES.items():
        found[f"icon{end}.png"] = _draw_mark(ICON_SIDE * scale, filled=True)
        found[f"logo{end}.png"] = _draw_mark(LOGO_SIDE * scale, filled=False)
    return found


def _draw_mark(side: int, *, filled: bool) -> bytes:
    from PIL import Image, ImageDraw  # not at the start of a server

    unit = side * _FINE / _GRID
    image = Image.new("RGBA", (side * _FINE, side * _FINE), (*BRAND, 255) if filled else (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    line, white = max(1, round(1.8 * unit)), (255, 255, 255, 255)
    left, top, right, bottom = 4.5 * unit, 7.4 * unit, 19.5 * unit, 16.6 * unit
    draw.rounded_rectangle((left, top, right, bottom), radius=1.6 * unit, outline=white, width=line)
    for step in range(3):
        start = (8.6 + 2.9 * step) * unit
        draw.line((14 * unit, start, 14 * unit, start + 1.5 * unit), fill=white, width=line)
    small = image.resize((side, side), Image.Resampling.LANCZOS)
    body = io.BytesIO()
    small.save(body, "PNG", optimize=True)
    return body.getvalue()
