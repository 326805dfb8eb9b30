"""The background jobs of one process: end expired holds, relay facts, send messages and webhooks, reconcile payments.

The same set runs inside `frontrow serve` (embedded) and as `frontrow work`; any number of processes may run it. A job
that fails is started again after a pause that grows up to a bound, while the others go on; each failure is logged and
counted (`core.failures`). `stop` lets every job finish its present work within a bounded time.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from frontrow.boxoffice.checkout.checkout import AT_ONCE, Checkout
from frontrow.boxoffice.checkout.reconciliation import Reconciler
from frontrow.boxoffice.facts.fact_consumers import FactConsumer
from frontrow.boxoffice.facts.outbox_relay import OutboxRelay
from frontrow.boxoffice.holds.expiry import OnExpired, Sweeper, ignore_expired
from frontrow.boxoffice.holds.ports.ledger import TicketIssuer
from frontrow.boxoffice.holds.ports.seat_listener import SeatListener
from frontrow.boxoffice.messages.notifications import MESSAGE_FACTS, Notifier
from frontrow.boxoffice.messages.organiser_webhooks import OrganiserWebhooks
from frontrow.boxoffice.messages.ports import Bus
from frontrow.boxoffice.payments.ports import PaymentProvider
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.core.background_tasks import FIRST_PAUSE_S, keep_running
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.core.failures import failures_here, note_failure, note_success
from frontrow.core.quiet_time import QuietTime

GRACE_S: Final = 20.0
REFUNDS_EVERY_S: Final = 1.0
KEEP_FACTS_S: Final = 7 * 24 * 3600
KEEP_KEYS_S: Final = 7 * 24 * 3600  # idempotency keys of requests; those of payment calls are kept with the payment
PURGE_EVERY_S: Final = 60.0
PURGE_BATCH: Final = 5_000
GROUPS: Final = ("notify", "webhooks")  # the consumers of the bus


class Job(msgspec.Struct, frozen=True):
    """One background job: `run` goes on until `stop`. Without a `stop` it may be cancelled at any time."""

    name: str
    run: Callable[[], Awaitable[Any]]
    stop: Callable[[], None] | None = None


class JobRunner:
    """Runs jobs side by side and restarts those that fail."""

    def __init__(self, jobs: Sequence[Job], *, grace_s: float = GRACE_S, first_pause_s: float = FIRST_PAUSE_S) -> None:
        self.jobs = tuple(jobs)
        self._grace_s, self._first_pause_s = grace_s, first_pause_s
        self._stopping = asyncio.Event()
        self.book = failures_here()
        for job in self.jobs:
            self.book.expect(job.name)

    async def run(self) -> bool:
        """Run until `stop`. Returns whether every job ended within the grace period."""
        tasks = {job.name: asyncio.create_task(self._keep_running(job), name=job.name) for job in self.jobs}
        try:
            await self._stopping.wait()
        finally:
            for job in self.jobs:
                if job.stop is not None:
                    job.stop()
                else:
                    tasks[job.name].cancel()
            _, unfinished = await asyncio.wait(tasks.values(), timeout=self._grace_s)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
        return not unfinished

    def stop(self) -> None:
        """End all jobs after their present work. Safe to call from a signal handler."""
        self._stopping.set()

    async def _keep_running(self, job: Job) -> None:
        """Run a job and start it again when it fails."""
        await keep_running(job.run, job.name, first_pause_s=self._first_pause_s, until=self._stopping)


def every(name: str, act: Callable[[], Awaitable[Any]], every_s: float, quiet: QuietTime | None = None) -> Job:
    """A job that repeats `act`, and sleeps in `quiet` times. A round that finds a store or the provider unavailable is
    skipped."""

    async def run() -> None:
        while True:  # until cancelled
            try:
                await act()
                note_success()
            except (Unavailable, Overloaded) as error:
                note_failure(error)
            await asyncio.sleep(every_s)
            if quiet is not None:
                await quiet.wait_while_quiet()

    return Job(name, run)


def box_office_jobs(
    ledger: Any,
    bus: Bus,
    clock: Clock,
    notifier: Notifier,
    webhooks: OrganiserWebhooks,
    *,
    on_expired: OnExpired | None = None,
    more: Sequence[Job] = (),
) -> list[Job]:
    """The jobs of a box office. `on_expired` is called with expired holds; `more` are jobs of checkout and waitlist."""
    quiet: QuietTime = ledger.due_work
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
    ledger: Any,
    provider: PaymentProvider,
    clock: Clock,
    issuer: TicketIssuer,
    *,
    seats: SeatListener | None = None,
    at_once: int = AT_ONCE,
) -> list[Job]:
    """The jobs of payments: finish payments, take the money, pay refunds out, reconcile ledger and provider."""
    checkout = Checkout(ledger, provider, clock, issuer=issuer, seats=seats, at_once=at_once)
    return [
        Job("checkout", functools.partial(checkout.run, ledger.due_work)),
        every("refunds", Refunds(ledger, provider, clock, seats=seats).work, REFUNDS_EVERY_S, ledger.due_work),
        Job("reconciler", Reconciler(ledger, provider, clock, checkout.driver).keep),
    ]
