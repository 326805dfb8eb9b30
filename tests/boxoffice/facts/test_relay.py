"""Relay and consumers (B15, F5): killed in a loop, none of 10,000 facts is lost and no effect is doubled."""

import asyncio
import random
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import redis

from frontrow.boxoffice.adapters.bus.memory import MemoryBus
from frontrow.boxoffice.adapters.bus.redis import RedisBus
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.facts.fact_consumers import FactConsumer
from frontrow.boxoffice.facts.model import BusFact, Fact, OutboxFact
from frontrow.boxoffice.facts.outbox_relay import OutboxRelay
from frontrow.boxoffice.messages.model.messages import NewDelivery
from frontrow.core.errors import Unavailable
from frontrow.testing.clock import ManualClock
from tests.boxoffice.messages.outbox import NOW, confirmed, put_facts, unpublished
from tests.boxoffice.shop import sqlite_url
from tests.contracts.bus_contract import read_until
from tests.support.eventually import eventually

FACTS = 10_000
KILLS = 4
PATIENCE_S = 90.0
WORK_CLAIM_S = 30.0


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqlLedger]:
    one = await open_ledger(sqlite_url(tmp_path))
    yield one
    await one.aclose()


class Killed(Exception):
    """The process died here."""


class MortalOutbox:
    """A ledger whose relay dies at chosen points: before or after each call."""

    def __init__(self, ledger: SqlLedger, rng: random.Random) -> None:
        self._ledger, self._rng = ledger, rng
        self.deaths: Counter[str] = Counter()

    def point(self, name: str) -> None:
        if self._rng.random() < 0.15:
            self.deaths[name] += 1
            raise Killed(name)

    async def claim_facts(self, now_us: int, claim_us: int, limit: int) -> list[OutboxFact]:
        self.point("before claim")
        facts = await self._ledger.claim_facts(now_us, claim_us, limit)
        self.point("after claim")
        return facts

    async def facts_published(self, numbers: Sequence[int], now_us: int) -> None:
        self.point("after publish")
        await self._ledger.facts_published(numbers, now_us)
        self.point("after mark")


async def test_a_relay_that_dies_at_every_point_loses_none_of_10_000_facts(ledger: SqlLedger) -> None:
    """B15, F5: simulated deaths before and after each call; every fact reaches the bus, its effect happens once."""
    await put_facts(ledger, [confirmed(n) for n in range(FACTS)])
    bus, clock = MemoryBus(["count"], max_kept=10 * FACTS), ManualClock(NOW)
    outbox = MortalOutbox(ledger, random.Random(5))
    for _ in range(2_000):
        try:
            relay = OutboxRelay(outbox, bus, clock, batch=100, claim_s=WORK_CLAIM_S)
            if not await relay.relay_pending() and not await unpublished(ledger):
                break
        except Killed:
            clock.advance(WORK_CLAIM_S)  # a new relay takes over when the claim has ended
    assert await unpublished(ledger) == 0
    assert set(outbox.deaths) == {"before claim", "after claim", "after publish", "after mark"}
    effects: Counter[str] = Counter()

    async def plan(number: int, fact: Fact) -> list[Query]:
        effects[fact.booking_id] += 1
        return ledger.messages.make_delivery_writes(
            [NewDelivery("effect", "one", f"effect:{number}:{len(effects)}", "")], NOW
        )

    consumer = FactConsumer("count", bus, ledger.messages, clock, plan, wait_s=0.0)
    reader = await bus.reader("count")
    while await consumer.work(reader):
        pass
    assert len(effects) == FACTS, "none is lost"
    assert consumer.handled == FACTS
    assert consumer.repeated > 0, "some came twice, as they may"
    assert await ledger.messages.delivery_counts("effect") == {"waiting": FACTS}, "and none had its effect twice"


async def test_a_relay_process_killed_in_a_loop_loses_none_of_10_000_facts(tmp_path: Path, redis_url: str) -> None:
    """B15, F5: kill -9 of a real relay between a ledger file and Redis Streams, again and again."""
    url, stream = sqlite_url(tmp_path), "facts:killed"
    ledger = await open_ledger(url)
    await put_facts(ledger, [confirmed(n) for n in range(FACTS)])
    command = [sys.executable, "-m", "tests.boxoffice.facts.relay_child"]
    command += [url.removeprefix("sqlite:///"), redis_url, stream]
    rng = random.Random(3)
    in_the_middle = 0

    def relayed() -> int:
        assert child.poll() is None
        return client.xlen(stream)

    async def left() -> int:
        assert child.poll() is None
        return await unpublished(ledger)

    with redis.Redis.from_url(redis_url) as client:
        for kill in range(KILLS + 1):
            child = subprocess.Popen(command)  # noqa: ASYNC220
            try:
                goal = (kill + 1) * FACTS // (KILLS + 3) + rng.randrange(150)
                if kill < KILLS:
                    await eventually(relayed, PATIENCE_S, until=lambda count, goal=goal: count >= goal, every_s=0.002)
                else:
                    await eventually(left, PATIENCE_S, until=lambda count: not count, every_s=0.05)
            finally:
                child.kill()
                child.wait(60)
            in_the_middle += kill < KILLS and await unpublished(ledger) > 0
    assert in_the_middle, "it was killed in the middle of its work"
    bus = RedisBus(redis_url, stream=stream)
    reader = await bus.reader("proof")
    got = await read_until(reader, set(range(1, FACTS + 1)), limit=2_000)
    assert {fact.fact().booking_id for fact in got} == {f"bkg_{n}" for n in range(FACTS)}
    assert len(got) < 2 * FACTS
    await reader.aclose()
    await bus.aclose()
    await ledger.aclose()


async def test_fifty_relays_share_an_outbox_and_each_fact_goes_out_once(ledger: SqlLedger) -> None:
    await put_facts(ledger, [confirmed(n) for n in range(500)])
    bus, clock = MemoryBus(["all"]), ManualClock(NOW)
    await asyncio.gather(*(OutboxRelay(ledger, bus, clock, batch=10).relay_pending() for _ in range(50)))
    reader = await bus.reader("all")
    got = await reader.read(10_000, 0)
    assert sorted(fact.number for fact in got) == list(range(1, 501))


async def test_a_bus_that_is_down_leaves_the_facts_in_the_outbox(ledger: SqlLedger) -> None:
    class Down(MemoryBus):
        async def publish(self, facts: Sequence[BusFact]) -> None:
            raise Unavailable("down")

    await put_facts(ledger, [confirmed(n) for n in range(10)])
    clock = ManualClock(NOW)
    relay = OutboxRelay(ledger, Down(), clock, every_s=0.001)
    running = asyncio.create_task(relay.run())
    await eventually(lambda: relay._rounds.failures)
    relay.stop()
    await running
    clock.advance(WORK_CLAIM_S)
    assert await OutboxRelay(ledger, MemoryBus(), clock).relay_pending() == 10


@pytest.mark.parametrize("in_turn", [False, True])
async def test_a_fact_that_cannot_be_handled_becomes_a_dead_letter_and_the_rest_goes_on(
    ledger: SqlLedger, in_turn: bool
) -> None:
    bus, clock = MemoryBus(["c"]), ManualClock(NOW)
    good = confirmed(2)
    await put_facts(ledger, [confirmed(1), good])
    await OutboxRelay(ledger, bus, clock).relay_pending()
    await bus.publish([BusFact(99, "k", b'{"fact":"FromTheFuture"}')])
    seen: list[int] = []

    async def plan(number: int, fact: Fact) -> list[Query]:
        if fact.booking_id == "bkg_1":
            raise KeyError("no template")
        seen.append(number)
        return []

    consumer = FactConsumer("c", bus, ledger.messages, clock, plan, in_turn=in_turn, wait_s=0.0)
    await consumer.work(await bus.reader("c"))
    assert (seen, consumer.dead_letters, consumer.handled) == ([2], 2, 3)
    assert await ledger.messages.delivery_counts("poison") == {"waiting": 2}


@pytest.mark.parametrize("in_turn", [False, True])
async def test_a_consumer_whose_ledger_is_down_forgets_nothing(ledger: SqlLedger, in_turn: bool) -> None:
    bus, clock = MemoryBus(["c"]), ManualClock(NOW)
    await put_facts(ledger, [confirmed(n) for n in range(5)])
    await OutboxRelay(ledger, bus, clock).relay_pending()
    tries = 0

    async def plan(number: int, fact: Fact) -> list[Query]:
        nonlocal tries
        tries += 1
        if tries <= 3:
            raise Unavailable("the ledger does not answer")
        return []

    consumer = FactConsumer("c", bus, ledger.messages, clock, plan, in_turn=in_turn, wait_s=0.01)
    running = asyncio.create_task(consumer.run())
    await eventually(lambda: consumer.handled, until=lambda handled: handled >= 5)
    consumer.stop()
    await running


async def test_a_consumer_that_waits_for_facts_ends_when_it_is_told_to(ledger: SqlLedger) -> None:
    async def plan(number: int, fact: Fact) -> list[Query]:
        return []

    consumer = FactConsumer("c", MemoryBus(["c"]), ledger.messages, ManualClock(NOW), plan, wait_s=3_600)
    running = asyncio.create_task(consumer.run())
    await asyncio.sleep(0.01)  # it waits now
    consumer.stop()
    await asyncio.wait_for(running, 30)
