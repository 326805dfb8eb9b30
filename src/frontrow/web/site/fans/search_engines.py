"""For search engines and those who share a page: robots.txt, sitemaps, posters; and pictures and styles of brands."""

import gzip
import re
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.pictures import media_type_of
from frontrow.boxoffice.events.posters import poster_png
from frontrow.core.errors import NotFound
from frontrow.shared.heavy_work import HeavyWork, Urgency
from frontrow.web.http.brand_styles import brand_style
from frontrow.web.platform.event_access import shown_event
from frontrow.web.platform.injected import FromPlatform
from frontrow.web.site.routes import page
from frontrow.web.site.static_files import FOREVER

Asked = Request[Any, Any, Any]
MAX_POSTERS: Final = 200
DRAW_WITHIN_S: Final = 10.0
DAY: Final = "public, max-age=86400"
PRIVATE_PATHS: Final = (
    "/account",
    "/bookings/",
    "/checkout/",
    "/door",
    "/offers/",
    "/open",
    "/organiser",
    "/transfers/",
    "/v1/",
)
XML: Final = "application/xml"
BRAND_FILE: Final = re.compile(r"(?P<colour>[0-9a-f]{6})-[0-9a-f]{12}\.css", re.ASCII)


_drawn: dict[str, bytes] = {}  # the same for every platform of a process


async def drawn_poster(work: HeavyWork, event_id: str) -> bytes:
    """The drawn picture of an event; the last few hundred are kept."""
    found = _drawn.get(event_id)
    if found is None:
        found = await work.run(Urgency.SOMEBODY_WAITS, DRAW_WITHIN_S, poster_png, event_id)
        if len(_drawn) >= MAX_POSTERS:
            _drawn.pop(next(iter(_drawn)))
        _drawn[event_id] = found
    return found


@page("/robots.txt", "robots")
async def robots(platform: FromPlatform) -> Response[bytes]:
    """What search engines may read, and where the sitemap is."""
    lines = ["User-agent: *", *(f"Disallow: {path}" for path in PRIVATE_PATHS)]
    lines += ["Allow: /", f"Sitemap: {platform.settings.public_url.rstrip('/')}/sitemap.xml", ""]
    return Response("\n".join(lines).encode(), headers={"cache-control": DAY}, media_type="text/plain")


@page("/sitemap.xml", "sitemap")
async def sitemap(request: Asked, platform: FromPlatform) -> Response[bytes]:
    """The addresses of all public events; an index of several files if there are more than one file may have."""
    return _xml(request, await platform.server.sitemaps.whole())


@page("/sitemaps/{number:int}", "sitemap_part")
async def sitemap_part(request: Asked, platform: FromPlatform, number: FromPath[int]) -> Response[bytes]:
    """One file of a sitemap that has several."""
    files = await platform.server.sitemaps.files()
    if not 1 <= number <= len(files):
        raise NotFound("there is no such sitemap")
    return _xml(request, files[number - 1])


def _xml(request: Asked, packed: bytes) -> Response[bytes]:
    headers = {"cache-control": "public, max-age=600", "vary": "accept-encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, headers=headers | {"content-encoding": "gzip"}, media_type=XML)
    return Response(gzip.decompress(packed), headers=headers, media_type=XML)


@page("/events/{event_id:str}/poster.png", "poster", inside_page=True)
async def poster(platform: FromPlatform, event_id: FromPath[str]) -> Response[bytes]:
    """The drawn picture of an event, for those who share its page."""
    event = await shown_event(platform, event_id)
    headers = {"cache-control": DAY, "x-content-type-options": "nosniff"}
    return Response(
        await drawn_poster(platform.server.work, event.poster_seed), headers=headers, media_type="image/png"
    )


@page("/pictures/{picture_hash:str}", "picture", inside_page=True)
async def picture(platform: FromPlatform, picture_hash: FromPath[str]) -> Response[bytes]:
    """A picture that an organiser uploaded. It never changes, because its address is its hash."""
    body = await platform.server.pictures.find(picture_hash)
    headers = {"cache-control": FOREVER, "x-content-type-options": "nosniff"}
    return Response(body, headers=headers, media_type=media_type_of(body))


@page("/brands/{name:str}", "brand_style", inside_page=True)
async def brand_sheet(platform: FromPlatform, name: FromPath[str]) -> Response[bytes]:
    """The style of an organisation's colour. Under an older hash (a page from before an update) not cached."""
    named = BRAND_FILE.fullmatch(name)
    if named is None:
        raise NotFound("there is no such style")
    style = brand_style(f"#{named['colour']}", platform.settings.room.colours)
    lasting = style.url == f"/brands/{name}"
    headers = {"cache-control": FOREVER if lasting else "no-cache", "x-content-type-options": "nosniff"}
    return Response(style.css.encode(), headers=headers, media_type="text/css")


ROUTES: list[HTTPRouteHandler] = [robots, sitemap, sitemap_part, poster, picture, brand_sheet]
