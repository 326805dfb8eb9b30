"""The bus over Kafka (aiokafka): one topic, keyed by booking, idempotent producer, offsets committed when done.

A reader owns whole partitions; what it read and did not finish is read again by whoever owns them next.
"""

import contextlib
from collections.abc import Sequence
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]
from aiokafka.structs import TopicPartition  # type: ignore[import-untyped]

from frontrow.boxoffice.model.messages import BusFact
from frontrow.core.errors import Unavailable

TOPIC: Final = "frontrow.facts"
REQUEST_TIMEOUT_MS: Final = 10_000
SESSION_TIMEOUT_MS: Final = 10_000
HEARTBEAT_MS: Final = 1_000


class KafkaBus:
    """A Bus over one Kafka topic."""

    def __init__(self, servers: str, *, topic: str = TOPIC, **options: Any) -> None:
        self._servers, self._topic = servers, topic
        self._options = options  # security_protocol, sasl_…, ssl_context: as aiokafka takes them
        self._producer: AIOKafkaProducer | None = None

    async def publish(self, facts: Sequence[BusFact]) -> None:
        try:
            producer = await self._started()
            waits = [
                await producer.send(
                    self._topic, fact.body, key=fact.key.encode(), headers=[("n", str(fact.number).encode())]
                )
                for fact in facts
            ]
            for wait in waits:
                await wait
        except (KafkaError, OSError) as error:
            await self._drop()  # an idempotent producer that lost count must begin anew
            raise _unavailable(error) from error

    async def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._servers,
                enable_idempotence=True,
                acks="all",
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                **self._options,
            )
            try:
                await producer.start()
            except BaseException:
                await producer.stop()
                raise
            self._producer = producer
        return self._producer

    async def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError, OSError):
                await producer.stop()

    async def reader(self, group: str) -> "KafkaReader":
        consumer = AIOKafkaConsumer(
            self._topic,
            bootstrap_servers=self._servers,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            **self._options,
        )
        try:
            await consumer.start()
        except (KafkaError, OSError) as error:
            await consumer.stop()
            raise _unavailable(error) from error
        return KafkaReader(consumer)

    async def aclose(self) -> None:
        await self._drop()


class KafkaReader:
    """A member of a consumer group."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer

    async def read(self, limit: int, wait_s: float) -> list[BusFact]:
        try:
            batches = await self._consumer.getmany(timeout_ms=int(wait_s * 1000), max_records=limit)
        except (KafkaError, OSError) as error:
            raise _unavailable(error) from error
        return [
            BusFact(
                int(dict(record.headers)["n"]), (record.key or b"").decode(), record.value or b"",
                f"{record.topic}/{record.partition}/{record.offset}",
            )
            for records in batches.values()
            for record in records
        ]  # fmt: skip

    async def done(self, facts: Sequence[BusFact]) -> None:
        ends: dict[TopicPartition, int] = {}
        for fact in facts:
            topic, partition, offset = fact.place.rsplit("/", 2)
            at = TopicPartition(topic, int(partition))
            ends[at] = max(ends.get(at, 0), int(offset) + 1)
        if not ends:
            return
        try:
            await self._consumer.commit(ends)
        except (KafkaError, OSError) as error:  # also: the group has given our partitions to somebody else
            raise _unavailable(error) from error

    async def aclose(self) -> None:
        with contextlib.suppress(KafkaError, OSError):
            await self._consumer.stop()


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(f"the bus does not answer ({type(error).__name__}: {error})", retry_after_s=1.0)
