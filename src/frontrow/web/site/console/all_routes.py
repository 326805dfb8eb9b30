"""Every route of the console. They are named apart from `ROUTES`, which the platform collects from `web.site`."""

from typing import Any

from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.core.errors import NotFound
from frontrow.settings.colours import theme_css
from frontrow.web.site.assets import THEME, site_assets, theme_asset
from frontrow.web.site.console import api, figures, notices, people, room_design, rooms, sign_in
from frontrow.web.site.console.console import console_of
from frontrow.web.site.static_files import FOREVER


@get("/static/{version:str}/{path:path}", operation_id="console_static", include_in_schema=False)
async def static_file(request: Request[Any, Any, Any], version: FromPath[str], path: FromPath[str]) -> Response[bytes]:
    """A file of the pages, cached permanently under its hash."""
    assets = site_assets()
    found = assets.files.get(str(path).lstrip("/"))
    lasting = version == assets.hash
    if version == THEME:
        address, found = theme_asset(theme_css(console_of(request).settings.colours))
        lasting = address == request.url.path
    if found is None:
        raise NotFound("there is no such file")
    headers = {
        "cache-control": FOREVER if lasting else "no-cache",
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
        "vary": "accept-encoding",
    }
    body = found.body
    if found.gzipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
        body = found.gzipped
        headers["content-encoding"] = "gzip"
    return Response(body, headers=headers, media_type=found.kind)


@get("/favicon.ico", operation_id="console_favicon", include_in_schema=False)
async def favicon() -> Response[bytes]:
    """The icon."""
    headers = {"cache-control": "public, max-age=86400", "x-content-type-options": "nosniff"}
    return Response(site_assets().files["img/icon.svg"].body, headers=headers, media_type="image/svg+xml")


CONSOLE_ROUTES: list[HTTPRouteHandler] = [
    static_file,
    favicon,
    *sign_in.CONSOLE_ROUTES,
    *rooms.CONSOLE_ROUTES,
    *room_design.CONSOLE_ROUTES,
    *figures.CONSOLE_ROUTES,
    *people.CONSOLE_ROUTES,
    *api.CONSOLE_ROUTES,
    *notices.CONSOLE_ROUTES,
]
