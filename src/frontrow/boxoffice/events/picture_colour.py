"""The colour of an event's picture: what pages, mails and tickets of the event are coloured with.

It is the colour that a picture is remembered by, made dark enough for white text. A grey picture has none.
"""

import colorsys
import io
from typing import Final, cast

from frontrow.shared.colours import LEAST_CONTRAST, contrast, mix

LEAST_COLOURFUL: Final = 0.12  # saturation times brightness; below it a colour counts as grey
COLOURS: Final = 12  # that a picture is reduced to, to find the one it is remembered by
READ_AT: Final = (150, 78)  # a large JPEG is unpacked no larger than it must be
STEP_PERCENT: Final = 2


def picture_colour(body: bytes) -> str:
    """The colour that a prepared picture is remembered by: colourful, and much of it. Empty for a grey picture."""
    from PIL import Image

    with Image.open(io.BytesIO(body)) as opened:
        opened.draft("RGB", READ_AT)
        few = opened.convert("RGB").resize((96, 50)).quantize(COLOURS, method=Image.Quantize.MEDIANCUT)
    palette, counted = few.getpalette() or [], cast("list[tuple[int, int]]", few.getcolors(COLOURS * 2) or [])
    best, most = "", 0.0
    for count, index in counted:
        red, green, blue = palette[3 * index : 3 * index + 3]
        _, saturation, value = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
        colourful = saturation * value
        score = colourful * colourful * count**0.5
        if colourful >= LEAST_COLOURFUL and score > most:
            best, most = f"#{red:02x}{green:02x}{blue:02x}", score
    return best


def deepened(colour: str) -> str:
    """The colour, as dark as white text on it needs; a colour that is found and not chosen may change so."""
    for percent in range(0, 101, STEP_PERCENT):
        deep = mix(colour, "#000000", percent)
        if contrast("#ffffff", deep) >= LEAST_CONTRAST:
            break
    return deep
