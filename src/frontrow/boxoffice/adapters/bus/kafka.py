"""The bus over Kafka (confluent-kafka): one topic, keyed by booking, idempotent producer, offsets committed when done.

A reader owns whole partitions; what it read and did not finish is read again by whoever owns them next. The client's
calls block, so producer and readers have a thread each. (aiokafka needs no threads, but its groups of two members
failed against librdkafka's own test broker.)
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from frontrow.boxoffice.model.messages import BusFact
from frontrow.core.errors import Unavailable

TOPIC: Final = "frontrow.facts"
PUBLISH_TIMEOUT_S: Final = 15.0
SESSION_TIMEOUT_MS: Final = 10_000
HEARTBEAT_MS: Final = 1_000
LONGEST_WAIT_S: Final = 1.0  # so that a reader closes quickly
# Another reader owns our partitions now. What we finished is read again there, which is allowed.
REBALANCED: Final = frozenset(
    {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.UNKNOWN_MEMBER_ID}
)
Result = TypeVar("Result")


class KafkaBus:
    """A bus over one Kafka topic. `options` are librdkafka's (`security.protocol`, `sasl.username`, …)."""

    def __init__(self, servers: str, *, topic: str = TOPIC, options: dict[str, Any] | None = None) -> None:
        self._topic = topic
        self._config: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0} | (options or {})
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kafka-producer")
        self._producer: Producer | None = None

    async def publish(self, facts: Sequence[BusFact]) -> None:
        await _run_in(self._thread, lambda: self._publish(facts))

    def _publish(self, facts: Sequence[BusFact]) -> None:
        if self._producer is None:
            self._producer = Producer(
                self._config
                | {"enable.idempotence": True, "acks": "all", "delivery.timeout.ms": int(PUBLISH_TIMEOUT_S * 1000)}
            )
        failed: list[str] = []
        delivered: list[int] = []

        def on_delivery(error: KafkaError | None, _: Any) -> None:
            delivered.append(1)
            if error is not None:
                failed.append(str(error))

        for fact in facts:
            headers: list[tuple[str, str | bytes | None]] = [("n", str(fact.number))]
            self._producer.produce(self._topic, fact.body, fact.key.encode(), headers=headers, on_delivery=on_delivery)
        self._producer.flush(PUBLISH_TIMEOUT_S)
        if failed or len(delivered) != len(facts):
            self._producer = None  # an idempotent producer cannot continue after a lost message
            missing = failed[:1] or [f"{len(facts) - len(delivered)} facts unanswered"]
            raise Unavailable(f"the bus does not answer ({missing[0]})", retry_after_s=1.0)

    async def reader(self, group: str) -> "KafkaReader":
        config = self._config | {
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "topic.metadata.refresh.interval.ms": 5_000,
            "allow.auto.create.topics": True,
        }
        return KafkaReader(config, self._topic)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._thread.shutdown)
        self._producer = None


class KafkaReader:
    """A member of a consumer group. Joins it with the first read."""

    def __init__(self, config: dict[str, Any], topic: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kafka-reader")
        self._consumer = Consumer(config)
        self.is_new_group = False  # a broker keeps what it has acknowledged
        self._consumer.subscribe([topic])

    async def read(self, limit: int, wait_s: float) -> list[BusFact]:
        return await _run_in(self._thread, lambda: self._read(limit, wait_s))

    def _read(self, limit: int, wait_s: float) -> list[BusFact]:
        facts = []
        for record in self._consumer.consume(limit, min(wait_s, LONGEST_WAIT_S)):
            error = record.error()
            if error is not None:
                if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue  # nobody has published yet
                raise KafkaException(error)
            number = dict(record.headers() or [])["n"]
            place = f"{record.topic()}/{record.partition()}/{record.offset()}"
            facts.append(BusFact(int(number or 0), _text(record.key()), _bytes(record.value()), place))
        return facts

    async def done(self, facts: Sequence[BusFact]) -> None:
        ends: dict[tuple[str, int], int] = {}
        for fact in facts:
            topic, partition, offset = fact.place.rsplit("/", 2)
            at = (topic, int(partition))
            ends[at] = max(ends.get(at, 0), int(offset) + 1)
        if ends:
            places = [TopicPartition(topic, partition, end) for (topic, partition), end in sorted(ends.items())]
            await _run_in(self._thread, lambda: self._commit(places))

    def _commit(self, places: list[TopicPartition]) -> None:
        try:
            self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in REBALANCED:
                raise

    def stop_waiting(self) -> None:
        """A read returns when its time is over."""

    async def aclose(self) -> None:
        def close() -> None:
            self._consumer.close()

        await _run_in(self._thread, close)
        self._thread.shutdown()


async def _run_in(thread: ThreadPoolExecutor, act: Callable[[], Result]) -> Result:
    """Run a blocking call of the client in its thread. Its errors become `Unavailable`."""
    try:
        return await asyncio.get_running_loop().run_in_executor(thread, act)
    except (KafkaException, BufferError) as error:
        raise Unavailable(f"the bus does not answer ({error})", retry_after_s=1.0) from error


def _text(key: str | bytes | None) -> str:
    return key.decode() if isinstance(key, bytes) else key or ""


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""
