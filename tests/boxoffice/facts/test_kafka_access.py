"""Kafka as people run it: TLS, SASL, partitions by event, an idempotent producer, lag (N7).

The broker is librdkafka's own, behind a front that does TLS and SASL (`tests.support.kafka_front` says what that proves
and what not). Permissions of topics exist in neither: the doctor's words about them are tested by their error codes.
"""

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from frontrow.app.doctor import FAIL, OK, WARN, Finding, bus
from frontrow.app.wiring import open_platform
from frontrow.boxoffice.adapters.bus.kafka import KafkaBus
from frontrow.boxoffice.adapters.bus.kafka_access import KafkaAccess
from frontrow.boxoffice.adapters.bus.kafka_check import explain
from frontrow.core.errors import ConfigError, Unavailable
from frontrow.settings.deployment import BusSettings
from frontrow.settings.platform import read_settings
from frontrow.web.platform.metrics import metrics_page
from tests.contracts.bus_contract import EVENTS, facts
from tests.support.eventually import eventually
from tests.support.kafka_front import KafkaFront
from tests.support.tls_proxy import TlsProxy
from tests.web.api.support import settings_for

MOCK_PARTITIONS = 4
NO_PRODUCER = b"\xff" * 14  # producer, epoch and sequence of a batch by a producer that is not idempotent


@pytest.fixture(scope="module")
def broker() -> Iterator[int]:
    """The port of a broker without TLS and SASL."""
    kept = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "ignored", "log_level": 0})
    yield next(iter(kept.list_topics(timeout=60).brokers.values())).port
    kept.flush(1.0)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> str:
    with TlsProxy(tmp_path_factory.mktemp("tls")) as proxy:
        return str(proxy.certificate)


def _settings(front: KafkaFront, certificate: str, mechanism: str = "PLAIN") -> BusSettings:
    url = f"kafka://127.0.0.1:{front.port}/t{uuid.uuid4().hex}"
    return BusSettings(url, "sasl_ssl", mechanism, "shop", "hunter2", certificate)


async def _examine(given: BusSettings) -> list[Finding]:
    return await bus(replace(read_settings(None, {"FRONTROW_SERVER_DEMO": "true"}), bus=given))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_facts_travel_by_tls_for_who_knows_the_password(broker: int, certificate: str, mechanism: str) -> None:
    with KafkaFront(broker, certificate=certificate, user="shop", password="hunter2", mechanism=mechanism) as front:
        right = _settings(front, certificate, mechanism)
        [told] = await _examine(right)
        assert (told.state, told.says) == (OK, f"Kafka answers: 1 brokers, {MOCK_PARTITIONS} partitions")
        servers, topic = right.url.removeprefix("kafka://").split("/")
        sending = KafkaBus(servers, topic=topic, access=right.access)
        await sending.publish(facts(20))
        await sending.aclose()
        assert front.passed >= 2
        [refused] = await _examine(replace(right, password="hunter3"))
        assert refused.state == FAIL
        assert refused.says.startswith("Kafka refuses us: SASL ")
        assert "bus.password" in refused.do
        assert "hunter" not in repr(refused)


async def test_the_doctor_names_what_is_wrong_and_never_a_password(
    broker: int, certificate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontrow.boxoffice.adapters.bus.kafka_check.TRY_FOR_S", 1.0)
    with KafkaFront(broker, certificate=certificate, user="shop", password="hunter2", mechanism="PLAIN") as front:
        right = _settings(front, certificate)
        [unknown] = await _examine(replace(right, ca_file=""))
        assert (unknown.state, "certificate verify failed" in unknown.says) == (FAIL, True), unknown
        assert "bus.ca_file" in unknown.do
        [mechanism] = await _examine(replace(right, sasl_mechanism="SCRAM-SHA-512"))
        assert "Unsupported SASL mechanism" in mechanism.says
        [plain] = await _examine(BusSettings(right.url))
        assert (plain.state, "bus.security_protocol" in plain.do) == (FAIL, True)
        found = await _examine(replace(right, partitions=12))
        assert [one.state for one in found] == [OK, WARN]
        assert found[1].says == f"the topic has {MOCK_PARTITIONS} partitions, bus.partitions says 12"
        assert "hunter2" not in repr([unknown, mechanism, plain, found, right, right.access])

        monkeypatch.setattr("frontrow.boxoffice.adapters.bus.kafka.PUBLISH_TIMEOUT_S", 1.0)
        wrong = KafkaBus(f"127.0.0.1:{front.port}", access=replace(right.access, password="hunter3"))
        with pytest.raises(Unavailable, match=r"SASL authentication error") as refused:
            await wrong.publish(facts(1))
        assert "hunter" not in str(refused.value)
        await wrong.aclose()
    open_to_all = await _examine(BusSettings(f"kafka://127.0.0.1:{broker}/facts"))
    assert [one.state for one in open_to_all] == [OK, WARN]  # it works, and is not encrypted


def test_a_topic_that_is_not_ours_is_named() -> None:
    told = [KafkaError(KafkaError._ALL_BROKERS_DOWN), KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    said = explain(told, "facts")
    assert said.says == "does not let us use topic facts"
    assert "IdempotentWrite" in said.do


async def test_an_event_is_in_one_partition_in_order_also_when_the_producer_sends_again(broker: int) -> None:
    """The broker stores a batch whose answer is lost. The client sends the same bytes again, with the same producer,
    epoch and sequence, by which Kafka stores them once. This broker compares no sequences and stores them twice, which
    our consumers would notice by the facts' numbers; here the first of each counts."""
    topic = f"t{uuid.uuid4().hex}"
    with KafkaFront(broker) as front:
        bus = KafkaBus(f"127.0.0.1:{front.port}", topic=topic)
        await bus.publish(facts(100))
        front.answers_to_lose = 1
        before = len(front.produced)
        await bus.publish(facts(100, first=101))
        again = front.produced[before:]
        assert len(again) > len(set(again)), "nothing was sent again"
        assert not [one for one in front.produced if NO_PRODUCER in one], "the producer has no id"
        await bus.aclose()
    stored = await asyncio.to_thread(_stored, broker, topic)
    by_event: dict[str, list[tuple[int, int]]] = {}
    for event, partition, number in dict.fromkeys(stored):
        by_event.setdefault(event, []).append((partition, number))
    assert len(by_event) == EVENTS
    assert len({places[0][0] for places in by_event.values()}) > 1, "all events are in one partition"
    for event, places in by_event.items():
        assert len({partition for partition, _ in places}) == 1, event
        assert [number for _, number in places] == sorted({number for _, number in places}), event


def _stored(broker: int, topic: str) -> list[tuple[str, int, int]]:
    """(key, partition, number) of everything in a topic, partition by partition."""
    reader = Consumer({"bootstrap.servers": f"127.0.0.1:{broker}", "group.id": "look", "log_level": 0})
    places = [TopicPartition(topic, partition, 0) for partition in range(MOCK_PARTITIONS)]
    ends = sum(reader.get_watermark_offsets(place, timeout=30)[1] for place in places)
    reader.assign(places)
    found: list[tuple[str, int, int]] = []
    for _ in range(60):
        if len(found) >= ends:
            break
        for one in reader.consume(ends, 1.0):
            assert one.error() is None
            found.append((one.key().decode(), one.partition(), int(dict(one.headers())["n"])))
    reader.close()
    return found


async def test_lag_is_in_the_metrics_by_group_and_partition(broker: int, tmp_path: Path) -> None:
    url = f"kafka://127.0.0.1:{broker}/t{uuid.uuid4().hex}"
    async with open_platform(replace(settings_for(tmp_path), bus=BusSettings(url))) as platform:
        sending = KafkaBus(f"127.0.0.1:{broker}", topic=url.rpartition("/")[2])
        await sending.publish(facts(40))
        await sending.aclose()
        measuring = asyncio.create_task(next(job for job in platform.jobs if job.name == "bus lag").run())
        await eventually(lambda: bool(platform.server.telemetry.bus_lag))
        measuring.cancel()
        page = metrics_page(platform).decode()
        lines = [line for line in page.splitlines() if line.startswith('frontrow_bus_lag_facts{group="notify",')]
        assert len(lines) == MOCK_PARTITIONS
        assert sum(float(line.split()[-1]) for line in lines) == 40


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"SECURITY_PROTOCOL": "sasl_ssl"}, "bus.user is not set; bus.security_protocol sasl_ssl needs a user"),
        ({"SECURITY_PROTOCOL": "sasl_ssl", "USER": "a"}, "bus.password is not set"),
        ({"USER": "a", "PASSWORD": "hunter2"}, "bus.user is set, and bus.security_protocol is plaintext"),
        ({"CA_FILE": __file__}, "bus.ca_file is set, and bus.security_protocol is plaintext"),
        ({"SECURITY_PROTOCOL": "ssl", "CA_FILE": "/nowhere.pem"}, "bus.ca_file: there is no file /nowhere.pem"),
        ({"SECURITY_PROTOCOL": "ssl", "CERT_FILE": __file__}, "bus.key_file is not set; a client's certificate"),
        ({"SECURITY_PROTOCOL": "tls"}, "FRONTROW_BUS_SECURITY_PROTOCOL must be"),
        ({"SASL_MECHANISM": "GSSAPI"}, "FRONTROW_BUS_SASL_MECHANISM must be"),
        ({"URL": "kafka://shop:hunter2@broker/facts"}, "bus.url must not contain a password; set bus.user"),
        ({"URL": "kafka://"}, "bus.url must name the brokers"),
        ({"URL": "memory:", "USER": "a"}, "bus.user is for Kafka"),
    ],
)
def test_settings_that_cannot_work_together_are_refused(given: dict[str, str], says: str) -> None:
    env = {"FRONTROW_SERVER_DEMO": "true", "FRONTROW_BUS_URL": "kafka://broker:9092/facts"}
    env |= {f"FRONTROW_BUS_{name}": value for name, value in given.items()}
    with pytest.raises(ConfigError) as refused:
        read_settings(None, env)
    assert says in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_password_shows_in_no_settings() -> None:
    secret = BusSettings("kafka://b/t", "sasl_ssl", "PLAIN", "shop", "hunter2")
    assert "hunter2" not in repr(secret) + repr(secret.access) + repr(KafkaAccess(password="hunter2"))
