"""Jobs of one process share the question whether there is work (N1)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from frontrow.boxoffice.adapters.ledger.engine.due_work import FRESH_US, QUIET_FRESH_US
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.messages.model.messages import NewDelivery
from frontrow.core.clock import US_PER_S
from tests.contracts.ledger_contract import Bench

WORK_CLAIM_US = 10 * US_PER_S


def polls(ledger: SqlLedger, now_us: int) -> dict[str, Callable[[], Awaitable[Any]]]:
    """What the background jobs ask the ledger again and again."""
    return {
        "facts": lambda: ledger.claim_facts(now_us, WORK_CLAIM_US, 100),
        "holds": lambda: ledger.expire_due(now_us, 100),
        "payments": lambda: ledger.payments.claim_payments(now_us, now_us + WORK_CLAIM_US, 100),
        "refunds": lambda: ledger.payments.claim_refunds(now_us, now_us + WORK_CLAIM_US, 100),
        "cancellations": lambda: ledger.organiser.claim_cancellations(now_us, now_us + WORK_CLAIM_US, 10),
        "mails": lambda: ledger.messages.claim_deliveries("mails", now_us, WORK_CLAIM_US, 100, 10),
        "webhooks": lambda: ledger.messages.claim_deliveries("webhooks", now_us, WORK_CLAIM_US, 100, 10),
    }


async def test_jobs_without_work_need_one_read_and_no_transaction(
    ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(ledger, ledger)
    reads: list[str] = []
    read = ledger.store.read

    async def counted(query: Query) -> Any:
        reads.append(query.name)
        return await read(query)

    monkeypatch.setattr(ledger.store, "read", counted)
    monkeypatch.setattr("frontrow.boxoffice.adapters.ledger.engine.due_work.FRESH_S", 60.0)
    ledger.due_work.share()
    asked = polls(ledger, bench.now_us)
    await asked["mails"]()
    await asked["webhooks"]()  # the kinds of deliveries are known from now on
    reads.clear()
    calls = ledger.line.calls
    assert await asyncio.gather(*(poll() for _ in range(5) for poll in asked.values())) == [[]] * 5 * len(asked)
    assert (reads, ledger.line.calls) == ([], calls)


async def test_every_kind_of_work_that_is_due_is_found(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each poll finds what it would have found by itself, and only that."""
    bench = Bench(ledger, ledger)
    monkeypatch.setattr("frontrow.boxoffice.adapters.ledger.engine.due_work.FRESH_S", 0.0)
    ledger.due_work.share()
    await bench.hold(1)
    queries = ledger.messages.make_delivery_writes([NewDelivery("mails", "lane", "once", "{}")], bench.now_us)
    await ledger.messages.once("test", "1", queries, bench.now_us)
    found = {name: len(await poll()) for name, poll in polls(ledger, bench.now_us).items()}
    assert found == {
        "facts": 1, "holds": 0, "payments": 0, "refunds": 0, "cancellations": 0, "mails": 1, "webhooks": 0
    }  # fmt: skip
    later = polls(ledger, bench.now_us + 3_600 * US_PER_S)
    assert len(await later["holds"]()) == 1


async def test_after_a_quiet_time_jobs_read_rarely_and_still_find_an_expired_hold_in_time(
    ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(ledger, ledger)
    asked_us: list[int] = []
    read = ledger.store.read

    async def noted(query: Query) -> Any:
        asked_us.append(query.params[0])
        return await read(query)

    monkeypatch.setattr("frontrow.boxoffice.adapters.ledger.engine.due_work.QUIET_AFTER_S", 0.0)
    monkeypatch.setattr("frontrow.boxoffice.adapters.ledger.engine.due_work.QUIET_FRESH_S", 60.0)
    ledger.due_work.share()
    held = await bench.hold(1)
    numbers = [fact.number for fact in await ledger.claim_facts(bench.now_us, WORK_CLAIM_US, 100)]
    await ledger.facts_published(numbers, bench.now_us)
    monkeypatch.setattr(ledger.store, "read", noted)
    for step in range(5):
        assert await ledger.expire_due(bench.now_us + step * FRESH_US, 100) == []
    assert asked_us == [bench.now_us + QUIET_FRESH_US], "one read instead of five, about the next half second too"
    just_before_us = held.expires_at_us - QUIET_FRESH_US // 2
    assert await ledger.expire_due(just_before_us, 100) == []
    ended = await ledger.expire_due(held.expires_at_us, 100)
    assert [one.booking_id for one in ended] == [held.booking_id]
