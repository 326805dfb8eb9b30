"""Tries to reach a Kafka cluster and says in words what is wrong, for `frontrow doctor`."""

import time
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from frontrow.boxoffice.adapters.bus.kafka_access import KafkaAccess, read_kafka_url

TRY_FOR_S: Final = 5.0
ASK_FOR_S: Final = 0.4
# These come on the way to every failure and explain none.
VAGUE: Final = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._RESOLVE})


class KafkaView(NamedTuple):
    """What a cluster shows of the topic. `partitions` is 0 while there is no such topic."""

    brokers: int
    partitions: int


class KafkaRefusal(Exception):
    """Why the cluster cannot be used (`says`), and what to do (`do`)."""

    def __init__(self, says: str, do: str) -> None:
        super().__init__(says)
        self.says, self.do = says, do


def look_at_kafka(url: str, access: KafkaAccess) -> KafkaView:
    """What the cluster at `url` answers; `KafkaRefusal` if it does not. Takes at most about five seconds."""
    servers, topic = read_kafka_url(url)
    errors: list[KafkaError] = []
    config: dict[str, Any] = {
        "bootstrap.servers": servers,
        "log_level": 0,
        "error_cb": errors.append,
    } | access.options()
    try:
        admin = AdminClient(config)
    except KafkaException as error:
        raise KafkaRefusal(
            f"its settings are refused: {error.args[0].str()[:200]}", "Look at the files of [bus]."
        ) from None
    until_s = time.monotonic() + TRY_FOR_S
    while time.monotonic() < until_s:
        try:
            found = admin.list_topics(topic, timeout=ASK_FOR_S)
        except KafkaException:
            admin.poll(0)
            if any(error.code() not in VAGUE for error in errors):
                break
            continue
        seen = found.topics[topic]
        if seen.error is not None and seen.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return KafkaView(len(found.brokers), 0)
        if seen.error is not None:
            raise explain([seen.error], topic)
        return KafkaView(len(found.brokers), len(seen.partitions))
    raise explain(errors, topic)


def explain(errors: list[KafkaError], topic: str) -> KafkaRefusal:
    """The refusal behind the client's errors, the telling one first."""
    telling = next((error for error in errors if error.code() not in VAGUE), None)
    if telling is None:
        last = errors[0].str()[:200] if errors else "no answer"
        do = "Is bus.url right, do the brokers run, and does bus.security_protocol fit their listener?"
        return KafkaRefusal(f"does not answer: {last}", do)
    said = telling.str().partition(": ")[2][:200] or telling.str()[:200]
    match telling.code():
        case KafkaError._AUTHENTICATION | KafkaError.SASL_AUTHENTICATION_FAILED:
            do = "Are bus.user, bus.password and bus.sasl_mechanism right?"
            return KafkaRefusal(f"refuses us: {said}", do)
        case KafkaError._SSL:
            do = "Set bus.ca_file to the certificate authority of the brokers; if they ask for ours, set bus.cert_file."
            return KafkaRefusal(f"TLS fails: {said}", do)
        case KafkaError.TOPIC_AUTHORIZATION_FAILED | KafkaError.CLUSTER_AUTHORIZATION_FAILED:
            do = f"Allow this user Describe, Read and Write on topic {topic}, Read on our groups, and IdempotentWrite."
            return KafkaRefusal(f"does not let us use topic {topic}", do)
        case _:
            return KafkaRefusal(f"fails: {said}", "Look at the brokers' logs.")
