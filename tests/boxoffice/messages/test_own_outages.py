"""Outages of our own stores (F1, B15): they use up no try, and what was in hand goes on once they are back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import redis

from frontrow.boxoffice.adapters.bus.memory import MemoryBus
from frontrow.boxoffice.adapters.bus.redis import RedisBus
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.messages import message_book
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.facts.fact_consumers import FactConsumer
from frontrow.boxoffice.facts.model import BusFact, Fact, HoldReleased, encode_fact, kind_of
from frontrow.boxoffice.facts.outbox_relay import OutboxRelay
from frontrow.boxoffice.messages.deliveries import DeliveryWorker, NoteDelivery
from frontrow.boxoffice.messages.model.messages import SENT, Delivery, NewDelivery, Outcome
from frontrow.core.errors import Unavailable
from frontrow.testing.clock import ManualClock
from tests.boxoffice.messages.outbox import NOW, confirmed, put_facts
from tests.boxoffice.shop import sqlite_url
from tests.contracts.bus_contract import facts, numbers
from tests.support.eventually import eventually

KIND = "notice"


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqlLedger]:
    one = await open_ledger(sqlite_url(tmp_path))
    yield one
    await one.aclose()


def effect(ledger: SqlLedger, number: int) -> list[Query]:
    return ledger.messages.make_delivery_writes([NewDelivery(KIND, "queue", f"of fact {number}", "{}")], NOW)


async def put_delivery(ledger: SqlLedger) -> None:
    queries = ledger.messages.make_delivery_writes([NewDelivery(KIND, "queue", "one", "{}")], NOW)
    await ledger.messages.once("test", "one", queries, NOW)


async def test_an_outage_of_the_ledger_uses_up_no_try_and_the_mail_goes_out_right_after_it(ledger: SqlLedger) -> None:
    """A message that cannot be rendered because the ledger is away was not tried, however long that takes."""
    clock, away, tries = ManualClock(NOW), True, list[int]()

    async def send(deliveries: Sequence[Delivery], note: NoteDelivery) -> list[Outcome]:
        tries.append(deliveries[0].attempts)
        if away:
            raise Unavailable("the ledger does not answer")
        return [SENT]

    await put_delivery(ledger)
    worker = DeliveryWorker(KIND, ledger.messages, clock, send, give_up_after_s=30)
    for _ in range(60):
        await worker.drain()
        clock.advance(1)
    assert len(tries) == 60, "tried again every second"
    assert set(tries) == {0}
    away = False
    assert await worker.drain() == 1
    assert await ledger.messages.delivery_counts(KIND) == {"sent": 1}


async def test_what_was_sent_while_the_ledger_went_away_is_recorded_later_and_not_sent_twice(
    ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, sent, failures = ManualClock(NOW), 0, 3
    save = ledger.messages.save_delivery_results

    async def save_sometimes(*given: object) -> None:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise Unavailable("the ledger does not answer")
        await save(*given)  # type: ignore[arg-type]

    async def send(deliveries: Sequence[Delivery], note: NoteDelivery) -> list[Outcome]:
        nonlocal sent
        sent += 1
        return [SENT]

    monkeypatch.setattr("frontrow.boxoffice.messages.deliveries.SAVE_AGAIN_S", 0)
    monkeypatch.setattr(ledger.messages, "save_delivery_results", save_sometimes)
    await put_delivery(ledger)
    worker = DeliveryWorker(KIND, ledger.messages, clock, send, give_up_after_s=3_600)
    await worker.drain()
    clock.advance(121)  # its claim is over
    assert await worker.drain() == 0
    assert (sent, failures) == (1, -1)
    assert await ledger.messages.delivery_counts(KIND) == {"sent": 1}


async def test_a_batch_that_fails_in_the_middle_sends_nothing_twice(ledger: SqlLedger) -> None:
    """A mail server so slow that the claim ended got the first mails of the batch again and again."""
    clock, sent = ManualClock(NOW), list[str]()

    async def send(deliveries: Sequence[Delivery], note: NoteDelivery) -> list[Outcome]:
        for one in deliveries[:2]:
            sent.append(one.dedupe)
            await note(one, SENT)
        raise TimeoutError

    new = [NewDelivery(KIND, "queue", f"mail {number}", "{}") for number in range(6)]
    await ledger.messages.once("test", "six", ledger.messages.make_delivery_writes(new, NOW), NOW)
    worker = DeliveryWorker(KIND, ledger.messages, clock, send, give_up_after_s=3_600)
    for _ in range(3):
        await worker.drain()
        clock.advance(60)
    assert sent == [f"mail {number}" for number in range(6)]
    assert await ledger.messages.delivery_counts(KIND) == {"sent": 6}


async def test_facts_in_hand_go_out_as_soon_as_the_bus_is_back(ledger: SqlLedger) -> None:
    """After a lost Redis mails came 31 s late: the relay waited for the end of its own claim."""

    class Away(MemoryBus):
        away = True

        async def publish(self, facts: Sequence[BusFact]) -> None:
            if self.away:
                raise Unavailable("the bus does not answer")
            await super().publish(facts)

    await put_facts(ledger, [confirmed(n) for n in range(10)])
    bus = Away()
    relay = OutboxRelay(ledger, bus, ManualClock(NOW))
    for _ in range(3):
        with pytest.raises(Unavailable):
            await relay.relay_pending()
    bus.away = False
    assert await relay.relay_pending() == 10
    assert await relay.relay_pending() == 0


async def test_a_reader_that_failed_leaves_what_it_had_in_hand_to_the_next_one(redis_url: str) -> None:
    """At once, not when the bus takes it for dead."""
    bus = RedisBus(redis_url, stream="facts:hand", claim_idle_ms=3_600_000)
    await bus.publish(facts(30))
    failing, other = await bus.reader("c"), await bus.reader("c")
    in_hand = await failing.read(20, 0.2)
    assert numbers(await other.read(100, 0.2)) == set(range(21, 31)), "it takes nothing from a reader that lives"
    await failing.aclose()
    heir = await bus.reader("c")
    assert await heir.read(100, 0.2) == in_hand
    await heir.done(in_hand)
    assert await heir.read(100, 0.01) == []
    await other.aclose()
    await heir.aclose()
    await bus.aclose()


async def test_a_bus_that_lost_its_memory_loses_no_fact(ledger: SqlLedger, redis_url: str) -> None:
    """F1: facts that were published and not handled yet when Redis was wiped are handled from the outbox."""
    clock, handled = ManualClock(NOW), list[str]()

    async def plan(number: int, fact: Fact) -> list[Query]:
        handled.append(fact.booking_id)
        return effect(ledger, number)

    bus = RedisBus(redis_url, stream="facts:wiped")
    consumer = FactConsumer("c", bus, ledger.messages, clock, plan, wait_s=0.05)
    await put_facts(ledger, [confirmed(n) for n in range(250)])
    relay = OutboxRelay(ledger, bus, clock)
    await relay.relay_pending()
    reader = await bus.reader("c")
    await consumer.work(reader)
    await reader.aclose()
    assert len(handled) == 200
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
    running = asyncio.create_task(consumer.run())
    await eventually(lambda: consumer.handled == 250)
    await put_facts(ledger, [confirmed(250)])
    await relay.relay_pending()
    await eventually(lambda: consumer.handled == 251)
    consumer.stop()
    await running
    await bus.aclose()
    assert sorted(handled) == sorted(f"bkg_{n}" for n in range(251))


async def test_a_bus_that_lost_its_newest_facts_loses_none(ledger: SqlLedger, redis_url: str) -> None:
    """F7: a failover to a replica that lagged, or a Redis that lost its last second. The group is still known, and the
    relay has marked the facts as published."""
    clock, handled = ManualClock(NOW), list[str]()

    async def plan(number: int, fact: Fact) -> list[Query]:
        handled.append(fact.booking_id)
        return effect(ledger, number)

    async def lose(first: int) -> None:
        """What was published and marked, and is on no bus."""
        await put_facts(ledger, [confirmed(first), confirmed(first + 1)])
        await ledger.facts_published([one.number for one in await ledger.claim_facts(clock(), 1, 10)], clock())

    bus = RedisBus(redis_url, stream="facts:newest lost")
    consumer = FactConsumer("c", bus, ledger.messages, clock, plan, wait_s=0.05)
    await (await bus.reader("c")).aclose()
    await lose(0)
    running = asyncio.create_task(consumer.run())
    await eventually(lambda: consumer.handled == 2)  # a worker that starts: it was away during the failover
    await lose(2)
    with redis.Redis.from_url(redis_url) as client:
        client.client_kill_filter(_type="normal", skipme=True)
    await eventually(lambda: consumer.handled == 4)  # a worker whose connection broke
    await lose(4)
    clock.advance(30)
    await eventually(lambda: consumer.handled == 6)  # marked by its relay only after the worker had looked
    consumer.stop()
    await running
    await bus.aclose()
    assert (sorted(handled), consumer.repeated) == ([f"bkg_{n}" for n in range(6)], 0)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_only_facts_of_the_last_hour_are_looked_for_again(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts without an effect are never noted: looking at all of them after each outage would cost too much."""
    clock, planned = ManualClock(NOW), list[str]()

    async def plan(number: int, fact: Fact) -> list[Query]:
        planned.append(fact.booking_id)
        return []

    async with contextlib.aclosing(await open_ledger(request.getfixturevalue(f"{kind}_ledger_url"))) as ledger:
        for n in range(3):
            await put_facts(ledger, [confirmed(n)])
            await ledger.facts_published([one.number for one in await ledger.claim_facts(clock(), 1, 10)], clock())
            clock.advance(1_800)
        consumer = FactConsumer("c", MemoryBus(["c"]), ledger.messages, clock, plan, wait_s=0.0)
        await consumer.turn()
        await consumer.close()
        assert planned == ["bkg_1", "bkg_2"]
        first, second, third = await ledger.messages.missed_facts("c", 0, 10)
        assert [one.number for one in await ledger.messages.missed_facts("c", first.number, 1)] == [second.number]
        monkeypatch.setattr(message_book, "NEWEST_FACTS", 1)
        assert [one.number for one in await ledger.messages.missed_facts("c", 0, 10)] == [third.number]


async def test_facts_that_nobody_wants_are_not_noted_and_do_not_hide_missed_ones(ledger: SqlLedger) -> None:
    """A whole page of unwanted facts stands before the missed one when the bus has lost its memory."""
    clock, planned = ManualClock(NOW), list[str]()

    async def plan(number: int, fact: Fact) -> list[Query]:
        planned.append(fact.booking_id)
        return effect(ledger, number)

    bus = MemoryBus(["c"])
    consumer = FactConsumer("c", bus, ledger.messages, clock, plan, kinds={"BookingConfirmed"}, wait_s=0.0)
    unwanted = [HoldReleased(f"bkg_{n}", "evt_1", "fan_1", 1, (n,), NOW) for n in range(250)]
    await put_facts(ledger, [*unwanted, confirmed(250)])
    await OutboxRelay(ledger, bus, clock).relay_pending()
    reader = await bus.reader("c")
    assert await consumer.work(reader) == 200
    assert (planned, consumer.handled) == ([], 200)
    assert len(await ledger.messages.missed_facts("c", 0, 1_000)) == 251, "nothing was noted"
    assert await consumer.catch_up() == 251
    assert planned == ["bkg_250"]
    assert await consumer.work(reader) == 51
    assert (planned[1:], consumer.repeated) == (["bkg_250"], 1), "it came again and was known"


async def test_a_fact_without_an_effect_costs_no_row(ledger: SqlLedger) -> None:
    """Issue 14: each booking left five rows in the inbox that nobody ever looked at."""
    clock = ManualClock(NOW)

    async def plan(number: int, fact: Fact) -> list[Query]:
        return effect(ledger, number) if fact.booking_id == "bkg_3" else []

    bus = MemoryBus(["c"])
    consumer = FactConsumer("c", bus, ledger.messages, clock, plan, wait_s=0.0)
    await put_facts(ledger, [confirmed(n) for n in range(5)])
    await OutboxRelay(ledger, bus, clock).relay_pending()
    assert await consumer.work(await bus.reader("c")) == 5
    assert (consumer.handled, consumer.repeated) == (5, 0)
    missed = await ledger.messages.missed_facts("c", 0, 100)
    assert [one.fact.booking_id for one in missed] == ["bkg_0", "bkg_1", "bkg_2", "bkg_4"]


def test_the_kind_of_a_fact_is_known_without_decoding_it() -> None:
    assert kind_of(encode_fact(confirmed(1)).encode()) == "BookingConfirmed"
    for other in (b"", b"{}", b'{"fact":"FromTheFuture"}', b'{"fact":"', b'{"fact":"B\xff"}', b'{"booking_id":"x"}'):
        assert kind_of(other) == "", "decoded, and a dead letter if it is none"
