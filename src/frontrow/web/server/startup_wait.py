"""A server whose stores do not answer yet: it waits for them, says so, and answers everybody with 503 meanwhile.

The listening socket exists before the stores are asked, because workers share it. Without an answer people would wait
in its queue.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec

from frontrow.core.errors import Overloaded, Unavailable
from frontrow.web.platform.platform import Platform

log = logging.getLogger("frontrow.serve")

START_WITHIN_S: Final = 60.0
PAUSE_S: Final = 1.0
MAX_HEAD_BYTES: Final = 32_768
READ_WITHIN_S: Final = 5.0
RETRY_AFTER_S: Final = 5
_BODY: Final = msgspec.json.encode(
    {
        "type": "urn:frontrow:not_ready",
        "title": "Not ready",
        "status": 503,
        "detail": "this server waits for its stores",
        "code": "not_ready",
    }
)
_ANSWER: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\n"
    b"retry-after: %d\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (RETRY_AFTER_S, len(_BODY), _BODY)
)


async def wait_for_stores(
    platform: Platform, sockets: Sequence[socket.socket], *, within_s: float = START_WITHIN_S
) -> None:
    """Open what is on sale. While a store does not answer, try again; after `within_s` raise `Unavailable`."""
    openings = platform.box_office.openings
    deadline_s = asyncio.get_running_loop().time() + within_s
    while True:  # bounded by the deadline
        try:
            await openings.refresh()
            if not openings.follower.unreachable:
                return
            problem = openings.follower.last_error
        except (Unavailable, Overloaded) as error:
            problem = error.message
        if asyncio.get_running_loop().time() > deadline_s:
            raise Unavailable(f"the stores did not answer within {within_s:.0f} s: {problem}")
        log.warning("waiting for the stores", extra={"problem": problem})
        async with answer_not_ready(sockets):
            await asyncio.sleep(PAUSE_S)


@contextlib.asynccontextmanager
async def answer_not_ready(sockets: Sequence[socket.socket]) -> AsyncIterator[None]:
    """Answer every request on these sockets with 503."""
    servers = [await asyncio.start_server(_refuse, sock=sock.dup(), limit=MAX_HEAD_BYTES) for sock in sockets]
    try:
        yield
    finally:
        for server in servers:
            server.close()


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            async with asyncio.timeout(READ_WITHIN_S):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(_ANSWER)
                await writer.drain()
    finally:
        writer.close()
