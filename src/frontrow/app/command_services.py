"""Services for single commands, each over a ledger alone: people, webhooks of organisers, reconciliation.

Each function imports what it needs when it is called, so that a command asks only for its own libraries.
"""

import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from frontrow.core.clock import SystemClock, WallClock

if TYPE_CHECKING:
    from frontrow.boxoffice.checkout.reconciliation import ReconciliationReport
    from frontrow.boxoffice.messaging.webhook_endpoints import WebhookEndpoints
    from frontrow.boxoffice.people.people import People


@contextlib.asynccontextmanager
async def open_people(ledger_url: str, public_url: str) -> "AsyncIterator[People]":
    """The services about people. Nothing is sealed or mailed here, so no secret key is needed."""
    from frontrow.app.ledger_tools import opened_ledger
    from frontrow.boxoffice.adapters.channels.email import FolderChannel
    from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path
    from frontrow.boxoffice.people.people import People
    from frontrow.boxoffice.people.people_settings import PeopleSettings
    from frontrow.core.ids import Ids
    from frontrow.core.settings_loader import load

    if not is_postgres(ledger_url):
        sqlite_path(ledger_url).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with opened_ledger(ledger_url, auto_migrate=None) as ledger:
        people = People(
            ledger,
            FolderChannel(Path("frontrow-outbox")),
            WallClock(),
            Ids(),
            secrets.token_bytes(32),
            settings=load(PeopleSettings, "people"),
            public_url=public_url,
        )
        try:
            yield people
        finally:
            await people.aclose()


@contextlib.asynccontextmanager
async def open_webhook_endpoints(ledger_url: str) -> "AsyncIterator[WebhookEndpoints]":
    """The webhooks that organisers registered. The address of a new one must be public."""
    from frontrow.app.ledger_tools import opened_ledger
    from frontrow.boxoffice.messaging.safe_http import SafeHttpClient
    from frontrow.boxoffice.messaging.webhook_endpoints import WebhookEndpoints

    async with opened_ledger(ledger_url) as ledger:
        outgoing = SafeHttpClient()
        try:
            yield WebhookEndpoints(ledger.messages, outgoing, WallClock())
        finally:
            await outgoing.aclose()


async def reconcile_payments(
    ledger_url: str, payments_url: str, *, stripe_key: str, stripe_api: str, window_s: int
) -> "ReconciliationReport":
    """Finish open refunds, then compare the ledger with the payment provider and put right what can be."""
    from frontrow.app.ledger_tools import opened_ledger
    from frontrow.boxoffice.adapters.payments.from_url import open_provider
    from frontrow.boxoffice.checkout.checkout import Checkout
    from frontrow.boxoffice.checkout.reconciliation import Reconciler
    from frontrow.boxoffice.holds.expiry import LedgerClock
    from frontrow.boxoffice.refunds.refunds import Refunds

    provider = open_provider(payments_url, SystemClock(), stripe_key=stripe_key, stripe_api=stripe_api)
    assert provider is not None
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(provider.aclose)
        ledger = await stack.enter_async_context(opened_ledger(ledger_url))
        clock = await LedgerClock.measure(ledger, SystemClock())
        checkout = Checkout(ledger, provider, clock)
        await Refunds(ledger, provider, clock).work()
        return await Reconciler(ledger, provider, clock, checkout.driver).run(window_s)
