"""One contract for every bus (B15): in process, Redis Streams, Kafka (a Kafka-protocol broker that runs here)."""

import asyncio
import itertools
import uuid
from collections.abc import Sequence
from functools import partial

import pytest
from confluent_kafka import Producer

from frontrow.boxoffice.adapters.bus.from_url import open_bus
from frontrow.boxoffice.adapters.bus.kafka import KafkaBus
from frontrow.boxoffice.adapters.bus.memory import MemoryBus, MemoryReader
from frontrow.boxoffice.adapters.bus.redis import RedisBus
from frontrow.boxoffice.facts.model import BusFact
from frontrow.boxoffice.facts.ports import Bus, BusReader
from frontrow.core.errors import ConfigError, Overloaded, Unavailable
from tests.contracts.bus_contract import CHECKS, Check, Make, facts
from tests.support.eventually import eventually
from tests.support.servers import free_port


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_memory_bus(check: Check) -> None:
    await check(MemoryBus)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_redis_bus(check: Check, redis_url: str) -> None:
    await check(partial(RedisBus, redis_url, claim_idle_ms=300))


async def test_the_kafka_bus() -> None:
    """B15: the real client against a Kafka broker; all checks at once, as joining a group takes seconds there."""
    broker = Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "ignored", "log_level": 0})
    servers = ",".join(f"{one.host}:{one.port}" for one in broker.list_topics(timeout=60).brokers.values())

    def make_for(topic: str) -> Make:
        return lambda: KafkaBus(servers, topic=topic)

    await asyncio.gather(*(check(make_for(f"t{uuid.uuid4().hex}")) for check in CHECKS))


class ForgetfulReader(MemoryReader):
    """The canary: what is read counts as done."""

    async def read(self, limit: int, wait_s: float) -> list[BusFact]:
        got = await super().read(limit, wait_s)
        await super().done(got)
        return got


class ForgetfulBus(MemoryBus):
    async def reader(self, group: str) -> MemoryReader:
        reader = await super().reader(group)
        return ForgetfulReader(reader._group, reader._finished)


class LossyBus(MemoryBus):
    async def publish(self, facts: Sequence[BusFact]) -> None:
        await super().publish([fact for fact in facts if fact.number % 100])


class SelfishBus(MemoryBus):
    """The canary: each reader is a group of its own."""

    _names = itertools.count()

    async def reader(self, group: str) -> MemoryReader:
        return await super().reader(f"{group}{next(self._names)}")


@pytest.mark.parametrize(
    ("bus", "at"), [(LossyBus, 0), (ForgetfulBus, 1), (SelfishBus, 2)], ids=["lossy", "forgetful", "selfish"]
)
async def test_the_contract_catches_a_bus_that_is(
    bus: type[MemoryBus], at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.contracts.bus_contract.PATIENCE_S", 0.3)
    with pytest.raises(AssertionError):
        await CHECKS[at](bus)


async def test_the_memory_bus_is_bounded_and_can_wait_for_its_readers() -> None:
    bus = MemoryBus(["mail"], max_kept=10)
    await bus.publish(facts(10))
    with pytest.raises(Overloaded):
        await bus.publish(facts(1, 11))
    waiting = MemoryBus(["mail"], finish_within_s=0.02)
    with pytest.raises(Unavailable):
        await waiting.publish(facts(1))
    patient = MemoryBus(["mail"], finish_within_s=30.0)
    publishing = asyncio.create_task(patient.publish(facts(3)))
    reader: BusReader = await patient.reader("mail")
    await reader.done(await reader.read(10, 5.0))
    await publishing


async def test_a_bus_that_is_not_there_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = RedisBus(f"redis://127.0.0.1:{free_port()}/0", timeout_s=0.2)
    for call in (bus.publish(facts(1)), bus.reader("mail")):
        with pytest.raises(Unavailable):
            await call
    await bus.aclose()
    monkeypatch.setattr("frontrow.boxoffice.adapters.bus.kafka.PUBLISH_TIMEOUT_S", 1.0)
    kafka = KafkaBus(f"127.0.0.1:{free_port()}")
    with pytest.raises(Unavailable):
        await kafka.publish(facts(1))
    await kafka.aclose()


async def test_a_reader_that_waits_long_stops_at_once(redis_url: str) -> None:
    """An idle server waits long for facts, and is still stopped without delay."""
    bus = RedisBus(redis_url, stream="facts:waiting", timeout_s=600.0)
    reader = await bus.reader("mail")
    waiting = asyncio.create_task(reader.read(10, 600.0))

    async def flags() -> list[str]:
        return [one["flags"] for one in await bus._client.client_list() if one["name"] == reader._name]

    await eventually(flags, until=lambda found: any("b" in one for one in found))
    reader.stop_waiting()
    assert await waiting == []
    assert await reader.read(10, 600.0) == [], "and it does not wait again"
    await reader.aclose()
    await bus.aclose()


async def test_a_bus_is_chosen_by_url(redis_url: str) -> None:
    opened: list[Bus] = [open_bus("memory:", ["mail"]), open_bus(redis_url), open_bus("kafka://127.0.0.1:9092/facts")]
    assert [type(one).__name__ for one in opened] == ["MemoryBus", "RedisBus", "KafkaBus"]
    for one in opened:
        await one.aclose()
    with pytest.raises(ConfigError):
        open_bus("amqp://nowhere")
