"""Connects to PostgreSQL by URL: one server, or several of which one is the primary.

    postgresql://user@host:5432/name          postgresql://user@host1:5432,host2:5432/name
    postgresql://user@pgbouncer:6432/name?pool_mode=transaction

Of several hosts only the primary is used, unless the URL asks for something else (`?target_session_attrs=any`). Each
host has a time-out of its own, so one that swallows everything does not keep us from the next. The host that was the
primary last is asked first. A connection whose other end is gone is closed by TCP after some seconds, even when idle.

Behind PgBouncer in transaction mode each transaction may run on another connection of the server, so nothing is kept in
one: no prepared statement has a name, each transaction makes its settings (`begin_with`), and whatever has parameters
runs inside a transaction.
"""

import re
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from frontrow.core.errors import ConfigError

if TYPE_CHECKING:
    import asyncpg

CONNECT_TIMEOUT_S: Final = 2.0  # per host
PRIMARY: Final = "target_session_attrs=primary"
_POOL_MODE: Final = re.compile(r"(?<=[?&])pool_mode=([^&]*)&?")
# The settings that PgBouncer takes with a connection; others it refuses.
_TAKEN_BY_POOLERS: Final = frozenset({"application_name", "client_encoding", "datestyle", "timezone"})
_PARTS: Final = re.compile(
    r"(?P<scheme>postgres(?:ql)?://)(?P<credentials>[^/?#]*@)?(?P<hosts>[^/?#]*)(?P<rest>.*)", re.DOTALL
)
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^:\[\]@]*)(?::\d{0,5})?")
# Ask an idle peer after 5 s, then every 2 s; three silent answers, or 6 s without an acknowledgement, end it.
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 6_000}


def check_postgres_url(url: str) -> None:
    """Refuse what the driver would read differently: it takes an unescaped password for a port, and says it aloud."""
    parts = _PARTS.fullmatch(url)
    hosts = parts["hosts"].split(",") if parts else []
    if parts is None or "@" in parts["rest"] or not all(map(_HOST.fullmatch, hosts)):
        raise ConfigError(
            "this PostgreSQL URL cannot be read; a port is a number, and / ? # [ ] @ in a password are written as "
            "%2F %3F %23 %5B %5D %40"
        )


def read_pool_mode(url: str) -> tuple[bool, str]:
    """Whether `url` leads to a pooler in transaction mode, and the URL without that word."""
    found = _POOL_MODE.search(url)
    if found is None:
        return False, url
    if found[1] != "transaction":
        raise ConfigError(f"pool_mode can be transaction only, not {found[1]!r}")
    return True, _POOL_MODE.sub("", url).rstrip("?&")


def check_direct(url: str, work: str) -> None:
    """Refuse a URL that leads to a pooler, for work that needs a connection of its own."""
    if read_pool_mode(url)[0]:
        raise ConfigError(
            f"{work} needs PostgreSQL itself, and this URL leads to a pooler: set ledger.direct_url, or give --ledger",
            param="ledger.direct_url",
        )


def begin_with(settings: Mapping[str, str], begin: str = "BEGIN") -> str:
    """Begin a transaction with settings of its own, in one round trip."""
    made = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
    return f"{begin}; SELECT {made}"


def ask_for_primary(url: str) -> str:
    """`url` as it is, except that one with several hosts says that only the primary will do."""
    parts = _PARTS.fullmatch(url)
    if parts is None:
        return url
    rest = parts["rest"].replace("target_session_attrs=read-write", PRIMARY)  # our readers are read-only on purpose
    if "," in parts["hosts"] and "target_session_attrs=" not in rest:
        rest += ("&" if "?" in rest else "?") + PRIMARY
    return url[: parts.start("rest")] + rest


def split_hosts(url: str) -> list[str]:
    """One URL per host of `url`."""
    url = ask_for_primary(url)
    parts = _PARTS.fullmatch(url)
    if parts is None:
        return [url]
    before, after = url[: parts.start("hosts")], url[parts.end("hosts") :]
    return [before + host + after for host in parts["hosts"].split(",")]


def split_replicas(url: str) -> list[str]:
    """One URL per host of `url`, each of them good enough whether it is the primary or not."""
    parts = _PARTS.fullmatch(url)
    if parts is not None and "target_session_attrs=" not in parts["rest"]:
        url += ("&" if "?" in parts["rest"] else "?") + "target_session_attrs=any"
    return split_hosts(url)


class PostgresHosts:
    """The hosts of one URL. `connect` returns a connection to the first that can be used."""

    def __init__(self, url: str) -> None:
        self.is_pooled, direct = read_pool_mode(url)
        self._urls = split_hosts(direct)
        self._last_good = 0

    async def connect(
        self, *_: Any, timeout: float | None = None, **options: Any
    ) -> "asyncpg.Connection[asyncpg.Record]":
        """A new connection. `timeout` counts for each host. Raises the error of the host that was asked first.

        Can stand as a pool's `connect`: what such a pool says about hosts is ignored.
        """
        import asyncpg
        from asyncpg.exceptions import TargetServerAttributeNotMatched

        if self.is_pooled:
            kept = {
                name: value for name, value in options.get("server_settings", {}).items() if name in _TAKEN_BY_POOLERS
            }
            options |= {"server_settings": kept, "statement_cache_size": 0}
        failures = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TargetServerAttributeNotMatched)
        failure: Exception | None = None
        for number in [*range(self._last_good, len(self._urls)), *range(self._last_good)]:
            try:
                connection: asyncpg.Connection[asyncpg.Record]
                connection = await asyncpg.connect(self._urls[number], timeout=timeout or CONNECT_TIMEOUT_S, **options)
            except failures as error:
                if "unsupported startup parameter" in str(error):
                    told = "a pooler stands before PostgreSQL: add ?pool_mode=transaction to the URL"
                    raise ConfigError(told) from None
                failure = failure or error
                continue
            self._last_good = number
            _notice_dead_peers(connection)
            return connection
        assert failure is not None
        raise failure


async def connect(url: str, **options: Any) -> "asyncpg.Connection[asyncpg.Record]":
    """One connection to the primary of `url`."""
    return await PostgresHosts(url).connect(**options)


def _notice_dead_peers(connection: Any) -> None:
    transport = getattr(connection, "_transport", None)  # asyncpg has no public way to its socket
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # not on every system
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
