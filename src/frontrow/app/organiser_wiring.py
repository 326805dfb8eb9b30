"""Builds the organiser's services of one process."""

import contextlib

from frontrow.boxoffice.adapters.channels.in_app import InAppChannel
from frontrow.boxoffice.adapters.ledger.audit_verification import ChainCheck, verify
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.checkout.sellers import Sellers
from frontrow.boxoffice.events.event_editing import OrganiserEvents
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.events.model.room_rules import RoomRules
from frontrow.boxoffice.events.show_dates import ShowDates
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.holds.ports.seat_listener import SeatListener
from frontrow.boxoffice.messages.buyer_message_mail import BuyerMessageMail, SellerOf
from frontrow.boxoffice.messages.buyer_messages import BuyerMessages
from frontrow.boxoffice.messages.ports.channels import Channel
from frontrow.boxoffice.messages.webhook_secrets import EndpointSecrets
from frontrow.boxoffice.organiser.bookings import OrganiserBookings
from frontrow.boxoffice.organiser.box_office_sales import BoxOfficeSales
from frontrow.boxoffice.organiser.change_log import ChangeLog
from frontrow.boxoffice.organiser.exports import Exports
from frontrow.boxoffice.organiser.feeds import Feeds
from frontrow.boxoffice.organiser.model.sales_figures import RoomFigures
from frontrow.boxoffice.organiser.report_mails import ReportMails
from frontrow.boxoffice.organiser.reports import Reports
from frontrow.boxoffice.organiser.reseating import Reseater
from frontrow.boxoffice.organiser.sales_figures import SalesFigures, SpeedsOf
from frontrow.boxoffice.organiser.waitlists import OrganiserWaitlists
from frontrow.boxoffice.organiser.wallets import ManagedWallets
from frontrow.boxoffice.organiser.webhooks import ManagedWebhooks
from frontrow.boxoffice.refunds.event_cancellation import EventCancellations
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.boxoffice.tickets.ports.tickets import TicketIssuer
from frontrow.boxoffice.tickets.ticket_transfers import TicketTransfers
from frontrow.boxoffice.tickets.wallet_passes import WalletVault
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError
from frontrow.shared.heavy_work import HeavyWork
from frontrow.shared.ids import Ids
from frontrow.shared.vault import Vault
from frontrow.waitingroom.model.admission_rate import admitted_per_s
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.platform.event_openings import Openings
from frontrow.web.platform.fan_codes import FanCodes
from frontrow.web.platform.organiser_services import OrganiserServices
from frontrow.web.platform.platform import MessagingServices
from frontrow.web.site.markdown import as_html
from frontrow.web.streams.sales_figures import LiveFiguresStreams
from frontrow.web.streams.sales_history import PointLog, SalesHistory


def make_organiser_services(
    *,
    ledger: SqlLedger,
    claims: SeatClaims,
    issuer: TicketIssuer,
    seats: SeatListener,
    refunds: Refunds,
    transfers: TicketTransfers,
    messaging: MessagingServices,
    room: WaitingRoom,
    openings: Openings,
    feeds: dict[str, MapFeed],
    clock: Clock,
    ids: Ids,
    room_defaults: RoomRules,
    human_checks: tuple[str, ...],
    work: HeavyWork,
    endpoint_secrets: EndpointSecrets,
    wallet_vault: WalletVault,
    speeds: SpeedsOf,
    recent_speeds: SpeedsOf,
    mail: Channel,
    vault: Vault,
    public_url: str,
    seller_of: SellerOf,
    message_key: bytes,
    point_log: PointLog | None = None,
) -> OrganiserServices:
    """Build the services. `speeds` and `recent_speeds` say how quickly this process answers."""
    organise = OrganiserEvents(ledger, clock, ids, room_defaults=room_defaults, human_checks=human_checks, work=work)

    def states_of(event_id: str) -> bytes | bytearray | None:
        feed = feeds.get(event_id)
        return feed.ring.states if feed is not None else None

    async def event_of(event_id: str) -> Event:
        return openings.events.get(event_id) or await ledger.catalogue.event(event_id)

    async def zone_of(event: Event) -> str:
        venue = await ledger.catalogue.venue(event.venue_id)
        return (venue.time_zone if venue else "") or "UTC"

    def room_of(event_id: str) -> RoomFigures | None:
        return room_figures(room, event_id)

    def mark_of(event_id: str) -> object:
        feed, own = feeds.get(event_id), room.cache.rooms.get(event_id)
        return (feed.ring.epoch, feed.ring.seq, own.state) if feed is not None and own is not None else None

    figures = SalesFigures(ledger.browsing.figures, clock, organise.venues.plan, states_of, room_of, speeds)
    reports = Reports(ledger.browsing.figures, figures, clock)
    live = LiveFiguresStreams(figures, event_of, speeds=recent_speeds)
    return OrganiserServices(
        organise=organise,
        dates=ShowDates(ledger, organise, clock, ids),
        bookings=OrganiserBookings(
            ledger,
            refunds,
            Reseater(ledger.organiser, claims, issuer, seats, clock),
            transfers,
            messaging.notifier,
            organise.venues.plan,
            clock,
        ),
        messages=BuyerMessages(
            ledger.buyer_messages,
            BuyerMessageMail(
                ledger,
                (mail, InAppChannel(ledger.messages, clock)),
                messaging.links,
                clock,
                message_of=ledger.buyer_messages.message,
                seller_of=seller_of,
                as_html=as_html,
                key=message_key,
            ),
            clock,
            ids,
            event_of=ledger.catalogue.event,
            booking_of=ledger.booking,
            plan_of=organise.venues.plan,
        ),
        box_office_sales=BoxOfficeSales(ledger, claims, issuer, seats, organise.venues.plan, clock, ids),
        waitlists=OrganiserWaitlists(ledger, clock),
        wallets=ManagedWallets(ledger.wallets, wallet_vault, work, clock),
        webhooks=ManagedWebhooks(ledger, messaging.webhooks, clock, ids, endpoint_secrets),
        cancelling=EventCancellations(ledger.organiser, refunds, clock),
        codes=FanCodes(ledger.organiser, room.audit, organise.rules_of, clock, room.codes),
        figures=figures,
        live=live,
        history=SalesHistory(
            clock, lambda: openings.events, states_of, room_of, lambda: live.speeds(), point_log, mark_of
        ),
        chain=ChainCheck(lambda: verify(ledger.store), clock),
        log=ChangeLog(ledger.organiser, clock),
        sellers=Sellers(ledger.organiser, clock),
        exports=Exports(ledger.browsing),
        reports=reports,
        report_mails=ReportMails(
            ledger.reports,
            reports,
            ledger.messages,
            mail,
            vault,
            clock,
            public_url,
            event_of=ledger.catalogue.event,
            zone_of=zone_of,
            member_of=ledger.people.staff,
        ),
        feeds=Feeds(ledger.reports, ledger.browsing.catalogue, figures.of, clock),
    )


def room_figures(room: WaitingRoom, event_id: str) -> RoomFigures | None:
    """What the waiting room knows of an event, if it has one here."""
    with contextlib.suppress(FrontrowError):
        view = room.control.view(event_id)
        lanes = view.state.lanes
        return RoomFigures(
            view.state.phase.value,
            sum(lane.issued for lane in lanes),
            sum(lane.hi for lane in lanes),
            view.waiting,
            view.state.active,
            round(admitted_per_s(view.state, room.clock()), 3),
            view.state.config.rate_per_s,
            view.state.config.capacity,
        )
    return None
