"""Builds what sends messages: the notifier, the organisers' webhooks, links in mails."""

from frontrow.app.box_office_wiring import Adapters
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.messages.channel_reports import ChannelReports
from frontrow.boxoffice.messages.mail_links import MailLinks
from frontrow.boxoffice.messages.notifications import Notifier
from frontrow.boxoffice.messages.organiser_webhooks import OrganiserWebhooks
from frontrow.boxoffice.messages.phone_proofs import PhoneProofs
from frontrow.boxoffice.messages.ports.channels import Channel
from frontrow.boxoffice.messages.webhook_secrets import EndpointSecrets
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.web.platform.platform import MessagingServices


def make_messaging(
    adapters: Adapters,
    channels: list[Channel],
    links: MailLinks,
    renderer: TicketRenderer,
    receipts: Receipts,
    endpoint_secrets: EndpointSecrets,
    *,
    reports: ChannelReports | None = None,
    phones: PhoneProofs | None = None,
) -> MessagingServices:
    """`reports` and `phones` are for processes that answer people."""
    ledger, clock = adapters.ledger, adapters.clock
    return MessagingServices(
        reports=reports,
        phones=phones,
        notifier=Notifier(ledger, renderer, channels, clock, links, receipts),
        webhooks=OrganiserWebhooks(ledger.messages, adapters.webhook_calls, clock, endpoint_secrets),
        links=links,
    )
