"""Builds the waiting rooms of a platform's events.

`room_wiring` builds rooms without a box office, which `frontrow room serve` serves.
"""

from dataclasses import replace

from frontrow.app.room_wiring import HumanChecks, ask_for_proofs, make_room, suspect_networks
from frontrow.boxoffice.events.event_art import EventArt
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.organiser.brands import Brands
from frontrow.boxoffice.people.people import People
from frontrow.core.clock import Clock
from frontrow.settings.colours import theme_css
from frontrow.settings.platform import PlatformSettings
from frontrow.shared.cookie_headers import is_https
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits, EntranceRules
from frontrow.waitingroom.notices.model import TurnNoticeKind
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.room.join_identity import SessionIdentity
from frontrow.web.endpoints.room.page import PageSettings, RoomPages
from frontrow.web.endpoints.room.room_endpoints import RoomEndpoints
from frontrow.web.endpoints.sessions import fan_of
from frontrow.web.guard.address_caps import AddressCaps
from frontrow.web.http.brand_styles import ShownBrand, shown_brand
from frontrow.web.platform.event_openings import Openings
from frontrow.web.platform.event_rooms import Rooms
from frontrow.web.site.fans.waiting_room import SiteSurroundings
from frontrow.web.streams.positions import Streams


def make_event_rooms(
    settings: PlatformSettings,
    keys: RoomKeys,
    clock: Clock,
    given_clock: Clock | None,
    people: People,
    openings: Openings,
    zones: dict[str, str],
    caps: AddressCaps,
    brands: Brands,
    art: EventArt,
    notice_kinds: tuple[TurnNoticeKind, ...],
) -> tuple[WaitingRoom, RoomEndpoints, Rooms, HumanChecks]:
    """The waiting room over the platform's Redis and database. It keeps `given_clock`, if there is one."""
    folder = settings.folder / "room"
    audit = settings.ledger_url if settings.shared else str(settings.folder / "room-audit.sqlite")
    server, page = settings.server, settings.room
    store = settings.redis.url or "memory://"
    own = replace(page, store=store, folder=str(folder), audit=audit, by_identity=False)  # each event says by itself
    room = make_room(own, keys, sale_clock=clock, clock=given_clock)
    rules = EntranceRules(
        server.per_person,
        server.per_ip,
        page.per_device,
        server.x_ratelimit_headers,
        page.joins_without_scripts,
    )
    entry = EntranceLimits(
        rules=rules,
        trusted_proxies=server.trusted_proxies,
        processes=server.workers,
        store=own.limit_store,
        suspects=suspect_networks(own),
    )
    ask_for_proofs(entry, own, room)
    secure = page.secure_cookies or is_https(settings.public_url)
    page_settings = PageSettings(page.brand, (), page.shop_url, secure, theme=theme_css(page.colours))

    def brand_of(event: Event) -> ShownBrand | None:
        return shown_brand(brands.of(event.organiser_id), art.known_colour(event), page.colours)

    surroundings = SiteSurroundings(room, page_settings, openings.events, zones, brand_of, notice_kinds)
    pages = RoomPages(room, entry, page_settings, surroundings)
    identity = SessionIdentity(room, fan_of(people), people.fans.is_proven)
    endpoints = RoomEndpoints(room, entry, pages, {}, organiser_key=page.organiser_key, identity=identity)
    checks = HumanChecks(own, keys)
    rooms = Rooms(
        endpoints,
        own.config(),
        clock,
        lambda: Streams(max_open=server.max_streams, heartbeat_s=page.heartbeat_s, caps=caps),
        checks.make,
        page.rules(),
    )
    return room, endpoints, rooms, checks
