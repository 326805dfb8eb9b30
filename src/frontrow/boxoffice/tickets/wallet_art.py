"""The pictures of a wallet pass in every size that phones ask for: the seller's logo, or our own mark, a ticket."""

import functools
import io
from typing import TYPE_CHECKING, Final, TypeAlias

from frontrow.boxoffice.organiser.model.brands import OUR_LOOK, TicketLook
from frontrow.shared.colours import parts_of

if TYPE_CHECKING:
    from PIL.Image import Image

Colour: TypeAlias = tuple[int, int, int]
BRAND: Final[Colour] = (51, 64, 196)
WHITE: Final[Colour] = (255, 255, 255)
LOGO_WIDTH: Final = 160
ICON_SIDE: Final = 29
LOGO_SIDE: Final = 50
SCALES: Final = {"": 1, "@2x": 2, "@3x": 3}
_FINE: Final = 4  # drawn so much larger, then made small, so that edges are smooth
_GRID: Final = 24  # the mark's own units


@functools.lru_cache(maxsize=64)
def pass_pictures(look: TicketLook = OUR_LOOK) -> dict[str, bytes]:
    """The files of a pass: an icon on the colour of who sells, and a logo: theirs, or our mark in the text's colour."""
    fill = parts_of(look.fill) if look.fill else BRAND
    ink = parts_of(look.ink) if look.ink else WHITE
    found = {}
    for end, scale in SCALES.items():
        found[f"icon{end}.png"] = _draw_mark(ICON_SIDE * scale, ink, fill)
        logo = _fit_logo(look.logo, scale) if look.logo else _draw_mark(LOGO_SIDE * scale, ink, None)
        found[f"logo{end}.png"] = logo
    return found


def _fit_logo(body: bytes, scale: int) -> bytes:
    """A logo on a white plate, because it was made for paper, in the room that a pass has for it."""
    from PIL import Image

    width, height = LOGO_WIDTH * scale, LOGO_SIDE * scale
    edge = 4 * scale
    with Image.open(io.BytesIO(body)) as opened:
        logo = opened.convert("RGBA")
    logo.thumbnail((width - 2 * edge, height - 2 * edge), Image.Resampling.LANCZOS)
    plate = Image.new("RGBA", (logo.width + 2 * edge, height), (255, 255, 255, 255))
    plate.alpha_composite(logo, (edge, (height - logo.height) // 2))
    return _as_png(plate)


def _draw_mark(side: int, ink: Colour, fill: Colour | None) -> bytes:
    from PIL import Image, ImageDraw  # not at the start of a server

    unit = side * _FINE / _GRID
    image = Image.new("RGBA", (side * _FINE, side * _FINE), (*fill, 255) if fill else (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    line = max(1, round(1.8 * unit))
    left, top, right, bottom = 4.5 * unit, 7.4 * unit, 19.5 * unit, 16.6 * unit
    draw.rounded_rectangle((left, top, right, bottom), radius=1.6 * unit, outline=(*ink, 255), width=line)
    for step in range(3):
        start = (8.6 + 2.9 * step) * unit
        draw.line((14 * unit, start, 14 * unit, start + 1.5 * unit), fill=(*ink, 255), width=line)
    return _as_png(image.resize((side, side), Image.Resampling.LANCZOS))


def _as_png(image: "Image") -> bytes:
    body = io.BytesIO()
    image.save(body, "PNG", optimize=True)
    return body.getvalue()
