"""Opens what `frontrow work` needs and gives its jobs: expiry, relay, consumers, deliveries, payments, the waitlist.

The same jobs run inside an embedded server; any number of processes may run them over one ledger.
"""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import msgspec

from frontrow.boxoffice.adapters.bus.from_url import open_bus
from frontrow.boxoffice.adapters.channels.from_settings import MessageSettings, open_channels
from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.from_url import open_provider
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.expiry import LedgerClock
from frontrow.boxoffice.jobs.background_jobs import GROUPS, Job, box_office_jobs, money_jobs
from frontrow.boxoffice.jobs.sales_follower import FollowedSeats, Following
from frontrow.boxoffice.jobs.waitlist_jobs import WAITLIST_GROUP, waitlist_jobs
from frontrow.boxoffice.messaging.mail_links import MailLinks
from frontrow.boxoffice.messaging.notifications import Notifier
from frontrow.boxoffice.messaging.organiser_webhooks import OrganiserWebhooks
from frontrow.boxoffice.messaging.safe_http import SafeHttpClient
from frontrow.boxoffice.ports.messages import Bus
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.boxoffice.refunds.event_cancellation import Cancelling
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.boxoffice.refunds.ticket_returns import Resale
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.boxoffice.tickets.ticket_desk import TicketDesk
from frontrow.boxoffice.waitlist.offers import Offering
from frontrow.core.clock import Clock, SystemClock
from frontrow.core.derived_keys import Secrets
from frontrow.core.settings_loader import load

ALL_GROUPS: Final = (*GROUPS, WAITLIST_GROUP)


class WorkUrls(msgspec.Struct, frozen=True):
    """Where everything is, as `frontrow work` is told."""

    ledger: str
    bus: str
    mail: str
    keys: Path
    claims: str = "memory:"
    payments: str = ""
    stripe_key: str = ""
    stripe_api: str = ""
    secret_key: str = ""  # the servers' own; without it links in messages lead to pages that ask who one is
    public_url: str = "http://127.0.0.1:8000"


@contextlib.asynccontextmanager
async def open_jobs(urls: WorkUrls) -> AsyncIterator[list[Job]]:
    """The jobs over what the URLs name; everything is closed afterwards."""
    async with contextlib.AsyncExitStack() as stack:
        ledger = await open_ledger(urls.ledger)
        stack.push_async_callback(ledger.aclose)
        clock = await LedgerClock.measured(ledger, SystemClock())
        bus = open_bus(urls.bus, ALL_GROUPS)
        stack.push_async_callback(bus.aclose)
        claims = open_claims(urls.claims)
        stack.push_async_callback(claims.aclose)
        provider = open_provider(urls.payments, clock, stripe_key=urls.stripe_key, stripe_api=urls.stripe_api)
        if provider is not None:
            stack.push_async_callback(provider.aclose)
        outgoing = SafeHttpClient()
        stack.push_async_callback(outgoing.aclose)
        keys = TicketKeys.opened(urls.keys)
        seats, more = _waitlist(ledger, bus, claims, clock)
        if provider is not None:
            cancelling = Cancelling(ledger, Refunds(ledger, provider, clock, seats=seats), clock)
            more = [*money_jobs(ledger, provider, clock, Issuer(keys), seats=seats), cancelling.job(), *more]
        channels = open_channels(urls.mail, load(MessageSettings, "messages"), ledger, outgoing, clock)
        links = MailLinks(_link_key(urls.secret_key), urls.public_url)
        desk = TicketDesk(ledger, keys)
        notifier = Notifier(ledger, desk, channels, clock, links, Receipts(ledger, desk))
        webhooks = OrganiserWebhooks(ledger, outgoing, clock)
        yield box_office_jobs(ledger, bus, clock, notifier, webhooks, told=seats.expired, more=more)


def _waitlist(ledger: SqlLedger, bus: Bus, claims: SeatClaims, clock: Clock) -> tuple[FollowedSeats, list[Job]]:
    sales = Sales()
    seats = FollowedSeats(sales, claims, ledger, clock)
    following = Following(ledger, sales, claims, Recovery(sales, claims, ledger, clock))
    offering = Offering(sales, ledger, claims, seats, clock)
    resale = Resale(sales, ledger, seats, ReturnRefunds(ledger), clock)
    return seats, [Job("catalogue", following.run), *waitlist_jobs(ledger, bus, clock, offering, resale)]


def _link_key(secret_key: str) -> bytes:
    return Secrets(secret_key.encode()).key("mail links") if secret_key else b""


def open_claims(url: str) -> SeatClaims:
    """The claim store: the servers' Redis, or one in this process that is filled from the ledger."""
    if url == "memory:":
        return MemoryClaims()
    from frontrow.boxoffice.adapters.claims.redis import RedisClaims

    return RedisClaims(url)
