"""A small HTTP/1.1 client for crowds: one keep-alive connection per fan, a few dozen microseconds per request."""

import asyncio
import json
import re
from typing import Any, NamedTuple

LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
RETRY_AFTER = re.compile(rb"\r\nretry-after: (\d+)", re.IGNORECASE)
MAX_HEAD_BYTES = 64 * 1024
TIMEOUT_S = 30.0


class Reply(NamedTuple):
    """A status, a body, and how long to wait before asking again, if the server said so."""

    status: int
    body: bytes
    retry_after_s: int | None = None

    def json(self) -> Any:
        return json.loads(self.body) if self.body else {}


class FanConnection:
    """One fan's connection. `address` is the fan's address as a proxy would report it (X-Forwarded-For)."""

    def __init__(self, host: str, port: int, address: str) -> None:
        self._host, self._port, self._address = host, port, address
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send a request and read the whole response. `Frontrow_Pass="…"` becomes the header Frontrow-Pass.

        A GET on a connection that the server has closed is sent again on a new one, as browsers do.
        """
        reused = self._writer is not None
        try:
            return await self._send_once(method, path, body, headers)
        except (ConnectionError, asyncio.IncompleteReadError):
            await self.aclose()
            if not reused or method != "GET":
                raise
        return await self._send_once(method, path, body, headers)

    async def _send_once(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Reply:
        async with asyncio.timeout(TIMEOUT_S):
            if self._writer is None:
                self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
            assert self._reader is not None
            payload = b"" if body is None else json.dumps(body).encode()
            lines = [
                f"{method} {path} HTTP/1.1",
                f"host: {self._host}:{self._port}",
                f"x-forwarded-for: {self._address}",
            ]
            lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
            if payload:
                lines.append("content-type: application/json")
            lines.append(f"content-length: {len(payload)}")
            self._writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + payload)
            head = await self._reader.readuntil(b"\r\n\r\n")
            found = LENGTH.search(head)
            content = await self._reader.readexactly(int(found[1])) if found else b""
        later = RETRY_AFTER.search(head)
        return Reply(int(head[9:12]), content, int(later[1]) if later else None)

    async def aclose(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._reader = self._writer = None
