"""The brand of an organisation: its colour and its logo, and how the colour is shown in light and in dark."""

from typing import Annotated

import msgspec
from litestar import delete, get, put
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromQuery, JSONBody

from frontrow.boxoffice.events.pictures import MAX_UPLOAD_CHARS
from frontrow.boxoffice.organiser.model.brands import Brand, Shades, checked_colour
from frontrow.core.errors import InvalidInput
from frontrow.web.api import FromCaller, FromPlatform
from frontrow.web.api.access import Access
from frontrow.web.api.organiser.common import editor_of
from frontrow.web.platform.platform import Platform
from frontrow.web.site.brand_styles import BrandStyle, brand_style

PATH = "/v1/organiser/brand"
LOGO = f"{PATH}/logo"
MAX_COLOUR_CHARS = 20


class BrandColour(msgspec.Struct, forbid_unknown_fields=True):
    """The colour of buttons, links and highlights. Empty: the site's own."""

    colour: Annotated[str, msgspec.Meta(max_length=MAX_COLOUR_CHARS, examples=["#a3123f"])]


class LogoBody(msgspec.Struct, forbid_unknown_fields=True):
    """A JPEG, PNG or WebP file in base64."""

    logo: Annotated[str, msgspec.Meta(max_length=MAX_UPLOAD_CHARS, examples=["iVBORw0KGgo="])]


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


@get(
    PATH,
    operation_id="get_brand",
    summary="The organisation's colour and logo",
    opt={"access": Access.staff("events:read")},
)
async def get_brand(platform: FromPlatform, caller: FromCaller) -> BrandView:
    return brand_view(platform, await platform.ledger.brands.of(caller.organiser_id) or Brand(caller.organiser_id))


@get(
    f"{PATH}/preview",
    operation_id="preview_brand",
    summary="How a colour would be shown, in light and in dark",
    opt={"access": Access.staff("events:read")},
)
async def preview_brand(platform: FromPlatform, caller: FromCaller, colour: FromQuery[str]) -> BrandView:
    checked = checked_colour(colour[:MAX_COLOUR_CHARS])
    if not checked:
        raise InvalidInput("give a colour like #a3123f", param="colour")
    return brand_view(platform, msgspec.structs.replace(platform.brands.of(caller.organiser_id), colour=checked))


@put(
    PATH,
    operation_id="put_brand",
    summary="Change the organisation's colour; the logo stays",
    opt={"access": Access.staff("events:write")},
)
async def put_brand(platform: FromPlatform, caller: FromCaller, data: JSONBody[BrandColour]) -> BrandView:
    return brand_view(platform, await platform.brands.change_colour(editor_of(caller), data.colour))


@put(
    LOGO,
    operation_id="put_logo",
    summary="Upload the organisation's logo; it is made small and loses its metadata",
    request_max_body_size=MAX_UPLOAD_CHARS + 1_000,
    opt={"access": Access.staff("events:write"), "problems": (413,)},
)
async def put_logo(platform: FromPlatform, caller: FromCaller, data: JSONBody[LogoBody]) -> BrandView:
    return brand_view(platform, await platform.brands.put_logo(editor_of(caller), data.logo))


@delete(
    LOGO,
    operation_id="remove_logo",
    summary="Show the site's name again instead of a logo",
    status_code=200,
    opt={"access": Access.staff("events:write")},
)
async def remove_logo(platform: FromPlatform, caller: FromCaller) -> BrandView:
    return brand_view(platform, await platform.brands.remove_logo(editor_of(caller)))


def brand_view(platform: Platform, brand: Brand) -> BrandView:
    """The brand with the shades of its colour on this site."""
    style: BrandStyle | None = brand_style(brand.colour, platform.settings.room.colours) if brand.colour else None
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


ROUTES: list[HTTPRouteHandler] = [get_brand, preview_brand, put_brand, put_logo, remove_logo]
