"""The organisation's page about its brand: colour and logo, and how both look in light and in dark."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.boxoffice.events.model.pictures import MAX_UPLOAD_CHARS
from frontrow.boxoffice.organiser.model.brands import Brand
from frontrow.core.errors import InvalidInput
from frontrow.settings.colours import site_colours
from frontrow.web.http.access import Access, Caller, editor_of
from frontrow.web.http.bodies.brands import brand_view
from frontrow.web.http.brand_styles import shown_brand
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
BRAND: Final = "/organiser/brand"
MAX_FORM_BYTES: Final = MAX_UPLOAD_CHARS * 5 // 4  # some signs of base64 are escaped
BAD_COLOUR: Final = N_("Please write the colour as six digits, like #a3123f.")
BAD_LOGO: Final = N_("This file could not be used. Choose a JPEG, PNG or WebP file of up to 10 MB.")
DONE: Final = {"saved": N_("Saved. Your pages show it now.")}


@page(BRAND, "brand", Access.staff("events:read"))
async def brand(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """Colour and logo, with a preview."""
    stored = await platform.brands.read(caller.organiser_id)
    problem = BAD_LOGO if request.query_params.get("logo") == "refused" else ""
    return _page(request, platform, caller, stored, problem=problem, field="logo")


def _page(
    request: Asked,
    platform: Platform,
    caller: Caller,
    stored: Brand,
    *,
    problem: str = "",
    field: str = "",
    typed: str | None = None,
) -> Response[bytes]:
    return render(
        request,
        "organiser/brand.html",
        status=422 if typed is not None else 200,
        script="js/organiser/brand.js",
        stored=stored,
        seen=shown_brand(stored, "", platform.settings.room.colours),
        view=brand_view(platform.settings.room.colours, stored),
        typed=stored.colour if typed is None else typed,
        default=site_colours(platform.settings.room.colours)["brand"][0],
        problem=problem,
        field=field if problem else "",
        write="events:write" in caller.permissions,
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


@action(BRAND, "change_brand", Access.staff("events:write"))
async def change_brand(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Save the colour, or go back to the site's own."""
    typed = "" if form.one("clear") else form.one("colour", 20)
    try:
        await platform.brands.change_colour(editor_of(caller), typed)
    except InvalidInput:
        stored = await platform.brands.read(caller.organiser_id)
        return _page(request, platform, caller, stored, problem=BAD_COLOUR, field="colour", typed=typed)
    return go_to(f"{BRAND}?done=saved")


@action(f"{BRAND}/logo", "change_logo", Access.staff("events:write"), most_bytes=MAX_FORM_BYTES)
async def change_logo(platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Show the logo in the form, or the site's name if it asks for that."""
    try:
        if form.one("remove"):
            await platform.brands.remove_logo(editor_of(caller))
        else:
            await platform.brands.put_logo(editor_of(caller), form.one("logo", MAX_FORM_BYTES))
    except InvalidInput:
        return go_to(f"{BRAND}?logo=refused")
    return go_to(f"{BRAND}?done=saved")


ROUTES: list[HTTPRouteHandler] = [brand, change_brand, change_logo]
