"""The brand of an organisation: its colour and its logo, and how the colour is shown in light and in dark."""

from typing import Annotated

import msgspec
from litestar import delete, get, put
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromQuery, JSONBody

from frontrow.boxoffice.events.model.pictures import MAX_UPLOAD_CHARS
from frontrow.boxoffice.organiser.model.brands import checked_colour
from frontrow.core.errors import InvalidInput
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.bodies.brands import BrandView, brand_view
from frontrow.web.platform.injected import FromCaller, FromPlatform

PATH = "/v1/organiser/brand"
LOGO = f"{PATH}/logo"
MAX_COLOUR_CHARS = 20


class BrandColour(msgspec.Struct, forbid_unknown_fields=True):
    """The colour of buttons, links and highlights. Empty: the site's own."""

    colour: Annotated[str, msgspec.Meta(max_length=MAX_COLOUR_CHARS, examples=["#a3123f"])]


class LogoBody(msgspec.Struct, forbid_unknown_fields=True):
    """A JPEG, PNG or WebP file in base64."""

    logo: Annotated[str, msgspec.Meta(max_length=MAX_UPLOAD_CHARS, examples=["iVBORw0KGgo="])]


@get(
    PATH,
    operation_id="get_brand",
    summary="The organisation's colour and logo",
    opt={"access": Access.staff("events:read")},
)
async def get_brand(platform: FromPlatform, caller: FromCaller) -> BrandView:
    return brand_view(platform.settings.room.colours, await platform.brands.read(caller.organiser_id))


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
    return brand_view(
        platform.settings.room.colours, msgspec.structs.replace(platform.brands.of(caller.organiser_id), colour=checked)
    )


@put(
    PATH,
    operation_id="put_brand",
    summary="Change the organisation's colour; the logo stays",
    opt={"access": Access.staff("events:write")},
)
async def put_brand(platform: FromPlatform, caller: FromCaller, data: JSONBody[BrandColour]) -> BrandView:
    return brand_view(
        platform.settings.room.colours, await platform.brands.change_colour(editor_of(caller), data.colour)
    )


@put(
    LOGO,
    operation_id="put_logo",
    summary="Upload the organisation's logo; it is made small and loses its metadata",
    request_max_body_size=MAX_UPLOAD_CHARS + 1_000,
    opt={"access": Access.staff("events:write"), "problems": (413,)},
)
async def put_logo(platform: FromPlatform, caller: FromCaller, data: JSONBody[LogoBody]) -> BrandView:
    return brand_view(platform.settings.room.colours, await platform.brands.put_logo(editor_of(caller), data.logo))


@delete(
    LOGO,
    operation_id="remove_logo",
    summary="Show the site's name again instead of a logo",
    status_code=200,
    opt={"access": Access.staff("events:write")},
)
async def remove_logo(platform: FromPlatform, caller: FromCaller) -> BrandView:
    return brand_view(platform.settings.room.colours, await platform.brands.remove_logo(editor_of(caller)))


ROUTES: list[HTTPRouteHandler] = [get_brand, preview_brand, put_brand, put_logo, remove_logo]
