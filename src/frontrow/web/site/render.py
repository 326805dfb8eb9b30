"""Turns a template into a response: in the visitor's language, with the page's policy, compressed on request.

Templates see `_` (the words), `asset` (where a file is), `caller`, `csrf` and what the handler gives. Everything is
escaped. `script` names the page's module; its imports are announced, and its texts travel along in the page.
"""

import gzip
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import jinja2
import msgspec
from litestar import Request, Response
from markupsafe import Markup

from frontrow.boxoffice.events.posters import poster_svg
from frontrow.boxoffice.holds.model.bookings import HOLD_STATES, Booking, booking_number
from frontrow.boxoffice.people.model.people import csrf_of
from frontrow.boxoffice.request_reads import request_reads
from frontrow.core.clock import US_PER_S
from frontrow.settings.colours import theme_css
from frontrow.shared.cookie_headers import read_cookie
from frontrow.shared.local_time import time_text
from frontrow.web.http.access import Caller, presented
from frontrow.web.http.brand_styles import ShownBrand, shown_brand
from frontrow.web.http.cookies import LANGUAGE_COOKIES
from frontrow.web.platform.platform import Platform
from frontrow.web.site.assets import site_assets, theme_asset
from frontrow.web.site.event_display import Shown
from frontrow.web.site.languages import LANGUAGES, Words, best_language, load_all, words_of
from frontrow.web.site.markdown import as_html
from frontrow.web.site.security_headers import PLAIN, PagePolicy

MIN_GZIP_BYTES: Final = 1_000
PRIVATE: Final = "private, no-store"
PUBLIC: Final = "public, max-age=0, must-revalidate"
GUESTS: Final = "public, max-age=0, s-maxage=1"  # the same for all who bring nothing; else private
STAFF_PAGES: Final = ("organiser/", "gate")
VISIT_SCRIPT: Final = "js/visit.js"
Asked = Request[Any, Any, Any]


@lru_cache(1)
def environment() -> jinja2.Environment:
    """The templates of this package; all languages are read with them."""
    load_all()
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("frontrow.web", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {
        "markdown": as_html,
        "poster": poster_svg,
        "asset": site_assets().url,
        "languages": LANGUAGES,
        "json": as_json,
        "booking_number": booking_number,
    }
    return templates


def as_json(value: Any) -> Markup:
    """A value inside `<script type="application/json">`: nothing in it can end the element."""
    text = msgspec.json.encode(value).decode()
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704 - escaped


def words_for(request: Asked) -> Words:
    """The words of the visitor's language."""
    chosen = read_cookie(request.headers.get("cookie", ""), LANGUAGE_COOKIES)
    return words_of(best_language(chosen, request.headers.get("accept-language", "")))


def render(
    request: Asked,
    template: str,
    *,
    status: int = 200,
    policy: PagePolicy = PLAIN,
    script: str = "",
    cache: str = PRIVATE,
    headers: dict[str, str] | None = None,
    visit_of: str = "",
    **context: Any,
) -> Response[bytes]:
    """The page. While a visit is open, every page shows the time that is left and follows the visit (`visit.js`).
    `visit_of` names the event whose shop the page is in: there nothing goes on after the visit. A page about an event
    (`one`) has the colour of its picture, or the colour and the logo of the organisation that sells it."""
    platform: Platform = request.app.state.platform
    words, assets, reads = words_for(request), site_assets(), request_reads.get()
    caller: Caller = getattr(request.state, "caller", Caller())
    session = presented(request.headers, secure=True).session_cookie if caller.session is not None else ""
    visit = _visit(platform, caller, template, visit_of, context) if cache in (PRIVATE, GUESTS) else None
    scripts = [*([script] if script else []), *([VISIT_SCRIPT] if visit else [])]
    text = (
        environment()
        .get_template(template)
        .render(
            context,
            _=words,
            words=words,
            caller=caller,
            csrf=csrf_of(session) if session else "",
            path=request.url.path,
            here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            brand=platform.settings.room.brand,
            theme_url=_theme_url(platform),
            house=_brand_of(platform, template, context.get("one")),
            modules=list(dict.fromkeys(module for one in scripts for module in assets.with_imports(one))),
            scripts=scripts,
            script_texts=words.chosen(frozenset().union(*(assets.texts(one) for one in scripts))),
            now_ms=platform.clock() // 1000,
            as_of_us=reads.as_of_us if reads is not None else 0,
            visit=visit,
        )
    )
    if cache == GUESTS and not _is_guest(request):
        cache = PRIVATE
    body = text.encode()
    found = policy.headers(platform.settings) | {
        "cache-control": cache,
        "content-language": words.language,
        "vary": "accept-encoding, accept-language, cookie",
        **(headers or {}),
    }
    if len(body) >= MIN_GZIP_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, 5, mtime=0)
        found["content-encoding"] = "gzip"
    return Response(body, status_code=status, headers=found, media_type="text/html")


def _is_guest(request: Asked) -> bool:
    """Whether nothing in the request could make the page personal."""
    return not ({"cookie", "authorization", "frontrow-pass", "frontrow-booking"} & request.headers.keys())


def _theme_url(platform: Platform) -> str:
    """Where the style of the site's own colours is; empty without them."""
    style = theme_css(platform.settings.room.colours)
    return theme_asset(style)[0] if style else ""


def _brand_of(platform: Platform, template: str, one: Any) -> ShownBrand | None:
    """How the page's event is shown; None on pages about no event, for organisers and at the gate."""
    if not isinstance(one, Shown) or template.startswith(STAFF_PAGES):
        return None
    colour = platform.box_office.renderer.art.known_colour(one.event)
    return shown_brand(platform.brands.of(one.event.organiser_id), colour, platform.settings.room.colours)


def _visit(
    platform: Platform, caller: Caller, template: str, visit_of: str, context: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The time that the visitor has, at least as long as the hold of the page's booking, and where the page's script
    follows the visit; None outside any visit. The pass says when it ends, so no store is asked."""
    visit, booking = caller.shop_pass or caller.past_pass, context.get("booking")
    if visit is None or (caller.kind == "staff" and template.startswith(STAFF_PAGES)):
        return None
    until_us = visit.expires_at_us
    if isinstance(booking, Booking) and booking.visit_id == visit.id:
        if booking.state in HOLD_STATES and not booking.is_ordered:
            until_us = max(until_us, booking.hold_expires_at_us)
        elif (
            not visit_of and booking.state not in HOLD_STATES
        ):  # the visit ends with the purchase, and other processes hear of it a moment later
            return None
    in_shop = visit_of == visit.event_id
    if not in_shop and until_us <= platform.clock():
        return None
    room = platform.room.service.cache.rooms.get(visit.event_id)
    event = platform.box_office.openings.events.get(visit.event_id)
    return {
        "in_shop": in_shop,
        "event": event.name if event is not None else "",
        "back": f"/events/{visit.event_id}/seats",
        "room": f"/v1/events/{visit.event_id}/room",
        "until": time_text(until_us),
        "left_s": max(0, -(-(until_us - platform.clock()) // US_PER_S)),
        "idle_minutes": -(-(room.state.config.idle_s if room is not None else 0) // 60),
    }
