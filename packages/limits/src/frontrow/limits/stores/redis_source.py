"""Where a store's connections to Redis come from: a URL, or redis-py clients that the application made.

redis-py connects: it knows TLS, Sentinel, credentials and the handshake. Then the connection is taken over, because a
call by redis-py's public interface costs more CPU. `python -m bench.limits_shortcuts` measures one blocking call:

| how a check's script is called | CPU in µs |
|---|---|
| on the socket that was taken over, which the kernel times | 7.67 |
| `send_packed_command` and `read_response` of redis-py's connection | 8.95 |
| `execute_command` of redis-py's client | 18.43 |

`tests/limits/test_redis_connections.py` watches the two private names that this relies on, `_sock` and `_writer`. A
client whose connections cannot be taken over (a Cluster, a fake) makes the calls itself.
"""

import asyncio
import socket
from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.core.redis_url import (
    check_url,
    connect,
    connect_sync,
    disconnect,
    disconnect_sync,
    is_cluster,
    mask_password,
    sort_clients,
)

MIN_TIMEOUT_S = 1.0  # of each step of connecting; callers wait no longer than their own deadline


class RedisSource:
    """Opens connections for blocking and for asyncio callers."""

    def __init__(self, given: Any, *, deadline_s: float = MIN_TIMEOUT_S, **options: Any) -> None:
        """`given` is a URL, a redis-py client, or a pair of clients, one blocking and one for asyncio."""
        need_redis_client()
        self._url: str | None = given if isinstance(given, str) else None
        self.timeout_s = max(MIN_TIMEOUT_S, deadline_s)
        self._options = {"timeout_s": self.timeout_s, "protocol": 2} | options
        clients: tuple[Any, Any] = (None, None) if self._url is not None else sort_clients(given, options)
        self._blocking, self._asyncio = clients
        self.is_cluster = is_cluster(self._url) if self._url is not None else _is_cluster(*clients)
        self.shown = mask_password(self._url) if self._url is not None else "of your client"
        if self._url is not None:
            check_url(self._url, **options)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Equal for sources that connect in the same way."""
        return (self._url, id(self._blocking), id(self._asyncio), *sorted(self._options.items()))

    @property
    def serves_blocking(self) -> bool:
        return self._url is not None or self._blocking is not None

    @property
    def serves_asyncio(self) -> bool:
        return self._url is not None or self._asyncio is not None

    def open_blocking(self) -> tuple[socket.socket | None, Any]:
        """A connected socket, or a client to call if its sockets cannot be had. May take as long as its timeouts."""
        client = self._blocking or connect_sync(str(self._url), **self._options)
        pool = getattr(client, "connection_pool", None)
        if pool is None:
            return None, client
        connection = pool.connection_class(**pool.connection_kwargs)
        try:
            connection.connect()
            taken = getattr(connection, "_sock", None)
            if not isinstance(taken, socket.socket):
                return None, client
            connection._sock = None  # ours now: the connection object must not close it
            return taken, None
        finally:
            if self.owns(client):
                disconnect_sync(client)  # its connections to Sentinels

    async def open_asyncio(self, protocol: asyncio.BaseProtocol) -> tuple[asyncio.StreamWriter | None, Any]:
        """A connection whose incoming bytes go to `protocol`, or a client to call if that cannot be had."""
        client = self._asyncio or connect(str(self._url), **self._options)
        pool = getattr(client, "connection_pool", None)
        if pool is None:
            await client.initialize()  # once, so that concurrent calls do not each load the cluster's slots
            return None, client
        connection = pool.connection_class(**pool.connection_kwargs)
        taken: asyncio.StreamWriter | None = None
        try:
            await connection.connect()
            writer = getattr(connection, "_writer", None)
            if isinstance(writer, asyncio.StreamWriter):
                connection._reader = connection._writer = None  # ours now: the connection object must not close it
                writer.transport.set_protocol(protocol)
                taken = writer
            if self.owns(client):
                await disconnect(client)  # its connections to Sentinels
        except BaseException:
            if taken is not None:
                taken.transport.abort()
            await connection.disconnect(nowait=True)
            if self.owns(client):
                await disconnect(client)
            raise
        return taken, (None if taken is not None else client)

    def owns(self, client: Any) -> bool:
        """Whether this source made `client` and the store should close it."""
        return client is not self._blocking and client is not self._asyncio


def need_redis_client() -> None:
    """Raise a `ConfigError` that says what to install, if the client is not there."""
    try:
        import hiredis  # noqa: F401
        import redis.asyncio  # noqa: F401  # now, not during the first check, whose deadline is short
    except ImportError:
        raise ConfigError("a Redis store needs the Redis client: pip install 'frontrow-limits[redis]'") from None


def _is_cluster(*clients: Any) -> bool:
    kinds = {getattr(client, "connection_pool", None) is None for client in clients if client is not None}
    if len(kinds) == 2:
        raise ConfigError("of two clients, both or neither must be of a Cluster", param="store")
    return kinds.pop()
