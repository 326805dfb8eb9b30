"""The platform as its handlers see it: every service and endpoint of one process, in groups. `frontrow.app.wiring`
builds it.

Nothing is changed after construction. The groups are frozen and take their parts by name.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Protocol

from frontrow.boxoffice.adapters.ledger.requests.idempotency_store import IdempotencyStore
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.checkout.invoices import Invoices
from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.events.event_listing import EventBrowser
from frontrow.boxoffice.gate.gate_service import GateService
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.expiry import LedgerClock
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.messages.channel_reports import ChannelReports
from frontrow.boxoffice.messages.mail_links import MailLinks
from frontrow.boxoffice.messages.notifications import Notifier
from frontrow.boxoffice.messages.organiser_webhooks import OrganiserWebhooks
from frontrow.boxoffice.messages.phone_proofs import PhoneProofs
from frontrow.boxoffice.organiser.brands import Brands
from frontrow.boxoffice.organiser.ports.recent_changes import RecentChanges
from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.boxoffice.payments.payment_accounts import PaymentAccounts
from frontrow.boxoffice.payments.ports import PaymentProvider
from frontrow.boxoffice.people.people import People
from frontrow.boxoffice.ports import ReadLedger
from frontrow.boxoffice.presale.presales import Presales
from frontrow.boxoffice.presale.signups import Signups
from frontrow.boxoffice.pricing.discount_code_tries import DiscountCodeLimits
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.refunds.ticket_returns import TicketReturns
from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.boxoffice.tickets.ticket_transfers import TicketTransfers
from frontrow.boxoffice.tickets.wallet_passes import WalletPasses
from frontrow.boxoffice.waitlist.offers import OfferWorker
from frontrow.boxoffice.waitlist.waitlist_entries import WaitlistService
from frontrow.core.clock import Clock
from frontrow.core.errors import NotFound
from frontrow.settings.platform import PlatformSettings
from frontrow.shared.derived_keys import Secrets
from frontrow.shared.heavy_work import HeavyWork
from frontrow.shared.ids import Ids
from frontrow.shared.jobs import Job
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits
from frontrow.waitingroom.notices.turn_notices import TurnNotices
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.booking_views import BookingViews
from frontrow.web.endpoints.callers import Callers, OwnBookings, Passes
from frontrow.web.endpoints.groups import Endpoints
from frontrow.web.observability.telemetry import Telemetry
from frontrow.web.platform.event_openings import Openings
from frontrow.web.platform.organiser_services import OrganiserServices
from frontrow.web.platform.picture_cache import PictureCache


@dataclass(frozen=True, kw_only=True)
class Stores:
    """Where this process keeps things: the ledger, the claims on seats, the answers to idempotent requests."""

    ledger: SqlLedger
    claims: SeatClaims
    requests: IdempotencyStore


@dataclass(frozen=True, kw_only=True)
class BoxOfficeServices:
    """Everything between an event on sale and a ticket."""

    openings: Openings
    sales: Sales
    browse: EventBrowser
    feeds: dict[str, MapFeed]
    holds: HoldService
    recovery: Recovery
    providers: OpenProviders
    accounts: PaymentAccounts
    checkout: Checkout
    purchases: Purchases
    code_limits: DiscountCodeLimits
    refunds: Refunds
    waitlist: WaitlistService
    offering: OfferWorker
    resale: TicketReturns
    transfers: TicketTransfers
    renderer: TicketRenderer
    gates: GateService
    receipts: Receipts
    invoices: Invoices
    wallets: WalletPasses

    @property
    def provider(self) -> PaymentProvider:
        """The provider that takes new payments."""
        return self.providers.default


@dataclass(frozen=True, kw_only=True)
class MessagingServices:
    """Messages to fans and to organisers' servers."""

    notifier: Notifier
    webhooks: OrganiserWebhooks
    links: MailLinks
    reports: ChannelReports | None = None
    phones: PhoneProofs | None = None


@dataclass(frozen=True, kw_only=True)
class PresaleServices:
    """Notices of openings, and registration for presales."""

    signups: Signups
    presales: Presales


@dataclass(frozen=True, kw_only=True)
class RoomServices:
    """The waiting room: the service, the passes it gives, and the notices before the turn."""

    service: WaitingRoom
    passes: Passes
    notices: TurnNotices


class RequestRules(Protocol):
    """The rules of `[limits]` (`api.api_rules`)."""

    def applies_to(self, method: str, path: str) -> bool:
        """Whether a rule applies to requests of this method and path."""

    async def check(self, connection: Any) -> None:
        """Count a request by the rules that apply to it. Raises `TooManyRequests`."""


class SitemapFiles(Protocol):
    """The sitemaps of all public events (`site.fans.sitemaps`)."""

    async def whole(self) -> bytes:
        """The only file, or an index of several."""

    async def files(self) -> list[bytes]:
        """The files, each with as many addresses as one may have."""


@dataclass(frozen=True, kw_only=True)
class ServerServices:
    """What the server needs to answer requests: limits, measurements, files that are kept in memory."""

    limiter: EntranceLimits
    sitemaps: SitemapFiles
    pictures: PictureCache
    work: HeavyWork = field(repr=False)  # for what takes the CPU for long
    telemetry: Telemetry = field(repr=False)
    rules: RequestRules | None = None  # those of [limits]
    changes: RecentChanges | None = None  # where a replica is read
    draining: asyncio.Event = field(default_factory=asyncio.Event, repr=False)  # set once this server is to stop


@dataclass(frozen=True, kw_only=True)
class Platform:
    """All services and endpoints of one process."""

    settings: PlatformSettings
    clock: Clock
    ids: Ids
    secrets: Secrets = field(repr=False)
    stores: Stores
    box_office: BoxOfficeServices
    people: People
    messaging: MessagingServices
    presale: PresaleServices
    organiser: OrganiserServices
    room: RoomServices
    callers: Callers
    own_bookings: OwnBookings
    booking_views: BookingViews
    endpoints: Endpoints
    server: ServerServices
    brands: Brands
    jobs: tuple[Job, ...] = field(repr=False)

    @property
    def wall_ahead_s(self) -> float:
        """How far this machine's clock is ahead of the ledger's; 0 if the platform was given a clock."""
        return self.clock.wall_ahead_s() if isinstance(self.clock, LedgerClock) else 0.0

    @property
    def ledger(self) -> ReadLedger:
        """What handlers may read. Whatever they change, services write."""
        return self.stores.ledger


def phones_of(platform: Platform) -> PhoneProofs:
    """How numbers are proven. `NotFound` in a process that has no secret to check codes with."""
    if platform.messaging.phones is None:
        raise NotFound("this process proves no phone numbers")
    return platform.messaging.phones
