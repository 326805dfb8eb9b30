"""The background jobs of one process: end expired holds, relay facts, send messages and webhooks, reconcile payments.

The same set runs inside `frontrow serve` (embedded) and as `frontrow work`; any number of processes may run it. How
they run is `shared.jobs`.
"""

import functools
from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.checkout.checkout import AT_ONCE, Checkout
from frontrow.boxoffice.checkout.reconciliation import Reconciler
from frontrow.boxoffice.facts.fact_consumers import FactConsumer
from frontrow.boxoffice.facts.outbox_relay import KEEP_FACTS_S, OutboxRelay
from frontrow.boxoffice.facts.ports import Bus
from frontrow.boxoffice.holds.expiry import OnExpired, Sweeper, ignore_expired
from frontrow.boxoffice.holds.ports.seat_listener import SeatListener
from frontrow.boxoffice.jobs.ports import JobLedger
from frontrow.boxoffice.messages.notifications import MESSAGE_FACTS, Notifier
from frontrow.boxoffice.messages.organiser_webhooks import OrganiserWebhooks
from frontrow.boxoffice.payments.open_providers import OpenProviders, open_together
from frontrow.boxoffice.payments.payment_accounts import PaymentAccounts
from frontrow.boxoffice.payments.ports import PaymentProvider
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.tickets.ports.tickets import TicketIssuer
from frontrow.core.clock import US_PER_S, Clock
from frontrow.shared.jobs import Job, every

REFUNDS_EVERY_S: Final = 1.0
KEEP_KEYS_S: Final = 7 * 24 * 3600  # idempotency keys of requests; those of payment calls are kept with the payment
PURGE_EVERY_S: Final = 60.0
PURGE_BATCH: Final = 5_000
GROUPS: Final = ("notify", "webhooks")  # the consumers of the bus


def box_office_jobs(
    ledger: JobLedger,
    bus: Bus,
    clock: Clock,
    notifier: Notifier,
    webhooks: OrganiserWebhooks,
    *,
    on_expired: OnExpired | None = None,
    more: Sequence[Job] = (),
) -> list[Job]:
    """The jobs of a box office. `on_expired` is called with expired holds; `more` are jobs of checkout and waitlist."""
    quiet = ledger.due_work
    sweeper = Sweeper(ledger, clock, on_expired=on_expired or ignore_expired, quiet=quiet)
    relay = OutboxRelay(ledger, bus, clock, quiet=quiet)
    consumers = [
        FactConsumer("notify", bus, ledger.messages, clock, notifier.plan, kinds=MESSAGE_FACTS),
        FactConsumer("webhooks", bus, ledger.messages, clock, webhooks.plan, in_turn=True),
    ]
    deliverers = [notifier.worker(), webhooks.worker()]

    purged_up_to = ("", "")

    async def purge() -> None:
        nonlocal purged_up_to
        await ledger.purge_facts(clock() - KEEP_FACTS_S * US_PER_S, PURGE_BATCH)
        purged_up_to = await ledger.purge_keys(clock() - KEEP_KEYS_S * US_PER_S, PURGE_BATCH, purged_up_to)

    return [
        Job("sweeper", sweeper.run),
        Job("relay", relay.run, relay.stop),
        *(Job(f"consumer {one.name}", one.run, one.stop) for one in consumers),
        *(Job(f"deliver {one.kind}", one.run, one.stop) for one in deliverers),
        every("purge", purge, PURGE_EVERY_S),
        *more,
    ]


def money_jobs(
    ledger: JobLedger,
    provider: PaymentProvider | OpenProviders,
    clock: Clock,
    issuer: TicketIssuer,
    *,
    seats: SeatListener | None = None,
    at_once: int = AT_ONCE,
    public_url: str = "",
) -> list[Job]:
    """The jobs of payments: finish payments, take the money, pay refunds out, reconcile ledger and provider."""
    accounts = PaymentAccounts(ledger, open_together(provider), clock)
    checkout = Checkout(
        ledger, provider, clock, issuer=issuer, seats=seats, at_once=at_once, public_url=public_url, payees=accounts
    )
    return [
        Job("checkout", functools.partial(checkout.run, ledger.due_work)),
        every("refunds", Refunds(ledger, provider, clock, seats=seats).work, REFUNDS_EVERY_S, ledger.due_work),
        Job("reconciler", Reconciler(ledger, provider, clock, checkout.driver, payees=accounts).keep),
    ]
