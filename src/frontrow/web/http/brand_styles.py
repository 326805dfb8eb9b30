"""How the pages about an event are coloured: a small style sheet of shades of one colour, and the seller's logo.

A style follows from the colour and the site's own colours alone, so its address names the colour and the hash of the
style. Nothing is looked up to serve it, and it never changes. Pages about an event have the class
`branded`; the rest of the site keeps its own colours.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from frontrow.boxoffice.organiser.model.brands import Brand, Logo, Paper, Shades, shades_of
from frontrow.settings.colours import site_colours

MAX_CACHED: Final = 500
HASH_BYTES: Final = 6


class BrandStyle(msgspec.Struct, frozen=True):
    """The style of one colour: where it is served, its rules, and the shades in them."""

    url: str
    rules: str  # without a selector
    light: Shades
    dark: Shades

    @property
    def css(self) -> str:
        return f".branded{{{self.rules}}}"

    @property
    def inline_css(self) -> str:
        """For a page that has its whole style in itself."""
        return f":root{{{self.rules}}}"


class ShownBrand(msgspec.Struct, frozen=True):
    """The brand as templates see it."""

    name: str
    style: BrandStyle | None
    logo: Logo | None


@lru_cache(MAX_CACHED)
def brand_style(colour: str, colours: Sequence[str]) -> BrandStyle:
    """The style of a brand's colour (`#rrggbb`) on a site with these colours (`room.colours`)."""
    site = site_colours(colours)
    light, dark = (shades_of(colour, Paper(site["bg"][scheme], site["surface"][scheme])) for scheme in (0, 1))
    pairs = zip(_rules(light), _rules(dark), strict=True)
    rules = ";".join(f"--{name}:{_in_both(one, other)}" for (name, one), (_, other) in pairs)
    mark = hashlib.blake2b(rules.encode(), digest_size=HASH_BYTES).hexdigest()
    return BrandStyle(f"/brands/{colour[1:]}-{mark}.css", rules, light, dark)


def _in_both(light: str, dark: str) -> str:
    return light if light == dark else f"light-dark({light},{dark})"


def _rules(shades: Shades) -> list[tuple[str, str]]:
    return [(name.replace("_", "-"), getattr(shades, name)) for name in shades.__struct_fields__]


def shown_brand(brand: Brand, event_colour: str, colours: Sequence[str]) -> ShownBrand | None:
    """How pages about an event look: in the colour of who sells it, else in that of its picture, with the seller's
    logo. None: like the rest of the site."""
    colour = brand.colour or event_colour
    if not colour and brand.logo is None:
        return None
    return ShownBrand(brand.name, brand_style(colour, colours) if colour else None, brand.logo)
