"""The composition root of the platform: its adapters are chosen and its services are built here.

`open_platform` builds a whole server, `open_jobs` the background jobs of `frontrow work`. Without Redis the server is
embedded: claims, places and limits in memory, a SQLite file, an in-process bus, the journaled simulated provider, a
folder of mails, and all jobs inside. With Redis it uses PostgreSQL, Redis Streams or Kafka, Stripe and SMTP. The
services are the same either way. Whatever is opened here is closed here, in the opposite order.

The parts are chosen and built beside this file, by system: `store_wiring` (ledger, claims, Redis), `payment_wiring`,
`message_wiring`, `people_wiring`, `box_office_wiring`, `organiser_wiring`, `event_room_wiring` and `job_wiring`.
"""

import contextlib
import functools
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final

from frontrow.app.box_office_wiring import Adapters, make_box_office
from frontrow.app.event_room_wiring import make_event_rooms
from frontrow.app.job_wiring import (
    ALL_GROUPS,
    WorkUrls,
    make_jobs,
    measure_lag,
    measure_memory,
    open_ledger_jobs,
    purge_answers,
)
from frontrow.app.message_wiring import make_messaging
from frontrow.app.notice_wiring import platform_notices, platform_senders
from frontrow.app.organiser_wiring import make_organiser_services, room_figures
from frontrow.app.payment_wiring import platform_providers
from frontrow.app.people_wiring import learn_zone, make_people, make_presale
from frontrow.app.store_wiring import (
    open_claims,
    open_platform_ledger,
    open_recent_changes,
    open_redis_memory,
    read_secrets,
)
from frontrow.boxoffice.adapters.bus.from_url import open_bus
from frontrow.boxoffice.adapters.channels.from_settings import (
    close_channel,
    open_channels,
    open_checked_mail,
    open_report_readers,
    open_sms,
    open_sms_limits,
)
from frontrow.boxoffice.adapters.sales_figures.redis_point_log import RedisPointLog
from frontrow.boxoffice.checkout.visit_keeper import VisitKeeper
from frontrow.boxoffice.holds.expiry import LedgerClock
from frontrow.boxoffice.messages.channel_reports import ChannelReports
from frontrow.boxoffice.messages.mail_links import MailLinks
from frontrow.boxoffice.messages.phone_proofs import PhoneProofs
from frontrow.boxoffice.messages.safe_http import SafeHttpClient
from frontrow.boxoffice.messages.webhook_secrets import EndpointSecrets
from frontrow.boxoffice.organiser.brands import Brands
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.boxoffice.tickets.wallet_passes import WalletVault
from frontrow.core.background_tasks import hear_event_loop
from frontrow.core.clock import Clock, SystemClock
from frontrow.core.settings_loader import named
from frontrow.limits.http.client_address import ClientAddress
from frontrow.settings.platform import PlatformSettings, read_settings
from frontrow.shared.derived_keys import Secrets
from frontrow.shared.heavy_work import HeavyWork
from frontrow.shared.ids import Ids
from frontrow.shared.jobs import Job, every
from frontrow.shared.vault import Vault
from frontrow.waitingroom.model.idle_visits import PLATFORM_IDLE_S
from frontrow.web.api.api_rules import ApiRules
from frontrow.web.endpoints.booking_views import BookingViews
from frontrow.web.endpoints.bookings import BookingEndpoints
from frontrow.web.endpoints.callers import Callers, OwnBookings, Passes
from frontrow.web.endpoints.event_details import EventViews
from frontrow.web.endpoints.event_list import EventLists
from frontrow.web.endpoints.groups import Endpoints
from frontrow.web.endpoints.holds import HoldEndpoints
from frontrow.web.endpoints.seat_map import SeatMapEndpoints
from frontrow.web.guard.address_caps import AddressCaps
from frontrow.web.http.access import booking_token
from frontrow.web.observability.telemetry import Telemetry
from frontrow.web.observability.worker_metrics import Board
from frontrow.web.platform.live_seats import LiveSeats
from frontrow.web.platform.picture_cache import PictureCache
from frontrow.web.platform.platform import Platform, RoomServices, ServerServices, Stores
from frontrow.web.platform.platform_keys import open_keys
from frontrow.web.platform.visits import RoomVisits
from frontrow.web.server.app import open_sales
from frontrow.web.site.fans.sitemaps import Sitemaps

__all__ = ["Platform", "PlatformSettings", "Secrets", "WorkUrls", "open_jobs", "open_platform", "read_settings"]

LAG_EVERY_S: Final = 15.0


@contextlib.asynccontextmanager
async def open_platform(settings: PlatformSettings, *, clock: Clock | None = None) -> AsyncIterator[Platform]:
    """Everything one process needs, opened. `frontrow.web.server.app` or `frontrow work` starts its jobs and loops."""
    if settings.room.idle_s < 0:
        settings = replace(settings, room=replace(settings.room, idle_s=PLATFORM_IDLE_S))
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(hear_event_loop())
        ledger = await open_platform_ledger(settings)
        stack.push_async_callback(ledger.aclose)
        now = clock or await LedgerClock.measure(ledger, SystemClock())
        ledger.due_work.share(now)
        secret_keys = read_secrets(settings)
        keys = await open_keys(settings, ledger, secret_keys.key("keys"), now())
        claims = open_claims(settings.redis.url)
        stack.push_async_callback(claims.aclose)
        providers = platform_providers(settings, ledger, now)
        stack.push_async_callback(providers.aclose)
        outgoing, webhook_calls = SafeHttpClient(), SafeHttpClient(loopback=settings.server.demo)
        for client in (outgoing, webhook_calls):
            stack.push_async_callback(client.aclose)
        with named("bus.url"):
            bus = open_bus(settings.bus_url, ALL_GROUPS, settings.bus.access)
        stack.push_async_callback(bus.aclose)
        work = HeavyWork(settings.server.heavy_processes, memory_mb=settings.server.heavy_memory_mb)
        stack.push_async_callback(work.aclose)
        adapters = Adapters(
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
        box_office = make_box_office(settings, adapters, providers, keys.tickets, issuer, ids, wallet_vault)
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
        messaging = make_messaging(
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
        people = make_people(settings, ledger, mail, now, ids, secret_keys, messaging.notifier)
        stack.push_async_callback(people.aclose)
        zones: dict[str, str] = {}
        brands = Brands(ledger, now, work)
        await brands.refresh()
        caps = _make_stream_caps(settings)
        senders = platform_senders(settings, ledger.messages, mail, sms, sms_limits)
        art = box_office.renderer.art
        room, endpoints, rooms, checks = make_event_rooms(
            settings, keys.room, now, clock, people, openings, zones, caps, brands, art, tuple(senders)
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
        openings.watch(functools.partial(learn_zone, ledger, zones))
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
        changes = open_recent_changes(settings) if ledger.replica else None
        if changes is not None:
            stack.push_async_callback(changes.aclose)
        presale = make_presale(settings, ledger, mail, now, ids, secret_keys, people, organiser.codes)
        room_visits = RoomVisits(room)
        visits = VisitKeeper(ledger, room_visits, now, room_visits.visited)
        jobs = [Job("openings", openings.run), Job("rooms", rooms.run), Job("visits", visits.run)]
        jobs.append(Job("turn notices", notices.run))
        if settings.redis.url:
            memory = open_redis_memory(settings)
            stack.push_async_callback(memory.aclose)
            jobs.append(every("redis memory", functools.partial(measure_memory, memory, telemetry), LAG_EVERY_S))
        jobs += [every("bus lag", functools.partial(measure_lag, bus, telemetry), LAG_EVERY_S), brands.job()]
        if ledger.replica is not None:
            await ledger.replica.look()
            jobs.append(Job("replica", ledger.replica.run))
        jobs += organiser.jobs(ledger.due_work, inside=settings.server.jobs_inside)
        if settings.server.jobs_inside:
            purge = every("purge answers", functools.partial(purge_answers, stores.requests, now), 60.0)
            jobs += make_jobs(
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
    async with open_ledger_jobs(work) as jobs:
        yield jobs


def _make_stream_caps(settings: PlatformSettings) -> AddressCaps:
    """How many live streams one address may have, over all rooms and maps of this process."""
    overload, proxies = settings.overload, ClientAddress(settings.server.trusted_proxies)
    return AddressCaps(overload.max_streams_per_address, overload.uncapped, proxies.is_proxy)


def _make_api_rules(settings: PlatformSettings) -> ApiRules | None:
    if settings.limits is None:
        return None
    store, proxies = settings.redis.url or "memory://", settings.server.trusted_proxies
    return ApiRules(settings.limits, store=store, trusted_proxies=proxies)
