"""The organiser's side of one process: services for venues, events, seats, codes and figures, and their jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from frontrow.boxoffice.adapters.ledger.audit_verification import ChainCheck
from frontrow.boxoffice.checkout.sellers import Sellers
from frontrow.boxoffice.events.event_editing import OrganiserEvents
from frontrow.boxoffice.events.show_dates import ShowDates
from frontrow.boxoffice.messages.buyer_messages import BuyerMessages
from frontrow.boxoffice.organiser.bookings import OrganiserBookings
from frontrow.boxoffice.organiser.box_office_sales import BoxOfficeSales
from frontrow.boxoffice.organiser.change_log import ChangeLog
from frontrow.boxoffice.organiser.exports import Exports
from frontrow.boxoffice.organiser.feeds import Feeds
from frontrow.boxoffice.organiser.report_mails import ReportMails
from frontrow.boxoffice.organiser.reports import Reports
from frontrow.boxoffice.organiser.sales_figures import SalesFigures
from frontrow.boxoffice.organiser.waitlists import OrganiserWaitlists
from frontrow.boxoffice.organiser.wallets import ManagedWallets
from frontrow.boxoffice.organiser.webhooks import ManagedWebhooks
from frontrow.boxoffice.refunds.event_cancellation import EventCancellations
from frontrow.shared.jobs import Job
from frontrow.shared.quiet_time import QuietTime
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
    box_office_sales: BoxOfficeSales
    waitlists: OrganiserWaitlists
    webhooks: ManagedWebhooks
    wallets: ManagedWallets
    cancelling: EventCancellations
    codes: FanCodes
    figures: SalesFigures
    live: LiveFiguresStreams
    history: SalesHistory
    chain: ChainCheck
    log: ChangeLog
    sellers: Sellers
    exports: Exports
    reports: Reports
    report_mails: ReportMails
    feeds: Feeds

    def jobs(self, quiet: QuietTime, *, inside: bool) -> Sequence[Job]:
        """The background jobs: the history in every server, the others only where the jobs run."""
        others = [self.cancelling.job(quiet), *self.report_mails.jobs(), *self.messages.jobs(quiet)]
        return [self.history.job(), *(others if inside else [])]
