"""The only place where adapters are chosen: `async with open_platform(settings) as platform`.

Embedded (no Redis): claims, places and limits in memory, a SQLite file, an in-process bus, the journaled simulated
provider, a folder of mails, all jobs inside. Grown up: Redis, PostgreSQL, Redis Streams or Kafka, Stripe, SMTP; the
same services either way. Whatever is opened here is closed here, in the opposite order.
"""

import contextlib
import functools
import os
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from frontrow.boxoffice.adapters.bus.from_url import open_bus
from frontrow.boxoffice.adapters.channels.from_settings import open_channels, open_mail
from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.adapters.ledger.books.idempotency_store import RequestBook
from frontrow.boxoffice.adapters.ledger.books.signups import SignupBook
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.catalogue.event_listing import Browse
from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.checkout.visit_keeper import VisitKeeper
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.expiry import LedgerClock
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.jobs.background_jobs import GROUPS, Job, box_office_jobs, every, money_jobs
from frontrow.boxoffice.jobs.waitlist_jobs import WAITLIST_GROUP, waitlist_jobs
from frontrow.boxoffice.messaging.mail_links import MailLinks
from frontrow.boxoffice.messaging.notifications import Notifier
from frontrow.boxoffice.messaging.organiser_webhooks import OrganiserWebhooks
from frontrow.boxoffice.messaging.safe_http import SafeHttpClient
from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.people.people import People
from frontrow.boxoffice.ports.payments import PaymentProvider
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.boxoffice.presale.presales import Presales
from frontrow.boxoffice.presale.signup_mail import SignupLinks, SignupMail
from frontrow.boxoffice.presale.signups import Signups
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.boxoffice.refunds.ticket_returns import Resale
from frontrow.boxoffice.seatmap.frame_log import FrameLog, MemoryFrameLog
from frontrow.boxoffice.seatmap.map_feed import MapFeed
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.boxoffice.tickets.ticket_desk import TicketDesk
from frontrow.boxoffice.waitlist.offers import Offering
from frontrow.boxoffice.waitlist.waitlist_service import WaitlistService
from frontrow.core.clock import US_PER_S, Clock, SystemClock
from frontrow.core.cookies import is_https
from frontrow.core.errors import ConfigError, FrontrowError, Unavailable
from frontrow.core.ids import Ids
from frontrow.core.settings_loader import named
from frontrow.settings.platform import PlatformSettings, read_settings
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.door.door_limits import Entry, EntryRules
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.api.access import booking_token
from frontrow.web.endpoints.event_details import EventViews
from frontrow.web.endpoints.event_list import EventLists
from frontrow.web.endpoints.passes import Passes
from frontrow.web.endpoints.platform_room import PlatformRoom
from frontrow.web.endpoints.sessions import fan_of
from frontrow.web.lane.shared_routes import share
from frontrow.web.observability.telemetry import Telemetry
from frontrow.web.observability.worker_metrics import Board
from frontrow.web.platform.event_openings import Openings
from frontrow.web.platform.event_rooms import Rooms
from frontrow.web.platform.fan_codes import FanCodes
from frontrow.web.platform.organiser_services import open_office
from frontrow.web.platform.platform import Platform, Secrets
from frontrow.web.platform.platform_keys import open_keys
from frontrow.web.platform.visits import RoomVisits
from frontrow.web.room.page import PageSettings
from frontrow.web.room.server import HumanChecks, make_room
from frontrow.web.site.fans.waiting_room import SiteRoomPages
from frontrow.web.streams.positions import Streams
from frontrow.web.streams.seat_routes import LiveSeats

__all__ = ["Platform", "PlatformSettings", "Secrets", "open_platform", "read_settings"]

IDLE_S = 120  # a visit ends when nobody was heard for so long, unless the settings say otherwise
KEEP_ANSWERS_US = 86_400 * US_PER_S


@contextlib.asynccontextmanager
async def open_platform(settings: PlatformSettings, *, clock: Clock | None = None) -> AsyncIterator[Platform]:
    """Everything one process needs, opened; jobs and loops are started by `frontrow.web.app` or `frontrow work`."""
    if settings.room.idle_s < 0:
        settings = replace(settings, room=replace(settings.room, idle_s=IDLE_S))
    async with contextlib.AsyncExitStack() as stack:
        ledger = await _ledger(settings)
        stack.push_async_callback(ledger.aclose)
        now = clock or await LedgerClock.measured(ledger, SystemClock())
        secret_keys = _secrets(settings)
        keys = await open_keys(settings, ledger, secret_keys.key("keys"), now())
        claims, make_log = _claims(settings, now)
        stack.push_async_callback(claims.aclose)
        provider = GuardedProvider(_provider(settings, now), now)
        stack.push_async_callback(provider.aclose)
        outgoing = SafeHttpClient()
        stack.push_async_callback(outgoing.aclose)
        with named("bus.url"):
            bus = open_bus(settings.bus_url, (*GROUPS, WAITLIST_GROUP))
        stack.push_async_callback(bus.aclose)
        box = _BoxOffice(settings, keys.tickets, ledger, claims, provider, outgoing, now, secret_keys)
        stack.push_async_callback(box.holds.aclose)
        openings = Openings(ledger, box.sales, claims, box.recovery, now, box.feeds, make_log)
        stack.push_async_callback(openings.aclose)
        room, endpoints, rooms, checks = _room(settings, keys.room, now, clock)
        stack.push_async_callback(checks.aclose)
        stack.push_async_callback(room.aclose)
        stack.push_async_callback(rooms.aclose)
        openings.watch(rooms.open)
        people = _people(settings, ledger, now, box.ids, secret_keys)
        stack.push_async_callback(people.aclose)
        endpoints.person_of, endpoints.is_proven = fan_of(people), people.fans.is_proven
        endpoints.pages.events = openings.events  # type: ignore[attr-defined]
        zones: dict[str, str] = {}
        endpoints.pages.zones = zones  # type: ignore[attr-defined]
        openings.watch(functools.partial(_learn_zone, ledger, zones))
        token_of = functools.partial(booking_token, secret_keys)
        live = LiveSeats(
            endpoints,
            box.holds,
            box.feeds,
            Passes(room, secure=is_https(settings.public_url)),
            settings.server.max_streams,
            token_of,
        )
        live.table.shown = views = EventViews(openings, box.browse, ledger, box.feeds, endpoints.entry)
        openings.on_open(live.opened)

        async def forget(event_id: str) -> None:
            await rooms.close(event_id)
            box.browse.forget(event_id)
            box.waitlist.forget(event_id)
            views.forget(event_id)

        openings.on_close(forget)
        stack.push_async_callback(live.aclose)
        requests = RequestBook(ledger)

        def catalogue_changes() -> int:
            return ledger.catalogue_version + openings.follower.changes

        keeper = VisitKeeper(ledger, RoomVisits(room), now, lambda: openings.events)
        jobs = [Job("openings", openings.run), Job("rooms", rooms.run), Job("visits", keeper.run)]
        jobs += _jobs(settings, box, bus, requests)
        telemetry = Telemetry(settings.overload, Board.of_workers(settings.folder, settings.server.workers))
        jobs += people.jobs() if settings.server.jobs_inside else []
        office = open_office(
            ledger, claims, box.issuer, box.holds, box.refunds, room, openings, box.feeds, now, box.ids,
            settings.room.rules(), settings.room.human_checks,
        )  # fmt: skip
        office.figures.speeds, office.live.speeds = telemetry.speeds, telemetry.recent_speeds
        stack.push_async_callback(office.live.aclose)
        jobs += office.jobs(inside=settings.server.jobs_inside)
        signups, presales = _signups(settings, ledger, now, box.ids, secret_keys, people, office.codes)
        jobs += [*signups.jobs(), presales.job()] if settings.server.jobs_inside else []
        platform = Platform(
            settings, now, box.ids, ledger, requests, claims, box.sales, box.holds, box.recovery, box.feeds, openings,
            box.browse, provider, box.checkout, box.purchases, box.refunds, box.waitlist, box.offering, box.resale,
            box.desk, box.notifier, box.webhooks, room, endpoints, live.shop, live.passes, live.table, endpoints.entry,
            secret_keys, tuple(jobs), people, office, telemetry=telemetry, figures=office.figures,
            shown=live.table.shown, links=box.links, listed=EventLists(box.browse, catalogue_changes),
            receipts=box.receipts, signups=signups, presales=presales,
        )  # fmt: skip
        share(platform)
        yield platform


async def _ledger(settings: PlatformSettings) -> SqlLedger:
    """The folder and the ledger; what is wrong with them in one sentence."""
    try:
        settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigError(f"server.folder cannot be used: {error.strerror}", param="server.folder") from None
    try:
        with named("ledger.url"):
            return await open_ledger(settings.ledger_url, warm=True)
    except FrontrowError:
        raise
    except Exception as error:  # the driver's own, of any class; its words may hold no password, its address might
        why = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise Unavailable(f"the ledger of ledger.url does not answer: {why}") from None


async def _learn_zone(ledger: SqlLedger, zones: dict[str, str], event: Event) -> None:
    """Keep the time zone of an event's venue, for pages that cannot ask for it."""
    venue = await ledger.venue(event.venue_id)
    zones[event.id] = venue.time_zone if venue and venue.time_zone else "UTC"


class _BoxOffice:
    """The box office's services, each with its wires to the others."""

    def __init__(
        self,
        settings: PlatformSettings,
        keys: TicketKeys,
        ledger: SqlLedger,
        claims: SeatClaims,
        provider: PaymentProvider,
        outgoing: SafeHttpClient,
        clock: Clock,
        secret_keys: Secrets,
    ) -> None:
        self.ledger, self.provider, self.clock = ledger, provider, clock
        self.feeds: dict[str, MapFeed] = {}
        self.ids, self.sales = Ids(clock), Sales()
        self.recovery = Recovery(self.sales, claims, ledger, clock)
        wires = {"ids": self.ids, "on_change": self._changed}
        self.holds = HoldService(self.sales, claims, ledger, clock, on_doubt=self.recovery.doubt, **wires)  # type: ignore[arg-type]
        self.browse = Browse(ledger, self.sales, self._states)
        self.issuer = Issuer(keys)
        self.checkout = Checkout(ledger, provider, clock, seats=self.holds, issuer=self.issuer)
        self.purchases = Purchases(self.sales, self.holds, self.checkout, clock)
        self.refunds = Refunds(ledger, provider, clock, seats=self.holds)
        self.waitlist = WaitlistService(self.sales, ledger, claims, self.holds, clock, ids=self.ids)
        self.offering = Offering(self.sales, ledger, claims, self.holds, clock, on_change=self._changed)
        self.resale = Resale(self.sales, ledger, self.holds, ReturnRefunds(ledger), clock)
        self.desk = TicketDesk(ledger, keys)
        with named("mail.url"):
            channels = open_channels(settings.mail_url, settings.messages, ledger, outgoing, clock)
        self.links = MailLinks(secret_keys.key("mail links"), settings.public_url)
        self.receipts = Receipts(ledger, self.desk)
        self.notifier = Notifier(ledger, self.desk, channels, clock, self.links, self.receipts)
        self.webhooks = OrganiserWebhooks(ledger, outgoing, clock)

    def _changed(self, event_id: str, seats: Sequence[int]) -> None:
        feed = self.feeds.get(event_id)
        if feed is not None:
            feed.notify(seats)

    def _states(self, event_id: str) -> bytes | bytearray:
        feed = self.feeds.get(event_id)
        return feed.ring.states if feed is not None else self.sales.get(event_id).seats.states


def _claims(settings: PlatformSettings, clock: Clock) -> tuple[SeatClaims, Any]:
    """The claim store, and how to make the log of an event's map."""
    if not settings.shared:

        def in_memory(event_id: str) -> FrameLog:
            return MemoryFrameLog(clock())

        return MemoryClaims(), in_memory
    from frontrow.boxoffice.adapters.claims.redis import RedisClaims
    from frontrow.boxoffice.adapters.seatmap.redis_frame_log import RedisFrameLog

    return RedisClaims(settings.redis.url), lambda event_id: RedisFrameLog(settings.redis.url, event_id)


def _provider(settings: PlatformSettings, clock: Clock) -> PaymentProvider:
    if settings.stripe.key:
        from frontrow.boxoffice.adapters.payments.stripe import StripeProvider

        stripe = settings.stripe
        return StripeProvider(stripe.key, stripe.webhook_secret, api_base=stripe.api)
    from frontrow.boxoffice.adapters.payments.simulated_journal import JournaledProvider

    return JournaledProvider(clock, settings.folder / "payments.jsonl", webhooks=False)


def _room(
    settings: PlatformSettings, keys: RoomKeys, clock: Clock, given: Clock | None
) -> tuple[WaitingRoom, PlatformRoom, Rooms, HumanChecks]:
    """The waiting room over the same Redis and database as the rest; by `given` if the platform was given a clock."""
    folder = settings.folder / "room"
    audit = settings.ledger_url if settings.shared else str(settings.folder / "room-audit.sqlite")
    server, page = settings.server, settings.room
    store = settings.redis.url or "memory://"
    own = replace(page, store=store, folder=str(folder), audit=audit, by_identity=False)  # each event says by itself
    room = make_room(own, keys, sale_clock=clock, clock=given)
    rules = EntryRules(server.per_person, server.per_ip, page.per_device)
    entry = Entry(rules=rules, trusted_proxies=server.trusted_proxies, processes=server.workers)
    secure = page.secure_cookies or is_https(settings.public_url)
    pages = SiteRoomPages(room, entry, PageSettings(page.brand, (), page.shop_url, secure))
    endpoints = PlatformRoom(room, entry, pages, {}, organiser_key=page.organiser_key)
    checks = HumanChecks(own, keys)
    rooms = Rooms(
        endpoints,
        own.config(),
        clock,
        lambda: Streams(max_open=server.max_streams, heartbeat_s=page.heartbeat_s),
        checks.make,
        page.rules(),
    )
    return room, endpoints, rooms, checks


def _people(settings: PlatformSettings, ledger: SqlLedger, clock: Clock, ids: Ids, known: Secrets) -> People:
    return People(
        ledger,
        open_mail(settings.mail_url),
        clock,
        ids,
        known.key("people"),
        settings=settings.people,
        public_url=settings.public_url,
        limits_url=settings.redis.url or "memory://",
    )


def _signups(
    settings: PlatformSettings,
    ledger: SqlLedger,
    clock: Clock,
    ids: Ids,
    known: Secrets,
    people: People,
    codes: FanCodes,
) -> tuple[Signups, Presales]:
    """Notices of openings, and registration for presales."""
    book, links = SignupBook(ledger), SignupLinks(known.key("sign-ups"), settings.public_url)
    mail = SignupMail(ledger, open_mail(settings.mail_url), people.vault, clock, links)

    async def zone_of(event: Event) -> str:
        venue = await ledger.venue(event.venue_id)
        return venue.time_zone if venue and venue.time_zone else "UTC"

    return (
        Signups(book, mail, people.sign_in_limits, clock, ids, ledger.event, zone_of),
        Presales(book, mail, codes, clock, ledger.event, zone_of, ledger.note),
    )


def _jobs(settings: PlatformSettings, box: _BoxOffice, bus: Any, requests: RequestBook) -> list[Job]:
    """What goes on by itself; `frontrow work` runs the same."""
    if not settings.server.jobs_inside:
        return []

    async def purge() -> None:
        await requests.purge(box.clock() - KEEP_ANSWERS_US)

    more = [
        every("purge answers", purge, 60.0),
        *money_jobs(box.ledger, box.provider, box.clock, box.issuer, seats=box.holds),
        *waitlist_jobs(box.ledger, bus, box.clock, box.offering, box.resale),
    ]
    return box_office_jobs(box.ledger, bus, box.clock, box.notifier, box.webhooks, told=box.holds.expired, more=more)


def _secrets(settings: PlatformSettings) -> Secrets:
    """The secret key; the demo makes its own and keeps it, so that a restart loses no session."""
    if settings.secret.key:
        return Secrets(settings.secret.key.encode())
    path = settings.folder / "secret.key"
    if not path.exists():
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(48))
    return Secrets(path.read_bytes())
