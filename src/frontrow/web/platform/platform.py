"""The platform as its handlers see it: every service of one process, put together by `frontrow.app.wiring`."""

import asyncio
from dataclasses import dataclass, field

from frontrow.boxoffice.adapters.ledger.books.idempotency_store import RequestBook
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.catalogue.event_listing import Browse
from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.jobs.background_jobs import Job
from frontrow.boxoffice.messaging.mail_links import MailLinks
from frontrow.boxoffice.messaging.notifications import Notifier
from frontrow.boxoffice.messaging.organiser_webhooks import OrganiserWebhooks
from frontrow.boxoffice.organising.sales_figures import Figures
from frontrow.boxoffice.people.people import People
from frontrow.boxoffice.ports.payments import PaymentProvider
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.boxoffice.presale.presales import Presales
from frontrow.boxoffice.presale.signups import Signups
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.refunds.ticket_returns import Resale
from frontrow.boxoffice.seatmap.map_feed import MapFeed
from frontrow.boxoffice.tickets.ticket_desk import TicketDesk
from frontrow.boxoffice.waitlist.offers import Offering
from frontrow.boxoffice.waitlist.waitlist_service import WaitlistService
from frontrow.core.clock import Clock
from frontrow.core.derived_keys import Secrets as Secrets
from frontrow.core.ids import Ids
from frontrow.settings.platform import PlatformSettings
from frontrow.waitingroom.door.door_limits import Entry
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.event_details import EventViews
from frontrow.web.endpoints.event_list import EventLists
from frontrow.web.endpoints.passes import Passes
from frontrow.web.endpoints.room import RoomEndpoints
from frontrow.web.endpoints.seats import ShopEndpoints
from frontrow.web.lane.route_table import HotTable
from frontrow.web.observability.telemetry import Telemetry
from frontrow.web.platform.event_openings import Openings
from frontrow.web.platform.organiser_services import Office


@dataclass(frozen=True)
class Platform:
    """All services of one process. `people` and `figures` belong to their own modules."""

    settings: PlatformSettings
    clock: Clock
    ids: Ids
    ledger: SqlLedger
    requests: RequestBook
    claims: SeatClaims
    sales: Sales
    holds: HoldService
    recovery: Recovery
    feeds: dict[str, MapFeed]
    openings: Openings
    browse: Browse
    provider: PaymentProvider
    checkout: Checkout
    purchases: Purchases
    refunds: Refunds
    waitlist: WaitlistService
    offering: Offering
    resale: Resale
    desk: TicketDesk
    notifier: Notifier
    webhooks: OrganiserWebhooks
    room: WaitingRoom
    room_endpoints: RoomEndpoints
    shop: ShopEndpoints
    passes: Passes
    hot: HotTable
    limiter: Entry
    secrets: Secrets = field(repr=False)
    jobs: tuple[Job, ...] = field(repr=False)
    people: People
    office: Office
    draining: asyncio.Event = field(default_factory=asyncio.Event, repr=False)  # set once this server is to stop
    telemetry: Telemetry = field(default_factory=Telemetry, repr=False)
    figures: Figures = field(kw_only=True)
    shown: EventViews = field(kw_only=True)
    listed: EventLists = field(kw_only=True)
    signups: Signups = field(kw_only=True)
    presales: Presales = field(kw_only=True)
    links: MailLinks = field(kw_only=True)
    receipts: Receipts = field(kw_only=True)
