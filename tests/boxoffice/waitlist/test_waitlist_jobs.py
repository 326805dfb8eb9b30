"""The waitlist's worker as it runs (B14, B15): by sweeps through outages, and by facts from the bus."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.bus.memory import MemoryBus
from frontrow.boxoffice.facts.outbox_relay import OutboxRelay
from frontrow.boxoffice.jobs.waitlist_jobs import WAITLIST_GROUP, waitlist_jobs
from frontrow.boxoffice.waitlist.offers import OfferWorker
from frontrow.core.errors import Unavailable
from frontrow.shared.jobs import Job, JobRunner
from tests.boxoffice.shop import EVENT, sqlite_url
from tests.boxoffice.waiting import (
    Waiting,
    refund_seat,
    sold_out,
)
from tests.support.eventually import eventually


@pytest.fixture
async def waiting(tmp_path: Path) -> AsyncIterator[Waiting]:
    async with sold_out(sqlite_url(tmp_path)) as made:
        yield made


async def test_the_running_worker_serves_what_it_hears_and_survives_a_silent_ledger(waiting: Waiting) -> None:
    await waiting.list.join(EVENT, "ada", 1)
    silent, look = 3, waiting.ledger.waitlist.read_waitlist_summary

    async def flaky(event_id: str, now_us: int) -> object:
        nonlocal silent
        if silent:
            silent -= 1
            raise Unavailable("no answer")
        return await look(event_id, now_us)

    waiting.ledger.waitlist.read_waitlist_summary = flaky  # type: ignore[method-assign, assignment]
    await refund_seat(waiting, "s0")

    async def offered() -> dict[str, tuple[int, ...]]:
        for fact in await waiting.facts():
            waiting.worker.note_fact(fact)
        return await waiting.offered("ada")

    task = asyncio.create_task(waiting.worker.run())
    try:
        await eventually(offered)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert waiting.worker.stats.failures == 3


async def test_a_freed_seat_is_offered_through_outbox_relay_and_bus(waiting: Waiting) -> None:
    """B14, B15: the jobs as a server runs them; the sweeps' hour never comes, so it was the fact that did it."""
    ledger, clock = waiting.ledger, waiting.clock
    bus = MemoryBus((WAITLIST_GROUP,))
    parts = (waiting.shop.sales, ledger, waiting.shop.claims, waiting.shop.holds.held, clock)
    offering = OfferWorker(*parts, every_s=3600)
    relay = OutboxRelay(ledger, bus, clock)
    await waiting.list.join(EVENT, "ada", 1)
    await waiting.facts()  # these are out: the one of the refund is the only one left to come
    jobs = waitlist_jobs(ledger, bus, clock, offering, waiting.resale)
    workers = JobRunner([*jobs, Job("relay", relay.run, relay.stop)])
    running = asyncio.create_task(workers.run())
    try:
        await eventually(lambda: offering.stats.events_served > 0)
        await refund_seat(waiting, "s0")
        await eventually(lambda: offering.stats.offered == 1)
    finally:
        workers.stop()
        await running
    assert await waiting.offered("ada") == {"ada": (0,)}
    assert workers.book.failed() == {}
