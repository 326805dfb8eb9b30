"""A small HTTP/1.1 client for crowds: keep-alive connections, a few dozen microseconds per request.

`FanConnection` is one connection. `ConnectionPool` shares a bounded number of them among any number of fans, as a proxy
would: each request says for which fan's address it is.
"""

import asyncio
import contextlib
import functools
import json
import re
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from frontrow.core.errors import InvalidInput

LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
RETRY_AFTER = re.compile(rb"\r\nretry-after: (\d{1,6})\r\n", re.IGNORECASE)
MAX_HEAD_BYTES = 64 * 1024
MAX_CHUNKS = 100_000
TIMEOUT_S = 30.0
STALE_S = 2.0  # an idle connection may have been closed by the server meanwhile
LOST = (ConnectionError, asyncio.IncompleteReadError)


class Reply(NamedTuple):
    """A status, a body, and how long the server asks to wait (0: it does not)."""

    status: int
    body: bytes
    retry_after_s: float = 0.0

    def json(self) -> Any:
        return json.loads(self.body) if self.body else {}


@dataclass(frozen=True, slots=True)
class Target:
    """A server: what it is called, and the one address that requests go to."""

    host: str
    port: int
    connect_to: str
    tls: bool = False

    @classmethod
    def from_url(cls, url: str) -> "Target":
        """The server of `http://host:port`; the name is looked up when a connection is opened."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            port, parts = 0, urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
            raise InvalidInput(f"{url!r} is not an address like http://127.0.0.1:8000", param="url")
        tls = parts.scheme == "https"
        return cls(parts.hostname, port or (443 if tls else 80), parts.hostname, tls)

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


@functools.cache
def _tls_context() -> ssl.SSLContext:
    """Checks certificates; made once, because reading all roots takes long."""
    return ssl.create_default_context()


class FanConnection:
    """One connection. `address` is the fan's address as a proxy would report it (X-Forwarded-For)."""

    def __init__(self, target: Target, address: str) -> None:
        self.target, self.address = target, address
        self._tls = _tls_context() if target.tls else None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._used_at_s = 0.0
        self.received_bytes = 0

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send a request and read the whole response. `Frontrow_Pass="…"` becomes the header Frontrow-Pass.

        A request on a connection that the server has closed is sent again on a new one, as browsers do, if that cannot
        do harm: a GET, or a request with an Idempotency-Key.
        """
        if self._writer is not None and time.monotonic() - self._used_at_s > STALE_S and method != "GET":
            await self.aclose()
        reused = self._writer is not None
        try:
            return await self._send_once(method, path, body, headers)
        except LOST:
            await self.aclose()
            if not reused or (method != "GET" and "Idempotency_Key" not in headers):
                raise
        except BaseException:  # a response that nobody has read would be taken for the next one
            await self.aclose()
            raise
        return await self._send_once(method, path, body, headers)

    async def _send_once(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Reply:
        async with asyncio.timeout(TIMEOUT_S):
            if self._writer is None:
                target = self.target
                self._reader, self._writer = await asyncio.open_connection(
                    target.connect_to,
                    target.port,
                    ssl=self._tls,
                    server_hostname=target.host if self._tls else None,
                    limit=MAX_HEAD_BYTES,
                )
            assert self._reader is not None
            payload = b"" if body is None else json.dumps(body).encode()
            lines = [
                f"{method} {path} HTTP/1.1",
                f"host: {self.target.authority}",
                f"x-forwarded-for: {self.address}",
            ]
            lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
            if payload:
                lines.append("content-type: application/json")
            lines.append(f"content-length: {len(payload)}")
            self._writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + payload)
            head = await self._reader.readuntil(b"\r\n\r\n")
            content = await self._read_body(head)
        self._used_at_s = time.monotonic()
        self.received_bytes += len(head) + len(content)
        if b"\r\nconnection: close\r\n" in head.lower():
            await self.aclose()
        found = RETRY_AFTER.search(head)
        return Reply(int(head[9:12]), content, float(found[1]) if found else 0.0)

    async def _read_body(self, head: bytes) -> bytes:
        assert self._reader is not None
        found = LENGTH.search(head)
        if found:
            return await self._reader.readexactly(int(found[1]))
        if b"\r\ntransfer-encoding: chunked\r\n" not in head.lower():
            return b""
        parts = []
        for _ in range(MAX_CHUNKS):
            size = int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16)
            parts.append((await self._reader.readexactly(size + 2))[:-2])
            if not size:
                break
        return b"".join(parts)

    async def aclose(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._reader = self._writer = None


class ConnectionPool:
    """At most `limit` connections; who finds none free waits for one, in order."""

    def __init__(self, target: Target, limit: int) -> None:
        self._target = target
        self._free: deque[FanConnection] = deque()
        self._all: list[FanConnection] = []
        self._slots = asyncio.Semaphore(limit)

    @contextlib.asynccontextmanager
    async def connection(self, address: str) -> AsyncIterator[FanConnection]:
        """A connection for one request of the fan at this address."""
        async with self._slots:
            if self._free:
                connection = self._free.pop()
            else:
                connection = FanConnection(self._target, address)
                self._all.append(connection)
            connection.address = address
            try:
                yield connection
            finally:
                self._free.append(connection)

    async def aclose(self) -> None:
        for connection in self._all:
            await connection.aclose()
