"""Builds the background jobs of a process: those of a whole server, or those of a ledger alone."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import msgspec

from frontrow.app.box_office_wiring import Adapters
from frontrow.app.message_wiring import make_messaging
from frontrow.app.store_wiring import open_claims
from frontrow.boxoffice.adapters.bus.from_url import open_bus
from frontrow.boxoffice.adapters.bus.kafka_access import KafkaAccess
from frontrow.boxoffice.adapters.channels.from_settings import (
    MessageSettings,
    close_channel,
    open_channels,
    open_sms,
    open_sms_limits,
)
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.requests.idempotency_store import IdempotencyStore
from frontrow.boxoffice.adapters.payments.adyen_access import AdyenAccess
from frontrow.boxoffice.adapters.payments.from_url import open_providers
from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.events.picture_leftovers import PictureLeftovers
from frontrow.boxoffice.facts.ports import Bus
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.expiry import LedgerClock
from frontrow.boxoffice.holds.held_seats import HeldSeats
from frontrow.boxoffice.jobs.background_jobs import GROUPS, box_office_jobs, money_jobs
from frontrow.boxoffice.jobs.sales_follower import FollowedSeats, SalesFollower
from frontrow.boxoffice.jobs.waitlist_jobs import WAITLIST_GROUP, waitlist_jobs
from frontrow.boxoffice.messages.mail_links import MailLinks
from frontrow.boxoffice.messages.safe_http import SafeHttpClient
from frontrow.boxoffice.messages.webhook_secrets import EndpointSecrets
from frontrow.boxoffice.refunds.event_cancellation import EventCancellations
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.boxoffice.refunds.ticket_returns import TicketReturns
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.boxoffice.waitlist.offers import OfferWorker
from frontrow.core.background_tasks import hear_event_loop
from frontrow.core.clock import Clock, SystemClock
from frontrow.core.settings_loader import load
from frontrow.shared.derived_keys import Secrets
from frontrow.shared.jobs import Job
from frontrow.shared.vault import Vault
from frontrow.web.api.idempotency import KEPT_US
from frontrow.web.observability.telemetry import Telemetry
from frontrow.web.platform.platform import MessagingServices

if TYPE_CHECKING:
    from frontrow.boxoffice.adapters.claims.redis_memory import RedisMemory

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


@contextlib.asynccontextmanager
async def open_ledger_jobs(work: WorkUrls) -> AsyncIterator[Sequence[Job]]:
    """The jobs of a ledger alone, with what they need, opened. The platform's settings are not read."""
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(hear_event_loop())
        ledger = await open_ledger(work.ledger)
        stack.push_async_callback(ledger.aclose)
        clock = await LedgerClock.measure(ledger, SystemClock())
        ledger.due_work.share(clock)
        bus = open_bus(work.bus, ALL_GROUPS, work.bus_access)
        stack.push_async_callback(bus.aclose)
        claims = open_claims("" if work.claims == "memory:" else work.claims)
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
        adapters = Adapters(
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
        messaging = make_messaging(
            adapters,
            channels,
            MailLinks(given.key("mail links") if given else b"", work.public_url),
            renderer,
            Receipts(ledger, renderer),
            EndpointSecrets(Vault([given.key("webhooks")]) if given else None),
        )
        yield _ledger_jobs(adapters, Issuer(keys), messaging)


def _ledger_jobs(adapters: Adapters, issuer: Issuer, messaging: MessagingServices) -> list[Job]:
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
    return make_jobs(adapters, issuer, messaging, seats, offering, resale, beside=beside)


def make_jobs(
    adapters: Adapters,
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


async def measure_lag(bus: Bus, telemetry: Telemetry) -> None:
    telemetry.bus_lag = await bus.measure_lag(ALL_GROUPS)


async def measure_memory(memory: "RedisMemory", telemetry: Telemetry) -> None:
    telemetry.redis_memory = await memory.read()


async def purge_answers(requests: IdempotencyStore, clock: Clock) -> None:
    await requests.purge(clock() - KEPT_US)
