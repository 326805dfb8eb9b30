"""The bus over Kafka (confluent-kafka): one topic, keyed by event, idempotent producer, offsets committed when done.

The facts of one event are in one partition, in the order in which they were published; the partitioner is the one of
Java's clients, so that others find them there too. The producer waits for all replicas (`acks=all`), and what it sends
again after a lost answer the broker stores once.

A reader owns whole partitions; what it read and did not finish is read again by whoever owns them next. The client's
calls block, so producer and readers have a thread each. (aiokafka needs no threads, but its groups of two members
failed against librdkafka's own test broker.)
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

from frontrow.boxoffice.adapters.bus.kafka_access import TOPIC, KafkaAccess
from frontrow.boxoffice.adapters.bus.kafka_check import VAGUE
from frontrow.boxoffice.facts.model import BusFact
from frontrow.core.errors import Unavailable

PUBLISH_TIMEOUT_S: Final = 15.0
SESSION_TIMEOUT_MS: Final = 10_000
HEARTBEAT_MS: Final = 1_000
CREATE_TIMEOUT_S: Final = 5.0
LAG_TIMEOUT_S: Final = 5.0
MAX_PARTITIONS: Final = 64  # shown one by one
LONGEST_WAIT_S: Final = 1.0  # so that a reader closes quickly
# Another reader owns our partitions now. What we finished is read again there, which is allowed.
REBALANCED: Final = frozenset(
    {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.UNKNOWN_MEMBER_ID}
)
EARLIEST, LATEST = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
Result = TypeVar("Result")


class KafkaBus:
    """A bus over one Kafka topic."""

    def __init__(self, servers: str, *, topic: str = TOPIC, access: KafkaAccess | None = None) -> None:
        self._topic, self._access = topic, access or KafkaAccess()
        self._refusals = _Refusals()
        self._config: dict[str, Any] = {
            "bootstrap.servers": servers,
            "log_level": 0,
            "error_cb": self._refusals.note,
            **self._access.options(),
        }
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kafka-producer")
        self._lag_thread = ThreadPoolExecutor(1, thread_name_prefix="kafka-lag")
        self._producer: Producer | None = None
        self._admin: AdminClient | None = None

    async def publish(self, facts: Sequence[BusFact]) -> None:
        await _run_in(self._thread, lambda: self._publish(facts))

    def _publish(self, facts: Sequence[BusFact]) -> None:
        if self._producer is None:
            self._create_topic()
            self._producer = Producer(
                self._config
                | {
                    "enable.idempotence": True,
                    "acks": "all",
                    "partitioner": "murmur2_random",
                    "delivery.timeout.ms": int(PUBLISH_TIMEOUT_S * 1000),
                }
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
            why = self._refusals.last or missing[0]
            raise Unavailable(f"the bus does not answer ({why})", retry_after_s=1.0)
        self._refusals.last = ""

    def _create_topic(self) -> None:
        """Make the topic with `partitions`, if that is set. A broker that does not let us makes it by its own rules."""
        if not self._access.partitions:
            return
        admin = AdminClient(self._config)
        with contextlib.suppress(KafkaException):
            if self._topic not in admin.list_topics(timeout=CREATE_TIMEOUT_S).topics:
                asked = NewTopic(self._topic, num_partitions=self._access.partitions)
                made = admin.create_topics([asked], request_timeout=CREATE_TIMEOUT_S)
                made[self._topic].result(CREATE_TIMEOUT_S + 1.0)

    async def measure_lag(self, groups: Sequence[str]) -> dict[tuple[str, str], int]:
        """By asking the brokers, so it is known of dead consumers too. Above `MAX_PARTITIONS` one sum per group."""
        return await _run_in(self._lag_thread, lambda: self._measure_lag(groups))

    def _measure_lag(self, groups: Sequence[str]) -> dict[tuple[str, str], int]:
        if self._admin is None:
            self._admin = AdminClient(self._config)
        admin, within = self._admin, {"request_timeout": LAG_TIMEOUT_S}
        partitions = admin.list_topics(self._topic, timeout=LAG_TIMEOUT_S).topics[self._topic].partitions
        places = [TopicPartition(self._topic, one) for one in sorted(partitions)]
        if not places:
            return {}  # nobody has published yet
        ends = admin.list_offsets(dict.fromkeys(places, LATEST), **within)
        begins = admin.list_offsets(dict.fromkeys(places, EARLIEST), **within)
        first = {place.partition: told.result(LAG_TIMEOUT_S).offset for place, told in begins.items()}
        last = {place.partition: told.result(LAG_TIMEOUT_S).offset for place, told in ends.items()}
        found: dict[tuple[str, str], int] = {}
        for group in groups:
            asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)], **within)
            done = {one.partition: one.offset for one in asked[group].result(LAG_TIMEOUT_S).topic_partitions}
            lags = {str(at): max(0, last[at] - max(first[at], done.get(at, -1))) for at in sorted(last)}
            if len(lags) > MAX_PARTITIONS:
                lags = {"all": sum(lags.values())}
            found |= {(group, partition): lag for partition, lag in lags.items()}
        return found

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
        for thread in (self._thread, self._lag_thread):
            await asyncio.to_thread(thread.shutdown)
        self._producer = self._admin = None


class _Refusals:
    """The last error of the client that explains something: credentials, certificates, permissions."""

    def __init__(self) -> None:
        self.last = ""

    def note(self, error: KafkaError) -> None:
        if error.code() not in VAGUE:
            self.last = error.str()[:300]


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
