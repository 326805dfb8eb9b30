"""Reads how full Redis is. A full Redis refuses every write, so no seat can be held any more."""

from collections.abc import Mapping
from typing import Any, Final

from redis.asyncio.cluster import RedisCluster
from redis.exceptions import RedisError

from frontrow.core.errors import Unavailable
from frontrow.core.redis_url import connect, disconnect, is_cluster

TIMEOUT_S: Final = 2.0


class RedisMemory:
    """Asks each server of a URL for its memory."""

    def __init__(self, url: str) -> None:
        self._client: Any = connect(url, timeout_s=TIMEOUT_S)
        self._asked: dict[str, Any] = {}
        if is_cluster(url):
            self._asked = {"target_nodes": RedisCluster.PRIMARIES}

    async def read(self) -> tuple[int, int]:
        """Bytes used and allowed, of the server that is fullest."""
        try:
            told = await self._client.info("memory", **self._asked)
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis does not tell its memory ({type(error).__name__})", retry_after_s=1.0) from error
        servers = [told] if "used_memory" in told else list(told.values())
        return max((_used_and_allowed(one) for one in servers), key=lambda pair: pair[0] / max(1, pair[1]))

    async def aclose(self) -> None:
        await disconnect(self._client)


def _used_and_allowed(told: Mapping[str, Any]) -> tuple[int, int]:
    """Without `maxmemory` the machine's memory is the limit."""
    return int(told["used_memory"]), int(told.get("maxmemory") or told.get("total_system_memory") or 0)
