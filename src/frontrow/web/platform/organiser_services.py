"""The organiser's side of one process: services for venues, events, seats, codes and figures, and their jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from frontrow.boxoffice.audit.chain_check import ChainCheck
from frontrow.boxoffice.jobs.background_jobs import Job
from frontrow.boxoffice.organising.bookings import OrganiserBookings
from frontrow.boxoffice.organising.buyer_messages import BuyerMessages
from frontrow.boxoffice.organising.desk_sales import DeskSales
from frontrow.boxoffice.organising.events import OrganiserEvents
from frontrow.boxoffice.organising.exports import Exports
from frontrow.boxoffice.organising.feeds import Feeds
from frontrow.boxoffice.organising.report_mails import ReportMails
from frontrow.boxoffice.organising.reports import Reports
from frontrow.boxoffice.organising.sales_figures import SalesFigures
from frontrow.boxoffice.organising.show_dates import ShowDates
from frontrow.boxoffice.organising.waitlists import OrganiserWaitlists
from frontrow.boxoffice.organising.wallets import ManagedWallets
from frontrow.boxoffice.organising.webhooks import ManagedWebhooks
from frontrow.boxoffice.ports.quiet_time import QuietTime
from frontrow.boxoffice.refunds.event_cancellation import EventCancellations
from frontrow.web.platform.fan_codes import FanCodes
from frontrow.web.streams.sales_figures import LiveFiguresStreams
from frontrow.web.streams.sales_history import SalesHistory


@dataclass(frozen=True, kw_only=True)
class OrganiserServices:
    """What organisers' handlers use besides the fans' services."""

    organise: OrganiserEvents
    dates: ShowDates
    bookings: OrganiserBookings
    messages: BuyerMessages
    desk: DeskSales
    waitlists: OrganiserWaitlists
    webhooks: ManagedWebhooks
    wallets: ManagedWallets
    cancelling: EventCancellations
    codes: FanCodes
    figures: SalesFigures
    live: LiveFiguresStreams
    history: SalesHistory
    chain: ChainCheck
    exports: Exports
    reports: Reports
    report_mails: ReportMails
    feeds: Feeds

    def jobs(self, quiet: QuietTime, *, inside: bool) -> Sequence[Job]:
        """The background jobs: the history in every server, the others only where the jobs run."""
        others = [self.cancelling.job(quiet), *self.report_mails.jobs(), *self.messages.jobs(quiet)]
        return [self.history.job(), *(others if inside else [])]
