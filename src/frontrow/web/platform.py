"""The platform as its handlers see it: every service of one process, put together by `frontrow.bootstrap`."""

import asyncio
from dataclasses import dataclass, field

from frontrow.boxoffice.feed.service import MapFeed
from frontrow.boxoffice.ledger.requests import RequestBook
from frontrow.boxoffice.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.mail_links import MailLinks
from frontrow.boxoffice.payment_ports import PaymentProvider
from frontrow.boxoffice.ports import SeatClaims
from frontrow.boxoffice.services.analytics import Figures
from frontrow.boxoffice.services.browse import Browse
from frontrow.boxoffice.services.checkout import Checkout
from frontrow.boxoffice.services.hold import HoldService
from frontrow.boxoffice.services.notify import Notifier
from frontrow.boxoffice.services.offering import Offering
from frontrow.boxoffice.services.people import People
from frontrow.boxoffice.services.presales import Presales
from frontrow.boxoffice.services.purchases import Purchases
from frontrow.boxoffice.services.receipts import Receipts
from frontrow.boxoffice.services.recovery import Recovery
from frontrow.boxoffice.services.refunds import Refunds
from frontrow.boxoffice.services.resale import Resale
from frontrow.boxoffice.services.sales import Sales
from frontrow.boxoffice.services.signups import Signups
from frontrow.boxoffice.services.tickets import TicketDesk
from frontrow.boxoffice.services.waitlist import WaitlistService
from frontrow.boxoffice.services.webhooks import Webhooks
from frontrow.boxoffice.services.workers import Job
from frontrow.core.clock import Clock
from frontrow.core.ids import Ids
from frontrow.core.secrets import Secrets as Secrets
from frontrow.waitingroom.entry import Entry
from frontrow.waitingroom.room import WaitingRoom
from frontrow.web.event_lists import EventLists
from frontrow.web.event_views import EventViews
from frontrow.web.hot_table import HotTable
from frontrow.web.office import Office
from frontrow.web.openings import Openings
from frontrow.web.proofs import Passes
from frontrow.web.room_endpoints import RoomEndpoints
from frontrow.web.settings import PlatformSettings
from frontrow.web.shop import ShopEndpoints
from frontrow.web.telemetry import Telemetry


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
    webhooks: Webhooks
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
