"""Connects every store to Redis or Valkey by URL: single server, TLS, unix socket, Sentinel or Cluster.

    redis://host:6379/0             rediss://host:6380/0 (TLS)      unix:///run/redis.sock?db=0
    redis+cluster://host:7000       redis+sentinel://host:26379,host2:26379/service-name/0
    rediss+cluster://host:7000      rediss+sentinel://host:26379,host2:26379/service-name/0

The client never retries. A script whose reply was lost may have run, and only the caller knows whether it is safe to
send it again. Every call has a timeout. No message shows a URL's password.
"""

import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from frontrow.core.errors import ConfigError

try:
    import hiredis
except ImportError:
    hiredis = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import redis as redis_sync
    import redis.asyncio as redis_async

SCHEMES = ("redis", "rediss", "unix", "redis+cluster", "redis+sentinel", "rediss+cluster", "rediss+sentinel")
EXAMPLE = "redis://127.0.0.1:6379/0"


def scheme_of(url: str) -> str:
    """The URL's scheme, checked."""
    scheme = url.partition("://")[0]
    if "://" not in url or scheme not in SCHEMES:
        shown = mask_password(url)[:60]
        raise ConfigError(f"{shown!r} is not a Redis URL; it starts with one of {', '.join(SCHEMES)}, like {EXAMPLE}")
    return scheme


def mask_password(url: str) -> str:
    """`url` as messages and logs may show it: without user and password, which stand before the @ or in the query."""
    credentials, at, rest = url.rpartition("@")
    if at:
        scheme, separator, _ = credentials.partition("://")
        url = f"{scheme}://***@{rest}" if separator else f"***@{rest}"
    return re.sub(r"(?i)((?:password|username)=)[^&#]*", r"\1***", url)


def is_cluster(url: str) -> bool:
    return scheme_of(url).endswith("+cluster")


def connect(url: str, *, timeout_s: float = 1.0, **options: Any) -> "redis_async.Redis":
    """An asyncio client for `url`. Connects on first use. (A Cluster client has the same commands.)"""
    _need_redis()
    import redis.asyncio as module
    from redis.asyncio.retry import Retry

    client: redis_async.Redis = _connect(module, Retry, url, timeout_s, options)
    _report_closed_transports(client)
    return client


def _report_closed_transports(client: Any) -> None:
    """Make a connection that the server has reset raise redis-py's ConnectionError.

    uvloop raises RuntimeError when a closed transport is written to, which redis-py does not know.
    """
    if hasattr(client, "connection_pool"):
        pool = client.connection_pool
        pool.connection_class = _reporting(pool.connection_class)
        return
    for node in client.nodes_manager.startup_nodes.values():  # a Cluster makes the other nodes from these arguments
        node.connection_class = _reporting(node.connection_class)
    client.connection_kwargs["connection_class"] = _reporting(client.connection_kwargs.get("connection_class"))


@functools.cache
def _reporting(connection_class: Any) -> Any:
    from redis.asyncio.connection import Connection
    from redis.exceptions import ConnectionError

    class Reporting(connection_class or Connection):  # type: ignore[misc]
        async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
            """As redis-py's, but what the socket takes at once is written without a task and its timeout.

            A server that does not read is noticed when the reply does not come in time.
            """
            writer = self._writer
            if (
                not self.is_connected
                or writer.transport.is_closing()
                or writer.transport.get_write_buffer_size()
                or (check_health and self.health_check_interval)
            ):
                await super().send_packed_command(command, check_health)
                return
            try:
                writer.writelines([command] if isinstance(command, bytes) else command)
            except (RuntimeError, OSError) as error:
                await self.disconnect(nowait=True)
                raise ConnectionError(f"the command could not be written: {error}") from error

        async def _send_packed_command(self, command: Any) -> None:
            try:
                await super()._send_packed_command(command)
            except RuntimeError as error:
                raise ConnectionResetError(str(error)) from error

    return Reporting


def connect_sync(url: str, *, timeout_s: float = 1.0, **options: Any) -> "redis_sync.Redis":
    """A blocking client for `url`. Connects on first use."""
    _need_redis()
    import redis as module
    from redis.retry import Retry

    client: redis_sync.Redis = _connect(module, Retry, url, timeout_s, options)
    return client


def check_url(url: str, **options: Any) -> None:
    """Raise `ConfigError` if the URL or the options are wrong. Sends nothing, also for a Cluster."""
    _need_redis()
    import redis as module
    from redis.exceptions import DataError
    from redis.retry import Retry

    _check_database(url, scheme_of(url))
    client = _connect(module, Retry, url.replace("+cluster", "", 1), 1.0, options)
    try:
        client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
    except DataError as error:
        raise ConfigError(f"store {mask_password(url)!r}: {error}") from None


def sort_clients(given: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """The blocking and the asyncio client among what was given as store; one may be missing."""
    _need_redis()
    import redis
    import redis.asyncio

    if options:
        raise ConfigError(f"{min(options)} belongs to the client that you give as store", param=min(options))
    clients: Sequence[Any] = given if isinstance(given, tuple | list) else (given,)
    blocking = [each for each in clients if isinstance(each, redis.Redis | redis.RedisCluster)]
    for_asyncio = [each for each in clients if isinstance(each, redis.asyncio.Redis | redis.asyncio.RedisCluster)]
    if not clients or len(blocking) > 1 or len(for_asyncio) > 1 or len(blocking) + len(for_asyncio) != len(clients):
        raise ConfigError(
            f"store must be a URL, a client of redis-py, or a pair of them (redis.Redis(…), redis.asyncio.Redis(…)), "
            f"not {type(given).__name__}",
            param="store",
        )
    return (*blocking, None)[0], (*for_asyncio, None)[0]


def derive_client(client: Any, timeout_s: float) -> Any:
    """A client that connects like `client` but with connections and timeouts of its own, and that never retries.

    A Cluster's client is returned as it is: its connections cannot be had apart from it.
    """
    import redis.asyncio
    from redis.backoff import NoBackoff

    pool = getattr(client, "connection_pool", None)
    if pool is None:
        return client
    for_asyncio = isinstance(client, redis.asyncio.Redis)
    module: Any = redis.asyncio if for_asyncio else redis
    retry = (redis.asyncio.retry.Retry if for_asyncio else redis.retry.Retry)(NoBackoff(), 0)
    timeouts = {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s, "retry": retry}
    own = module.ConnectionPool(connection_class=pool.connection_class, **(pool.connection_kwargs | timeouts))
    return module.Redis.from_pool(own)


def _need_redis() -> None:
    try:
        import redis  # noqa: F401
    except ImportError:
        raise ConfigError("a Redis store needs the Redis client: pip install 'frontrow-limits[redis]'") from None


def _connect(module: Any, retry_class: Any, url: str, timeout_s: float, options: dict[str, Any]) -> Any:
    from redis.backoff import NoBackoff

    scheme = scheme_of(url)
    _check_database(url, scheme)
    plain, _, kind = scheme.partition("+")
    settings: dict[str, Any] = {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": retry_class(NoBackoff(), 0),
    } | options
    try:
        if kind == "cluster":
            return module.RedisCluster.from_url(url.replace(scheme, plain, 1), **settings)
        if kind == "sentinel":
            return _sentinel(module, url, settings | _driver())
        return module.Redis.from_url(url, **settings, **_driver())
    except ValueError as error:
        raise ConfigError(f"store {mask_password(url)!r}: {_reason(url, error)}; a valid one is {EXAMPLE}") from None


@functools.cache
def _driver() -> dict[str, Any]:
    """What a client tells the server about itself. Given here, redis-py does not look it up again for each connection,
    which would take a millisecond."""
    try:
        from redis.driver_info import DriverInfo
    except ImportError:  # an older redis-py
        return {}
    return {"driver_info": DriverInfo()}


def _reason(url: str, error: ValueError) -> str:
    """What the client says, unless it repeats a piece of the password that it took for something else."""
    credentials = url.partition("://")[2].rpartition("@")[0]
    pieces = [piece for piece in re.split(r"[^\w]+", credentials) if piece]
    if any(piece in str(error) for piece in pieces):
        return "it cannot be read; / ? # [ ] @ in a password are written as %2F %3F %23 %5B %5D %40"
    return str(error)


def _check_database(url: str, scheme: str) -> None:
    """The client would take database 0 for one that is no number. A Cluster has only that one."""
    if scheme == "unix" or scheme.endswith("+sentinel"):
        return
    database = re.split("[?#]", url.partition("://")[2].rpartition("@")[2])[0].partition("/")[2]
    if not re.fullmatch("0?" if scheme.endswith("+cluster") else r"\d*", database):
        wanted = "a Cluster has only database 0" if scheme.endswith("+cluster") else "the database must be a number"
        raise ConfigError(f"store {mask_password(url)!r}: {wanted}, not {database!r}; a valid one is {EXAMPLE}")


def _sentinel(module: Any, url: str, settings: dict[str, Any]) -> Any:
    """A client of the primary that Sentinels name. With TLS, both the Sentinels and the primary are asked by TLS."""
    scheme, _, rest = url.partition("://")
    places, _, query = rest.partition("?")
    hosts_part, _, path = places.partition("/")
    credentials, at, hosts = hosts_part.rpartition("@")
    name, _, db = path.partition("/")
    if not hosts or not name:
        example = f"{scheme}://host:26379,host2:26379/service-name/0"
        raise ConfigError(f"store {mask_password(url)!r} must be like {example}")
    addresses = [_host_and_port(host) for host in hosts.split(",")]
    parsed = module.connection.parse_url(
        f"{scheme.partition('+')[0]}://{credentials}{at}primary/{int(db or 0)}?{query}"
    )
    tls = {"ssl": True} if scheme.startswith("rediss") else {}
    own = {key: value for key, value in parsed.items() if key not in ("host", "port", "connection_class")}
    watched = {key: value for key, value in own.items() if key.startswith("ssl_")} | tls
    timeouts = {key: value for key, value in settings.items() if key in ("socket_timeout", "socket_connect_timeout")}
    sentinel = module.sentinel.Sentinel(addresses, sentinel_kwargs=watched | timeouts)
    return sentinel.master_for(name, **(settings | own | tls))


def _host_and_port(host: str) -> tuple[str, int]:
    part = urlsplit(f"//{host}")
    return part.hostname or "127.0.0.1", part.port or 26379


async def call(client: Any, *words: Any) -> Any:
    """Run one command over an asyncio client, packed in C instead of in Python.

    For commands with hundreds of arguments (batched scripts), packing is most of the client's cost.
    """
    pool = getattr(client, "connection_pool", None)
    if pool is None or hiredis is None:  # a Cluster client finds the node itself
        return await client.execute_command(*words)
    connection = await pool.get_connection()
    try:
        await connection.send_packed_command(hiredis.pack_command(words), check_health=False)
        return await connection.read_response()
    finally:
        await pool.release(connection)


async def call_many(client: Any, commands: Sequence[Sequence[Any]]) -> list[Any]:
    """Run commands over one connection in one round trip; an error is the reply of its command."""
    pool = getattr(client, "connection_pool", None)
    if pool is None or hiredis is None:
        pipeline = client.pipeline(transaction=False)
        for words in commands:
            pipeline.execute_command(*words)
        return list(await pipeline.execute(raise_on_error=False))
    from redis.exceptions import ResponseError

    connection = await pool.get_connection()
    replies: list[Any] = []
    try:
        packed = b"".join(hiredis.pack_command(tuple(words)) for words in commands)
        await connection.send_packed_command(packed, check_health=False)
        for _ in commands:
            try:
                replies.append(await connection.read_response())
            except ResponseError as error:
                replies.append(error)
    finally:
        if len(replies) < len(commands):  # somebody else must not read the rest
            await connection.disconnect()
        await pool.release(connection)
    return replies


def call_sync(client: Any, *words: Any) -> Any:
    """`call` over a blocking client."""
    pool = getattr(client, "connection_pool", None)
    if pool is None or hiredis is None:
        return client.execute_command(*words)
    connection = pool.get_connection()
    try:
        connection.send_packed_command([hiredis.pack_command(words)], check_health=False)
        return connection.read_response()
    finally:
        pool.release(connection)


async def disconnect(client: Any) -> None:
    """Close an asyncio client, including its connections to Sentinels."""
    await client.aclose()
    for watcher in _sentinels(client):
        await watcher.aclose()


def disconnect_sync(client: Any) -> None:
    """Close a blocking client, including its connections to Sentinels."""
    client.close()
    for watcher in _sentinels(client):
        watcher.close()


def _sentinels(client: Any) -> list[Any]:
    manager = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
    return list(manager.sentinels) if manager is not None else []
