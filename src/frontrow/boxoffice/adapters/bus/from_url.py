"""Opens a bus by URL: `memory:`, `redis://…` (and all other Redis URLs) or `kafka://host:9092,host2:9092/topic`."""

from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.adapters.bus.kafka_access import KafkaAccess, read_kafka_url
from frontrow.boxoffice.adapters.bus.memory import MemoryBus
from frontrow.boxoffice.facts.ports import Bus
from frontrow.core.errors import ConfigError
from frontrow.core.redis_url import SCHEMES, mask_password

FINISH_WITHIN_S: Final = 20.0  # less than the relay's claim


def open_bus(url: str, groups: Sequence[str] = (), access: KafkaAccess | None = None) -> Bus:
    """Open the bus at `url`. `groups` are the consumers of an in-process bus, `access` is for Kafka."""
    scheme = url.partition(":")[0]
    if scheme == "memory":
        return MemoryBus(groups, finish_within_s=FINISH_WITHIN_S)
    if scheme in SCHEMES:
        from frontrow.boxoffice.adapters.bus.redis import RedisBus

        return RedisBus(url)
    if scheme == "kafka":
        try:
            from frontrow.boxoffice.adapters.bus.kafka import KafkaBus
        except ImportError:
            raise ConfigError("a Kafka bus needs its client: pip install 'frontrow[bus]'", param="bus") from None
        servers, topic = read_kafka_url(url)
        return KafkaBus(servers, topic=topic, access=access)
    raise ConfigError(
        f"bus {mask_password(url)[:60]!r} must be memory:, a Redis URL or kafka://host:9092/topic", param="bus"
    )
