"""Serves the site's files, cached permanently under their hash, and chooses the visitor's language."""

from typing import Any

from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.core.errors import NotFound
from frontrow.settings.colours import theme_css
from frontrow.waitingroom.protect.guard import is_page
from frontrow.web.http.access import Access
from frontrow.web.site.assets import THEME, site_assets, theme_asset
from frontrow.web.site.cookie_contents import language_cookie
from frontrow.web.site.languages import LANGUAGES
from frontrow.web.site.render import render
from frontrow.web.site.routes import go_to, page
from frontrow.web.site.security_headers import WORKER_CSP

FOREVER = "public, max-age=31536000, immutable"
WORKER = "-worker.js"  # scripts that run by themselves


@get(
    "/static/{version:str}/{path:path}",
    operation_id="static_file",
    include_in_schema=False,
    opt={"access": Access.PUBLIC, "page": True},
)
async def static_file(request: Request[Any, Any, Any], version: FromPath[str], path: FromPath[str]) -> Response[bytes]:
    """A file. Under an older hash (a page from before an update) the current file, not cached."""
    assets = site_assets()
    found = assets.files.get(str(path).lstrip("/"))
    lasting = version == assets.hash
    if version == THEME:
        address, found = theme_asset(theme_css(request.app.state.platform.settings.room.colours))
        lasting = address == request.url.path
    if found is None:
        raise NotFound("there is no such file")
    headers = {
        "cache-control": FOREVER if lasting else "no-cache",
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
        "vary": "accept-encoding",
    }
    if str(path).endswith(WORKER):
        headers["content-security-policy"] = WORKER_CSP
    body = found.body
    if found.gzipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
        body = found.gzipped
        headers["content-encoding"] = "gzip"
    return Response(body, headers=headers, media_type=found.kind)


@get(
    "/favicon.ico",
    operation_id="favicon",
    include_in_schema=False,
    opt={"access": Access.PUBLIC, "page": True},
)
async def favicon() -> Response[bytes]:
    """The icon for pages that name none, such as the waiting room's: browsers ask for it here."""
    headers = {"cache-control": "public, max-age=86400", "x-content-type-options": "nosniff"}
    return Response(site_assets().files["img/icon.svg"].body, headers=headers, media_type="image/svg+xml")


@page("/language/{language:str}", "language")
async def choose_language(request: Request[Any, Any, Any], language: FromPath[str]) -> Response[bytes]:
    """Remember a language and go back."""
    if language not in LANGUAGES:
        raise NotFound("there is no such language")
    back = request.query_params.get("back", "/")
    chosen = language_cookie(request.app.state.platform, language)
    return go_to(back if is_page(back) else "/", {"set-cookie": chosen})


@page("/maintenance", "maintenance")
async def maintenance(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The page to show for the whole site during maintenance."""
    return render(request, "maintenance.html", script="js/again.js", cache="public, max-age=60")


@page("/style-guide", "style_guide")
async def style_guide(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Every part of the pages on one page."""
    return render(request, "style-guide.html", script="js/style-guide.js", cache="public, max-age=60")


ROUTES: list[HTTPRouteHandler] = [static_file, favicon, choose_language, maintenance, style_guide]
