"""Colours as `#rrggbb`: how well one can be read on another (WCAG 2.2), and mixtures of two."""

import re
from typing import Final

LEAST_CONTRAST: Final = 4.5  # of text on what is behind it, level AA
HEX: Final = re.compile(r"#(?:[0-9a-f]{3}|[0-9a-f]{6})", re.IGNORECASE | re.ASCII)


def parts_of(colour: str) -> tuple[int, int, int]:
    """Red, green and blue from 0 to 255, of `#rgb` or `#rrggbb`."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    red, green, blue = (int(digits[place : place + 2], 16) for place in (0, 2, 4))
    return red, green, blue


def contrast(one: str, other: str) -> float:
    """From 1 (the same) to 21 (black on white)."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """WCAG's relative luminance."""
    parts = [part / 255 for part in parts_of(colour)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def mix(colour: str, other: str, percent: int) -> str:
    """The colour with this much of the other in it."""
    pairs = zip(parts_of(colour), parts_of(other), strict=True)
    return "#" + "".join(f"{round((one * (100 - percent) + two * percent) / 100):02x}" for one, two in pairs)
