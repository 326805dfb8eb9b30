"""The composition root of the platform: its adapters are chosen and its services are built here.

`open_platform` builds a whole server, `open_jobs` the background jobs of `frontrow work`. Without Redis the server is
embedded: claims, places and limits in memory, a SQLite file, an in-process bus, the journaled simulated provider, a
folder of mails, and all jobs inside. With Redis it uses PostgreSQL, Redis Streams or Kafka, Stripe and SMTP. The
services are the same either way. Whatever is opened here is closed here, in the opposite order.
"""

import contextlib
import functools
import os
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import msgspec

from frontrow.app.notice_wiring import platform_notices, platform_senders
from frontrow.app.organiser_wiring import make_organiser_services, room_figures
from frontrow.app.room_wiring import HumanChecks, ask_for_proofs, make_room, suspect_networks
from frontrow.boxoffice.adapters.bus.from_url import open_bus
from frontrow.boxoffice.adapters.bus.kafka_access import KafkaAccess
from frontrow.boxoffice.adapters.channels.from_settings import (
    MessageSettings,
    close_channel,
    open_channels,
    open_checked_mail,
    open_report_readers,
    open_sms,
    open_sms_limits,
)
from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.requests.idempotency_store import KEPT_US, IdempotencyStore
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.adyen_access import AdyenAccess
from frontrow.boxoffice.adapters.payments.call_cap import CallCap
from frontrow.boxoffice.adapters.payments.from_url import open_providers
from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.adapters.sales_figures.redis_point_log import RedisPointLog
from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.checkout.invoices import Invoices
from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.checkout.visit_keeper import VisitKeeper
from frontrow.boxoffice.events.event_art import EventArt
from frontrow.boxoffice.events.event_listing import EventBrowser
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.events.picture_leftovers import PictureLeftovers
from frontrow.boxoffice.facts.ports import Bus
from frontrow.boxoffice.gate.gate_service import GateService
from frontrow.boxoffice.holds.attempt import AttemptRunner
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.expiry import LedgerClock
from frontrow.boxoffice.holds.held_seats import HeldSeats
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.holds.plain_attempt import PlainAttempts
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.jobs.background_jobs import GROUPS, box_office_jobs, money_jobs
from frontrow.boxoffice.jobs.sales_follower import FollowedSeats, SalesFollower
from frontrow.boxoffice.jobs.waitlist_jobs import WAITLIST_GROUP, waitlist_jobs
from frontrow.boxoffice.messages.channel_reports import ChannelReports
from frontrow.boxoffice.messages.mail_links import MailLinks
from frontrow.boxoffice.messages.notifications import Notifier
from frontrow.boxoffice.messages.organiser_webhooks import OrganiserWebhooks
from frontrow.boxoffice.messages.phone_proofs import PhoneProofs
from frontrow.boxoffice.messages.ports.channels import Channel, InAppWriter
from frontrow.boxoffice.messages.safe_http import SafeHttpClient
from frontrow.boxoffice.messages.webhook_secrets import EndpointSecrets
from frontrow.boxoffice.organiser.brands import Brands
from frontrow.boxoffice.payments.disputes import Disputes
from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.boxoffice.payments.payment_accounts import PaymentAccounts
from frontrow.boxoffice.people.people import People
from frontrow.boxoffice.presale.presales import Presales
from frontrow.boxoffice.presale.signup_mail import SignupLinks, SignupMail
from frontrow.boxoffice.presale.signups import Signups
from frontrow.boxoffice.pricing.discount_code_tries import DiscountCodeLimits
from frontrow.boxoffice.refunds.event_cancellation import EventCancellations
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.boxoffice.refunds.ticket_returns import TicketReturns
from frontrow.boxoffice.seats.map.frame_log import MemoryFrameLogs
from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.boxoffice.seats.ports.seat_map import FrameLogs
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.boxoffice.tickets.ticket_transfers import TicketTransfers
from frontrow.boxoffice.tickets.wallet_passes import WalletPasses, WalletVault
from frontrow.boxoffice.waitlist.offers import OfferWorker
from frontrow.boxoffice.waitlist.waitlist_entries import WaitlistService
from frontrow.core.background_tasks import hear_event_loop
from frontrow.core.clock import Clock, SystemClock
from frontrow.core.errors import ConfigError, FrontrowError, Unavailable
from frontrow.core.settings_loader import load, named
from frontrow.limits.http.client_address import ClientAddress
from frontrow.settings.colours import theme_css
from frontrow.settings.platform import PlatformSettings, read_settings
from frontrow.shared.cookie_headers import is_https
from frontrow.shared.derived_keys import Secrets
from frontrow.shared.heavy_work import HeavyWork
from frontrow.shared.ids import Ids
from frontrow.shared.jobs import Job, every
from frontrow.shared.vault import Vault
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits, EntranceRules
from frontrow.waitingroom.model.idle_visits import PLATFORM_IDLE_S
from frontrow.waitingroom.notices.model import TurnNoticeKind
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.api.api_rules import ApiRules
from frontrow.web.endpoints.booking_views import BookingViews
from frontrow.web.endpoints.bookings import BookingEndpoints
from frontrow.web.endpoints.callers import Callers, OwnBookings, Passes
from frontrow.web.endpoints.event_details import EventViews
from frontrow.web.endpoints.event_list import EventLists
from frontrow.web.endpoints.groups import Endpoints
from frontrow.web.endpoints.holds import HoldEndpoints
from frontrow.web.endpoints.room.join_identity import SessionIdentity
from frontrow.web.endpoints.room.page import PageSettings, RoomPages
from frontrow.web.endpoints.room.room_endpoints import RoomEndpoints
from frontrow.web.endpoints.seat_map import SeatMapEndpoints
from frontrow.web.endpoints.sessions import fan_of
from frontrow.web.guard.address_caps import AddressCaps
from frontrow.web.http.access import booking_token
from frontrow.web.http.brand_styles import ShownBrand, shown_brand
from frontrow.web.observability.telemetry import Telemetry
from frontrow.web.observability.worker_metrics import Board
from frontrow.web.platform.event_openings import Openings
from frontrow.web.platform.event_rooms import Rooms
from frontrow.web.platform.fan_codes import FanCodes
from frontrow.web.platform.live_seats import LiveSeats
from frontrow.web.platform.picture_cache import PictureCache
from frontrow.web.platform.platform import (
    BoxOfficeServices,
    MessagingServices,
    Platform,
    PresaleServices,
    RoomServices,
    ServerServices,
    Stores,
)
from frontrow.web.platform.platform_keys import open_keys
from frontrow.web.platform.visits import RoomVisits
from frontrow.web.server.app import open_sales
from frontrow.web.site.fans.sitemaps import Sitemaps
from frontrow.web.site.fans.waiting_room import SiteSurroundings
from frontrow.web.streams.positions import Streams

if TYPE_CHECKING:
    from frontrow.boxoffice.adapters.claims.redis_memory import RedisMemory
    from frontrow.boxoffice.adapters.ledger.recent_changes import RedisRecentChanges

__all__ = ["Platform", "PlatformSettings", "Secrets", "WorkUrls", "open_jobs", "open_platform", "read_settings"]

REFUSED_BY_POSTGRES: Final = ("28", "3D")  # a wrong user or password, or no such database: waiting would not help
LAG_EVERY_S: Final = 15.0
ALL_GROUPS: Final = (*GROUPS, WAITLIST_GROUP)


class WorkUrls(msgspec.Struct, frozen=True):
    """Where the stores of a box office are, for `frontrow work` without a platform's settings."""

    ledger: str
    bus: str
    mail: str
    keys: Path
    claims: str = "memory:"
    payments: str = ""
    payments_also: tuple[str, ...] = ()
    stripe_key: str = ""
    stripe_api: str = ""
    secret_key: str = ""  # the servers' own; without it, links in messages lead to pages that ask who the reader is
    public_url: str = "http://127.0.0.1:8000"
    bus_access: KafkaAccess = KafkaAccess()
    adyen: AdyenAccess = AdyenAccess()


@dataclass(frozen=True, kw_only=True)
class _Adapters:
    """What a process talks to: stores, the bus, the payment provider, other people's servers."""

    ledger: SqlLedger
    clock: Clock
    claims: SeatClaims
    providers: OpenProviders | None  # without one, no payment is worked on
    webhook_calls: SafeHttpClient
    bus: Bus
    public_url: str
    work: HeavyWork = field(default_factory=HeavyWork)


@contextlib.asynccontextmanager
async def open_platform(settings: PlatformSettings, *, clock: Clock | None = None) -> AsyncIterator[Platform]:
    """Everything one process needs, opened. `frontrow.web.server.app` or `frontrow work` starts its jobs and loops."""
    if settings.room.idle_s < 0:
        settings = replace(settings, room=replace(settings.room, idle_s=PLATFORM_IDLE_S))
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(hear_event_loop())
        ledger = await _open_ledger(settings)
        stack.push_async_callback(ledger.aclose)
        now = clock or await LedgerClock.measure(ledger, SystemClock())
        ledger.due_work.share(now)
        secret_keys = _read_secrets(settings)
        keys = await open_keys(settings, ledger, secret_keys.key("keys"), now())
        claims = _open_claims(settings.redis.url)
        stack.push_async_callback(claims.aclose)
        providers = _platform_providers(settings, ledger, now)
        stack.push_async_callback(providers.aclose)
        outgoing, webhook_calls = SafeHttpClient(), SafeHttpClient(loopback=settings.server.demo)
        for client in (outgoing, webhook_calls):
            stack.push_async_callback(client.aclose)
        with named("bus.url"):
            bus = open_bus(settings.bus_url, ALL_GROUPS, settings.bus.access)
        stack.push_async_callback(bus.aclose)
        work = HeavyWork(settings.server.heavy_processes, memory_mb=settings.server.heavy_memory_mb)
        stack.push_async_callback(work.aclose)
        adapters = _Adapters(
            ledger=ledger,
            clock=now,
            claims=claims,
            providers=providers,
            webhook_calls=webhook_calls,
            bus=bus,
            public_url=settings.public_url,
            work=work,
        )
        stores, ids, issuer = (
            Stores(ledger=ledger, claims=claims, requests=ledger.idempotency),
            Ids(now),
            Issuer(keys.tickets),
        )
        wallet_vault = WalletVault(Vault([secret_keys.key("wallets")]))
        box_office = _make_box_office(settings, adapters, providers, keys.tickets, issuer, ids, wallet_vault)
        stack.push_async_callback(box_office.holds.aclose)
        stack.push_async_callback(box_office.openings.aclose)
        stack.push_async_callback(box_office.code_limits.aclose)
        sms = open_sms(settings.messages, settings.public_url)
        sms_limits = open_sms_limits(settings.messages, settings.redis.url or "memory://", now)
        stack.push_async_callback(sms_limits.aclose)
        with named("mail.url"):
            channels = open_channels(
                settings.mail_url, settings.messages, ledger.messages, outgoing, now, sms=sms, limits=sms_limits
            )
            mail = open_checked_mail(settings.mail_url, settings.messages, ledger.messages, now)
        for one in (*channels, mail):
            stack.push_async_callback(close_channel, one)
        links = MailLinks(secret_keys.key("mail links"), settings.public_url)
        endpoint_secrets = EndpointSecrets(Vault([secret_keys.key("webhooks")]))
        await endpoint_secrets.seal_existing(ledger.messages, now())
        messaging = _make_messaging(
            adapters,
            channels,
            links,
            box_office.renderer,
            box_office.receipts,
            endpoint_secrets,
            reports=ChannelReports(ledger.messages, open_report_readers(settings.messages), now),
            phones=PhoneProofs(ledger.messages, sms, sms_limits, now, secret_keys.key("phone codes")),
        )
        openings, browse = box_office.openings, box_office.browse
        people = _make_people(settings, ledger, mail, now, ids, secret_keys, messaging.notifier)
        stack.push_async_callback(people.aclose)
        zones: dict[str, str] = {}
        brands = Brands(ledger, now, work)
        await brands.refresh()
        caps = _make_stream_caps(settings)
        senders = platform_senders(settings, ledger.messages, mail, sms, sms_limits)
        room, endpoints, rooms, checks = _make_room(
            settings,
            keys.room,
            now,
            clock,
            people,
            openings,
            zones,
            caps,
            brands,
            box_office.renderer.art,
            tuple(senders),
        )
        notices = platform_notices(settings, senders, room, now)
        stack.push_async_callback(endpoints.entry.aclose)
        stack.push_async_callback(checks.aclose)
        stack.push_async_callback(room.aclose)
        stack.push_async_callback(notices.aclose)
        stack.push_async_callback(rooms.aclose)
        limits = endpoints.context.limits
        passes = Passes(room, limits)
        box_office.checkout.has_queue = lambda event_id: (
            (known := room_figures(room, event_id)) is not None and bool(known.waiting)
        )
        views = EventViews(
            openings.events, openings.maps, browse, ledger.browsing.catalogue, box_office.feeds, limits.count
        )
        api_rules = _make_api_rules(settings)
        if api_rules is not None:
            stack.push_async_callback(api_rules.aclose)
        live = LiveSeats(settings.server.max_streams, caps)
        stack.push_async_callback(live.aclose)

        async def forget(event_id: str) -> None:
            await rooms.close(event_id)
            browse.forget(event_id)
            box_office.waitlist.forget(event_id)
            views.forget(event_id)

        openings.watch(rooms.open)
        openings.watch(functools.partial(_learn_zone, ledger, zones))
        openings.on_open(live.opened)
        openings.on_close(forget)
        telemetry = Telemetry(settings.overload, Board.of_workers(settings.folder, settings.server.workers))
        point_log = RedisPointLog(settings.redis.url) if settings.redis.url else None
        if point_log is not None:
            stack.push_async_callback(point_log.aclose)
        organiser = make_organiser_services(
            ledger=ledger,
            claims=claims,
            issuer=issuer,
            seats=box_office.holds.held,
            refunds=box_office.refunds,
            transfers=box_office.transfers,
            messaging=messaging,
            room=room,
            openings=openings,
            feeds=box_office.feeds,
            clock=now,
            ids=ids,
            room_defaults=settings.room.rules(),
            human_checks=settings.room.human_checks,
            work=adapters.work,
            endpoint_secrets=endpoint_secrets,
            wallet_vault=wallet_vault,
            speeds=telemetry.speeds,
            recent_speeds=telemetry.recent_speeds,
            mail=mail,
            vault=people.vault,
            public_url=settings.public_url,
            seller_of=box_office.receipts.seller_of,
            message_key=secret_keys.key("buyer messages"),
            point_log=point_log,
        )
        stack.push_async_callback(organiser.live.aclose)
        changes = _open_recent_changes(settings) if ledger.replica else None
        if changes is not None:
            stack.push_async_callback(changes.aclose)
        presale = _make_presale(settings, ledger, mail, now, ids, secret_keys, people, organiser.codes)
        room_visits = RoomVisits(room)
        visits = VisitKeeper(ledger, room_visits, now, room_visits.visited)
        jobs = [Job("openings", openings.run), Job("rooms", rooms.run), Job("visits", visits.run)]
        jobs.append(Job("turn notices", notices.run))
        if settings.redis.url:
            memory = _open_redis_memory(settings)
            stack.push_async_callback(memory.aclose)
            jobs.append(every("redis memory", functools.partial(_measure_memory, memory, telemetry), LAG_EVERY_S))
        jobs += [every("bus lag", functools.partial(_measure_lag, bus, telemetry), LAG_EVERY_S), brands.job()]
        if ledger.replica is not None:
            await ledger.replica.look()
            jobs.append(Job("replica", ledger.replica.run))
        jobs += organiser.jobs(ledger.due_work, inside=settings.server.jobs_inside)
        if settings.server.jobs_inside:
            purge = every("purge answers", functools.partial(_purge_answers, stores.requests, now), 60.0)
            jobs += _make_jobs(
                adapters,
                issuer,
                messaging,
                box_office.holds.held,
                box_office.offering,
                box_office.resale,
                beside=[purge],
            )
            jobs += [*people.jobs(), *presale.signups.jobs(), presale.presales.job(ledger.due_work)]
        callers = Callers(people.sessions, room, endpoints.entry, secret_keys, now, settings.public_url)
        own_bookings = OwnBookings(ledger, people, box_office.purchases, room)
        booking_views = BookingViews(
            box_office.sales, box_office.renderer, box_office.receipts, box_office.checkout, ledger.catalogue, now
        )
        platform = Platform(
            settings=settings,
            clock=now,
            ids=ids,
            secrets=secret_keys,
            stores=stores,
            box_office=box_office,
            people=people,
            messaging=messaging,
            presale=presale,
            organiser=organiser,
            brands=brands,
            room=RoomServices(service=room, passes=passes, notices=notices),
            callers=callers,
            own_bookings=own_bookings,
            booking_views=booking_views,
            endpoints=Endpoints(
                room=endpoints,
                holds=HoldEndpoints(
                    box_office.holds,
                    box_office.purchases,
                    endpoints.entry,
                    passes,
                    functools.partial(booking_token, secret_keys),
                ),
                seat_map=SeatMapEndpoints(box_office.feeds, live.streams, endpoints.entry, limits.count),
                events=views,
                event_list=EventLists(browse, lambda: ledger.catalogue.version + openings.follower.changes),
                bookings=BookingEndpoints(
                    callers, limits.count, own_bookings, booking_views, box_office.purchases, people, now
                ),
            ),
            server=ServerServices(
                limiter=endpoints.entry,
                sitemaps=Sitemaps(ledger.browsing.catalogue, settings.public_url, now),
                pictures=PictureCache(ledger.pictures),
                work=adapters.work,
                telemetry=telemetry,
                rules=api_rules,
                changes=changes,
            ),
            jobs=tuple(jobs),
        )
        yield platform


@contextlib.asynccontextmanager
async def open_jobs(work: PlatformSettings | WorkUrls) -> AsyncIterator[Sequence[Job]]:
    """The jobs of `frontrow work`: those of a platform, or those of a ledger alone."""
    if isinstance(work, PlatformSettings):
        async with open_platform(work) as platform, open_sales(platform, rooms=False):
            yield platform.jobs
        return
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(hear_event_loop())
        ledger = await open_ledger(work.ledger)
        stack.push_async_callback(ledger.aclose)
        clock = await LedgerClock.measure(ledger, SystemClock())
        ledger.due_work.share(clock)
        bus = open_bus(work.bus, ALL_GROUPS, work.bus_access)
        stack.push_async_callback(bus.aclose)
        claims = _open_claims("" if work.claims == "memory:" else work.claims)
        stack.push_async_callback(claims.aclose)
        providers = open_providers(
            work.payments,
            work.payments_also,
            clock,
            stripe_key=work.stripe_key,
            stripe_api=work.stripe_api,
            public_url=work.public_url,
            adyen=work.adyen,
            notes=ledger.provider_notes,
        )
        if providers is not None:
            stack.push_async_callback(providers.aclose)
        outgoing = SafeHttpClient()
        stack.push_async_callback(outgoing.aclose)
        adapters = _Adapters(
            ledger=ledger,
            clock=clock,
            claims=claims,
            providers=providers,
            webhook_calls=outgoing,
            bus=bus,
            public_url=work.public_url,
        )
        keys = TicketKeys.opened(work.keys)
        settings = load(MessageSettings, "messages")
        limits = open_sms_limits(settings, "memory://", clock)  # this worker's own count
        stack.push_async_callback(limits.aclose)
        sms = open_sms(settings, work.public_url)
        channels = open_channels(work.mail, settings, ledger.messages, outgoing, clock, sms=sms, limits=limits)
        for one in channels:
            stack.push_async_callback(close_channel, one)
        given = Secrets(work.secret_key.encode()) if work.secret_key else None
        renderer = TicketRenderer(ledger, keys)
        messaging = _make_messaging(
            adapters,
            channels,
            MailLinks(given.key("mail links") if given else b"", work.public_url),
            renderer,
            Receipts(ledger, renderer),
            EndpointSecrets(Vault([given.key("webhooks")]) if given else None),
        )
        yield _ledger_jobs(adapters, Issuer(keys), messaging)


def _ledger_jobs(adapters: _Adapters, issuer: Issuer, messaging: MessagingServices) -> list[Job]:
    """The jobs of a ledger alone: this process follows the catalogue by itself and serves no pages."""
    ledger, claims, clock, sales = adapters.ledger, adapters.claims, adapters.clock, Sales()
    seats = FollowedSeats(sales, HeldSeats(sales, claims, ledger, clock))
    beside = [
        Job("catalogue", SalesFollower(ledger.catalogue, sales, claims, Recovery(sales, claims, ledger, clock)).run)
    ]
    if adapters.providers is not None:
        refunds = Refunds(ledger, adapters.providers, clock, seats=seats)
        beside.insert(0, EventCancellations(ledger.organiser, refunds, clock).job(ledger.due_work))
    offering = OfferWorker(sales, ledger, claims, seats, clock)
    resale = TicketReturns(sales, ledger, seats, ReturnRefunds(ledger), clock)
    return _make_jobs(adapters, issuer, messaging, seats, offering, resale, beside=beside)


def _make_jobs(
    adapters: _Adapters,
    issuer: Issuer,
    messaging: MessagingServices,
    seats: HeldSeats | FollowedSeats,
    offering: OfferWorker,
    resale: TicketReturns,
    *,
    beside: Sequence[Job],
) -> list[Job]:
    """The jobs of every box office, whether they run in a server or in `frontrow work`."""
    ledger, bus, clock, providers = adapters.ledger, adapters.bus, adapters.clock, adapters.providers
    more: list[Job] = []
    if providers is not None:
        default = cast(GuardedProvider, providers.default)
        half = max(1, default.cap.at_once // 2)  # the other half is for fans who pay
        more += money_jobs(ledger, providers, clock, issuer, seats=seats, at_once=half, public_url=adapters.public_url)
    more += [*beside, PictureLeftovers(ledger.pictures, clock).job()]
    more += waitlist_jobs(ledger, bus, clock, offering, resale)
    return box_office_jobs(
        ledger, bus, clock, messaging.notifier, messaging.webhooks, on_expired=seats.expired, more=more
    )


async def _measure_lag(bus: Bus, telemetry: Telemetry) -> None:
    telemetry.bus_lag = await bus.measure_lag(ALL_GROUPS)


async def _measure_memory(memory: "RedisMemory", telemetry: Telemetry) -> None:
    telemetry.redis_memory = await memory.read()


async def _purge_answers(requests: IdempotencyStore, clock: Clock) -> None:
    await requests.purge(clock() - KEPT_US)


async def _open_ledger(settings: PlatformSettings) -> SqlLedger:
    """Make the folder and open the ledger. An error says in one sentence what is wrong with which setting."""
    try:
        settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigError(f"server.folder cannot be used: {error.strerror}", param="server.folder") from None
    try:
        with named("ledger.url"):
            ledger = await open_ledger(
                settings.ledger_url,
                warm=True,
                read_url=settings.ledger.read_url,
                read_max_lag_s=settings.ledger.read_max_lag_s,
            )
    except FrontrowError:
        raise
    except Exception as error:  # the driver's own, of any class; its words may hold no password, its address might
        why = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        if getattr(error, "sqlstate", "")[:2] in REFUSED_BY_POSTGRES:
            raise ConfigError(f"ledger.url: {why}", param="ledger.url") from None
        raise Unavailable(f"the ledger of ledger.url does not answer: {why}") from None
    return ledger


async def _learn_zone(ledger: SqlLedger, zones: dict[str, str], event: Event) -> None:
    """Keep the time zone of an event's venue, for pages that cannot ask for it."""
    zones[event.id] = await _zone_of(ledger, event)


async def _zone_of(ledger: SqlLedger, event: Event) -> str:
    venue = await ledger.catalogue.venue(event.venue_id)
    return venue.time_zone if venue and venue.time_zone else "UTC"


def _make_box_office(
    settings: PlatformSettings,
    adapters: _Adapters,
    providers: OpenProviders,
    keys: TicketKeys,
    issuer: Issuer,
    ids: Ids,
    wallet_vault: WalletVault,
) -> BoxOfficeServices:
    """The box office's services. Seats that change are shown on the live maps of `feeds`."""
    ledger, claims, clock = adapters.ledger, adapters.claims, adapters.clock
    feeds: dict[str, MapFeed] = {}
    sales = Sales()

    def show_changes(event_id: str, seats: Sequence[int]) -> None:
        feed = feeds.get(event_id)
        if feed is not None:
            feed.notify(seats)

    def states_of(event_id: str) -> bytes | bytearray:
        feed = feeds.get(event_id)
        return feed.ring.states if feed is not None else sales.get(event_id).seats.states

    recovery = Recovery(sales, claims, ledger, clock)
    holds = HoldService(
        sales,
        claims,
        ledger,
        clock,
        ids=ids,
        on_change=show_changes,
        on_doubt=recovery.doubt,
        attempts=PlainAttempts if settings.server.plain_holds else AttemptRunner,
    )
    accounts = PaymentAccounts(ledger, providers, clock)
    checkout = Checkout(
        ledger,
        providers,
        clock,
        seats=holds.held,
        issuer=issuer,
        public_url=settings.public_url,
        payees=accounts,
        listeners=(accounts, Disputes(ledger, clock)),
    )
    refunds = Refunds(ledger, providers, clock, seats=holds.held)
    renderer = TicketRenderer(ledger, keys, adapters.work)
    return BoxOfficeServices(
        openings=Openings(ledger.catalogue, sales, claims, recovery, clock, feeds, _open_frame_logs(settings, clock)),
        sales=sales,
        browse=EventBrowser(ledger.browsing.catalogue, sales, states_of),
        feeds=feeds,
        holds=holds,
        recovery=recovery,
        providers=providers,
        accounts=accounts,
        checkout=checkout,
        purchases=Purchases(sales, holds, checkout, clock),
        code_limits=DiscountCodeLimits(settings.redis.url or "memory://", clock),
        refunds=refunds,
        waitlist=WaitlistService(sales, ledger, claims, holds.held, clock, ids=ids),
        offering=OfferWorker(sales, ledger, claims, holds.held, clock, on_change=show_changes),
        resale=TicketReturns(sales, ledger, holds.held, ReturnRefunds(ledger), clock),
        transfers=TicketTransfers(ledger, issuer, clock, ids),
        renderer=renderer,
        gates=GateService(ledger, keys, renderer),
        receipts=(receipts := Receipts(ledger, renderer)),
        invoices=Invoices(ledger, receipts, renderer, clock, adapters.work),
        wallets=WalletPasses(ledger, renderer, receipts, wallet_vault, clock),
    )


def _make_messaging(
    adapters: _Adapters,
    channels: list[Channel],
    links: MailLinks,
    renderer: TicketRenderer,
    receipts: Receipts,
    endpoint_secrets: EndpointSecrets,
    *,
    reports: ChannelReports | None = None,
    phones: PhoneProofs | None = None,
) -> MessagingServices:
    """`reports` and `phones` are for processes that answer people."""
    ledger, clock = adapters.ledger, adapters.clock
    return MessagingServices(
        reports=reports,
        phones=phones,
        notifier=Notifier(ledger, renderer, channels, clock, links, receipts),
        webhooks=OrganiserWebhooks(ledger.messages, adapters.webhook_calls, clock, endpoint_secrets),
        links=links,
    )


def _open_claims(redis_url: str) -> SeatClaims:
    """The claim store: the servers' Redis, or one in this process that is filled from the ledger."""
    if not redis_url:
        return MemoryClaims()
    from frontrow.boxoffice.adapters.claims.redis import RedisClaims

    return RedisClaims(redis_url)


def _open_recent_changes(settings: PlatformSettings) -> "RedisRecentChanges":
    """Who changed something a moment ago, and must not be answered by a replica that does not know it yet."""
    from frontrow.boxoffice.adapters.ledger.recent_changes import RedisRecentChanges

    return RedisRecentChanges(settings.redis.url, settings.ledger.read_max_lag_s)


def _open_redis_memory(settings: PlatformSettings) -> "RedisMemory":
    from frontrow.boxoffice.adapters.claims.redis_memory import RedisMemory

    return RedisMemory(settings.redis.url)


def _open_frame_logs(settings: PlatformSettings, clock: Clock) -> FrameLogs:
    """The logs of the events' maps."""
    if not settings.shared:
        return MemoryFrameLogs(clock)
    from frontrow.boxoffice.adapters.seat_map.redis_frame_log import RedisFrameLogs

    return RedisFrameLogs(settings.redis.url)


def _platform_providers(settings: PlatformSettings, ledger: SqlLedger, clock: Clock) -> OpenProviders:
    stripe, payments = settings.stripe, settings.payments
    with named("payments.url"):
        providers = open_providers(
            settings.deployment.payments_url,
            payments.also,
            clock,
            stripe_key=stripe.key,
            webhook_secret=stripe.webhook_secret,
            connect_secret=stripe.connect_secret,
            stripe_api=stripe.api,
            public_url=settings.public_url,
            methods=payments.methods,
            adyen=settings.adyen.access,
            notes=ledger.provider_notes,
            cap=lambda: CallCap(payments.max_in_flight, settings.redis.url or "memory://"),
        )
    assert providers is not None
    return providers


def _make_room(
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


def _make_stream_caps(settings: PlatformSettings) -> AddressCaps:
    """How many live streams one address may have, over all rooms and maps of this process."""
    overload, proxies = settings.overload, ClientAddress(settings.server.trusted_proxies)
    return AddressCaps(overload.max_streams_per_address, overload.uncapped, proxies.is_proxy)


def _make_api_rules(settings: PlatformSettings) -> ApiRules | None:
    if settings.limits is None:
        return None
    store, proxies = settings.redis.url or "memory://", settings.server.trusted_proxies
    return ApiRules(settings.limits, store=store, trusted_proxies=proxies)


def _make_people(
    settings: PlatformSettings,
    ledger: SqlLedger,
    mail: Channel,
    clock: Clock,
    ids: Ids,
    secret_keys: Secrets,
    writer: InAppWriter,
) -> People:
    return People(
        ledger,
        mail,
        clock,
        ids,
        secret_keys.key("people"),
        settings=settings.people,
        public_url=settings.public_url,
        limits_url=settings.redis.url or "memory://",
        writer=writer,
    )


def _make_presale(
    settings: PlatformSettings,
    ledger: SqlLedger,
    mail_channel: Channel,
    clock: Clock,
    ids: Ids,
    secret_keys: Secrets,
    people: People,
    codes: FanCodes,
) -> PresaleServices:
    book, links = ledger.signups, SignupLinks(secret_keys.key("sign-ups"), settings.public_url)
    mail = SignupMail(ledger.messages, mail_channel, people.vault, clock, links)
    zone_of = functools.partial(_zone_of, ledger)
    return PresaleServices(
        signups=Signups(book, mail, people.sign_in_limits, clock, ids, ledger.catalogue.event, zone_of),
        presales=Presales(book, mail, codes, clock, ledger.catalogue.event, zone_of, ledger.organiser.note),
    )


def _read_secrets(settings: PlatformSettings) -> Secrets:
    """The secret key. The demo makes its own and keeps it, so that a restart loses no session."""
    if settings.secret.key:
        return Secrets(settings.secret.key.encode())
    path = settings.folder / "secret.key"
    if not path.exists():
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(48))
    return Secrets(path.read_bytes())
