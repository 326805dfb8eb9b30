"""The gate's pages: choose the event, then scan. Installable; their own service worker keeps them working offline.

The pages do nothing by themselves: their scripts call the gate's API (`web/api/gate`) or decide with its bundle.
"""

from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.core.clock import US_PER_S
from frontrow.web.http.access import Access, Caller
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.assets import site_assets
from frontrow.web.site.event_display import Shown, shown
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import page
from frontrow.web.site.security_headers import GATE, WORKER_CSP

Asked = Request[Any, Any, Any]
SCANS: Final = Access.staff("door:scan")
HOUR_US: Final = 3_600 * US_PER_S
BEFORE_US: Final = 48 * HOUR_US  # a show that began so long ago is still listed
NEAR_US: Final = 20 * HOUR_US  # farther away, the page asks whether it is the right show
MAX_LISTED: Final = 40
ICONS: Final = {192: "img/icon-192.png", 512: "img/icon-512.png"}
SCRIPT: Final = "js/gate/gate-page.js"
# what the pages need offline, besides their scripts
OTHERS: Final = (
    "css/site.css",
    "css/organiser.css",
    "css/gate.css",
    "img/icon.svg",
    "vendor/inter/inter.woff2",
    *ICONS.values(),
    "js/gate/scan-worker.js",
    "vendor/zxing-wasm/reader/index.js",
    "vendor/zxing-wasm/share.js",
    "vendor/zxing-wasm/reader/zxing_reader.wasm",
)


@page("/door", "door", SCANS)
async def choose(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """The shows of these days and those to come."""
    script = "js/gate/choose.js"
    return render(request, "gate.html", policy=GATE, script=script, rows=await _listed(platform, caller))


@page("/door/{event_id:str}", "door_event", SCANS)
async def gate(request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """The scanner of one show."""
    event = await own_event(platform, caller, event_id)
    one = shown(platform, event, await platform.ledger.catalogue.venue(event.venue_id))
    words = words_for(request)
    others = [
        {"id": other.event.id, "name": other.event.name, "when": words.zoned(other.event.starts_at_us, other.zone)}
        for other in await _listed(platform, caller)
        if other.event.id != event.id
    ]
    labels = await platform.box_office.renderer.seat_labels(event)
    far = abs(event.starts_at_us - platform.clock()) > NEAR_US
    return render(
        request,
        "gate-event.html",
        policy=GATE,
        script=SCRIPT,
        one=one,
        far=far,
        others=others,
        names={**labels.sections, **{"-".join(row): name for row, name in labels.rows.items()}},
        cancelled=event.status is EventStatus.CANCELLED,
    )


async def _listed(platform: Platform, caller: Caller) -> list[Shown]:
    since_us = platform.clock() - BEFORE_US
    events = await platform.ledger.catalogue.events_of_organiser(caller.organiser_id, (since_us, ""), MAX_LISTED)
    return [
        shown(platform, event, await platform.ledger.catalogue.venue(event.venue_id))
        for event in events
        if event.status is not EventStatus.DRAFT
    ]


@page("/door/sw.js", "door_worker")
async def service_worker() -> Response[bytes]:
    """The service worker, with the list of the pages' own files and their version."""
    assets = site_assets()
    paths = dict.fromkeys((*assets.with_imports(SCRIPT), *assets.with_imports("js/gate/choose.js"), *OTHERS))
    config = msgspec.json.encode({"version": assets.hash, "files": [assets.url(path) for path in paths]}).decode()
    body = f"self.gate = {config};\n".encode() + assets.files["js/gate/sw.js"].body
    headers = {
        "service-worker-allowed": "/door",
        "cache-control": "no-cache",
        "content-security-policy": WORKER_CSP,
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
    }
    return Response(body, headers=headers, media_type="text/javascript")


@page("/door/app.webmanifest", "door_manifest")
async def manifest(request: Asked, platform: FromPlatform) -> Response[bytes]:
    """What a phone needs to know to install the gate's page as an app."""
    words, brand, assets = words_for(request), platform.settings.room.brand, site_assets()
    icons = [
        {"src": assets.url(path), "sizes": f"{side}x{side}", "type": "image/png", "purpose": purpose}
        for side, path in ICONS.items()
        for purpose in ("any", "maskable")
    ]
    body = {
        "id": "/door",
        "start_url": "/door",
        "scope": "/door",
        "display": "standalone",
        "lang": words.tag,
        "dir": words.direction,
        "name": f"{brand} – {words('Gate')}",
        "short_name": words("Gate"),
        "background_color": "#120d15",
        "theme_color": "#1c1521",
        "icons": icons,
    }
    headers = {"cache-control": "no-cache", "vary": "accept-language, cookie", "x-content-type-options": "nosniff"}
    return Response(msgspec.json.encode(body), headers=headers, media_type="application/manifest+json")


ROUTES: list[HTTPRouteHandler] = [choose, gate, service_worker, manifest]
