"""The body of an organisation's brand: its colour in light and in dark, and its logo."""

from collections.abc import Sequence

import msgspec

from frontrow.boxoffice.organiser.model.brands import Brand, Shades
from frontrow.web.http.brand_styles import BrandStyle, brand_style


class ShadesView(msgspec.Struct):
    """The colour in one scheme: as text, as a button and its text, as a soft background. `adjusted`: as text it differs
    from the given one, so that everybody can read it."""

    brand: str
    brand_fill: str
    brand_hover: str
    on_brand: str
    brand_soft: str
    adjusted: bool


class BrandView(msgspec.Struct):
    """The brand. `light` and `dark` are null without a colour, `logo_url` is empty without a logo."""

    colour: str
    logo_url: str
    light: ShadesView | None
    dark: ShadesView | None


def brand_view(colours: Sequence[str], brand: Brand) -> BrandView:
    """The brand with the shades of its colour on a site with these colours."""
    style: BrandStyle | None = brand_style(brand.colour, colours) if brand.colour else None
    logo_url = f"/pictures/{brand.logo.hash}" if brand.logo is not None else ""
    if style is None:
        return BrandView("", logo_url, None, None)
    return BrandView(brand.colour, logo_url, _shades(brand, style.light), _shades(brand, style.dark))


def _shades(brand: Brand, shades: Shades) -> ShadesView:
    return ShadesView(
        shades.brand,
        shades.brand_fill,
        shades.brand_hover,
        shades.on_brand,
        shades.brand_soft,
        adjusted=shades.brand != brand.colour,
    )
