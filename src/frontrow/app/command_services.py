"""Services for single commands, each over a ledger alone: people, webhooks, reconciliation, what a gate takes along.

Each function imports what it needs when it is called, so that a command asks only for its own libraries.
"""

import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from frontrow.core.clock import SystemClock, WallClock
from frontrow.core.errors import ConfigError
from frontrow.settings.deployment import Deployment

if TYPE_CHECKING:
    from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
    from frontrow.boxoffice.checkout.reconciliation import ReconciliationReport
    from frontrow.boxoffice.gate.gate_bundle import Bundle
    from frontrow.boxoffice.messages.webhook_endpoints import WebhookEndpoints
    from frontrow.boxoffice.payments.payment_accounts import PaymentAccounts
    from frontrow.boxoffice.people.people import People
    from frontrow.boxoffice.people.people_settings import PeopleSettings
    from frontrow.boxoffice.tickets.signing_keys import TicketKeys


@contextlib.asynccontextmanager
async def open_people(
    deployment: Deployment, settings: "PeopleSettings | None" = None, *, make: bool = True
) -> "AsyncIterator[People]":
    """The services about people. Nothing is sealed or mailed here, so no secret key is needed. `make`: a ledger that is
    not there is made."""
    from frontrow.app.ledger_tools import opened_ledger
    from frontrow.boxoffice.adapters.channels.email import FolderChannel
    from frontrow.boxoffice.people.people import People
    from frontrow.shared.ids import Ids

    async with opened_ledger(deployment.ledger_url, auto_migrate=None if make else False) as ledger:
        people = People(
            ledger,
            FolderChannel(Path()),
            WallClock(),
            Ids(),
            secrets.token_bytes(32),
            settings=settings,
            public_url=deployment.public_url,
        )
        try:
            yield people
        finally:
            await people.aclose()


@contextlib.asynccontextmanager
async def open_webhook_endpoints(here: Deployment) -> "AsyncIterator[WebhookEndpoints]":
    """The webhooks that organisers registered. The address of a new one must be public. Its secret is sealed if the
    servers' secret key is known here, else by the next server that starts."""
    from frontrow.app.ledger_tools import opened_ledger
    from frontrow.boxoffice.messages.safe_http import SafeHttpClient
    from frontrow.boxoffice.messages.webhook_endpoints import WebhookEndpoints
    from frontrow.boxoffice.messages.webhook_secrets import EndpointSecrets
    from frontrow.shared.derived_keys import Secrets
    from frontrow.shared.vault import Vault

    vault = Vault([Secrets(here.secret.key.encode()).key("webhooks")]) if here.secret.key else None
    async with opened_ledger(here.ledger_url) as ledger:
        outgoing = SafeHttpClient(loopback=here.server.demo)
        try:
            yield WebhookEndpoints(ledger.messages, outgoing, WallClock(), endpoint_secrets=EndpointSecrets(vault))
        finally:
            await outgoing.aclose()


async def register_wallet_domain(domain: str, stripe_key: str, *, stripe_api: str = "") -> dict[str, str]:
    """Register the shop's domain with Stripe. What each wallet says: `active`, or why not."""
    from frontrow.boxoffice.adapters.payments.stripe import StripeProvider
    from frontrow.boxoffice.payments.model.provider_intents import ProviderError

    if not stripe_key:
        raise ConfigError("stripe.key is not set; wallets need Stripe", param="stripe.key")
    stripe = StripeProvider(stripe_key, api_base=stripe_api)
    try:
        return await stripe.add_domain(domain)
    except ProviderError as error:
        raise ConfigError(f"{domain} was not registered. {error.message}", param="domain") from error
    finally:
        await stripe.aclose()


async def reconcile_payments(
    deployment: Deployment, payments_url: str, *, stripe_key: str, stripe_api: str, window_s: int
) -> "ReconciliationReport":
    """Finish open refunds, then compare the ledger with the payment provider and put right what can be."""
    from frontrow.app.ledger_tools import opened_ledger
    from frontrow.boxoffice.adapters.payments.from_url import open_providers
    from frontrow.boxoffice.checkout.checkout import Checkout
    from frontrow.boxoffice.checkout.reconciliation import Reconciler
    from frontrow.boxoffice.holds.expiry import LedgerClock
    from frontrow.boxoffice.payments.payment_accounts import PaymentAccounts
    from frontrow.boxoffice.refunds.refunds import Refunds

    if payments_url == deployment.demo_payments_url and not deployment.payments_journal.exists():
        raise ConfigError("stripe.key is not set, and there is no made-up money here either", param="stripe.key")
    async with contextlib.AsyncExitStack() as stack:
        ledger = await stack.enter_async_context(opened_ledger(deployment.ledger_url))
        providers = open_providers(
            payments_url,
            [one for one in deployment.payments.also if one != payments_url],
            SystemClock(),
            stripe_key=stripe_key,
            stripe_api=stripe_api,
            public_url=deployment.public_url,
            adyen=deployment.adyen.access,
            notes=ledger.provider_notes,
        )
        assert providers is not None
        stack.push_async_callback(providers.aclose)
        clock = await LedgerClock.measure(ledger, SystemClock())
        accounts = PaymentAccounts(ledger, providers, clock)
        checkout = Checkout(ledger, providers, clock, payees=accounts)
        await Refunds(ledger, providers, clock).work()
        return await Reconciler(ledger, providers, clock, checkout.driver, payees=accounts).run(window_s)


@contextlib.asynccontextmanager
async def open_payment_accounts(here: Deployment) -> "AsyncIterator[PaymentAccounts]":
    """The organisers' accounts at the payment providers of the settings."""
    from frontrow.app.ledger_tools import opened_ledger
    from frontrow.boxoffice.adapters.payments.from_url import open_providers
    from frontrow.boxoffice.payments.payment_accounts import PaymentAccounts

    async with contextlib.AsyncExitStack() as stack:
        ledger = await stack.enter_async_context(opened_ledger(here.ledger_url))
        providers = open_providers(
            here.payments_url,
            here.payments.also,
            SystemClock(),
            stripe_key=here.stripe.key,
            stripe_api=here.stripe.api,
            public_url=here.public_url,
            adyen=here.adyen.access,
            notes=ledger.provider_notes,
        )
        assert providers is not None
        stack.push_async_callback(providers.aclose)
        yield PaymentAccounts(ledger, providers, SystemClock())


async def make_gate_bundle(deployment: Deployment, event_id: str, ring: Path | None) -> "Bundle":
    """What a gate of this event takes along. `ring` is a file of ticket keys, instead of the server's."""
    from frontrow.app.ledger_tools import opened_ledger
    from frontrow.boxoffice.gate.gate_service import GateService
    from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer

    async with opened_ledger(deployment.ledger_url) as ledger:
        keys = await _read_ticket_keys(deployment, ledger, ring)
        gates = GateService(ledger, keys, TicketRenderer(ledger, keys))
        return await gates.bundle(event_id, await ledger.time_us())


async def _read_ticket_keys(deployment: Deployment, ledger: "SqlLedger", ring: Path | None) -> "TicketKeys":
    """The keys that the servers sign tickets with: in a file of their folder, or sealed in the ledger they share."""
    from frontrow.boxoffice.tickets.signing_keys import TicketKeys
    from frontrow.shared.derived_keys import Secrets
    from frontrow.shared.vault import Vault
    from frontrow.web.platform.sealed_keys import TICKETS, SealedKeys

    if ring is None and deployment.shared:
        if not deployment.secret.key:
            raise ConfigError("secret.key is not set; it opens the ticket keys in the ledger", param="secret.key")
        vault = Vault([Secrets(deployment.secret.key.encode()).key("keys")])
        kept = await SealedKeys(ledger.keys, vault, 0).find(TICKETS)
        if kept is None:
            raise ConfigError("the ledger holds no ticket keys; the first start of a server makes them", param="ledger")
        return TicketKeys.unpacked(kept)
    path = ring or deployment.ticket_keys
    if not path.exists():
        raise ConfigError(
            f"{path}: there is no ring of ticket keys; the first start of a server makes it", param="keys"
        )
    return TicketKeys.opened(path)
