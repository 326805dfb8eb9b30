"""Builds the box office's services over the adapters of one process."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from frontrow.app.store_wiring import open_frame_logs
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.checkout.invoices import Invoices
from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.events.event_listing import EventBrowser
from frontrow.boxoffice.facts.ports import Bus
from frontrow.boxoffice.gate.gate_service import GateService
from frontrow.boxoffice.holds.attempt import AttemptRunner
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.holds.plain_attempt import PlainAttempts
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.messages.safe_http import SafeHttpClient
from frontrow.boxoffice.payments.disputes import Disputes
from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.boxoffice.payments.payment_accounts import PaymentAccounts
from frontrow.boxoffice.pricing.discount_code_tries import DiscountCodeLimits
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.boxoffice.refunds.ticket_returns import TicketReturns
from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.boxoffice.tickets.ticket_transfers import TicketTransfers
from frontrow.boxoffice.tickets.wallet_passes import WalletPasses, WalletVault
from frontrow.boxoffice.waitlist.offers import OfferWorker
from frontrow.boxoffice.waitlist.waitlist_entries import WaitlistService
from frontrow.core.clock import Clock
from frontrow.settings.platform import PlatformSettings
from frontrow.shared.heavy_work import HeavyWork
from frontrow.shared.ids import Ids
from frontrow.web.platform.event_openings import Openings
from frontrow.web.platform.platform import BoxOfficeServices


@dataclass(frozen=True, kw_only=True)
class Adapters:
    """What a process talks to: stores, the bus, the payment provider, other people's servers."""

    ledger: SqlLedger
    clock: Clock
    claims: SeatClaims
    providers: OpenProviders | None  # without one, no payment is worked on
    webhook_calls: SafeHttpClient
    bus: Bus
    public_url: str
    work: HeavyWork = field(default_factory=HeavyWork)


def make_box_office(
    settings: PlatformSettings,
    adapters: Adapters,
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
        openings=Openings(ledger.catalogue, sales, claims, recovery, clock, feeds, open_frame_logs(settings, clock)),
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
