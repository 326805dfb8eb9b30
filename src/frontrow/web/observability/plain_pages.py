"""A few plain pages on a socket of their own, for probes and Prometheus: one short request per connection.

The event loop of the process answers them, so a process that is stuck does not answer. Whoever sends too much, sends
or reads too slowly, or asks too often at once is cut off.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Final

REQUEST_WITHIN_S: Final = 5.0
LONGEST_REQUEST: Final = 16 * 1024
AT_ONCE: Final = 32
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
REASONS: Final = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
Answer = tuple[int, str, bytes]  # status, content type, body


@contextlib.asynccontextmanager
async def serve_pages(sock: socket.socket, answer: Callable[[str], Answer]) -> AsyncIterator[None]:
    """Answer GET and HEAD on a listening socket until the block ends. `answer` is given the path."""
    open_now = 0

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        open_now += 1
        try:
            if open_now <= AT_ONCE:
                writer.transport.set_write_buffer_limits(high=0)  # `drain` waits until all of it is on its way
                async with asyncio.timeout(REQUEST_WITHIN_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(_response(head, answer))
                    await writer.drain()
        except TimeoutError:
            writer.transport.abort()  # `close` would wait until it has read the rest
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # it went away, or never said what it wanted
        finally:
            open_now -= 1
            writer.close()

    server = await asyncio.start_server(serve_one, sock=sock, limit=LONGEST_REQUEST)
    async with server:
        yield


def _response(head: bytes, answer: Callable[[str], Answer]) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
    status, kind, body = answer(path) if method in (b"GET", b"HEAD") else (405, "text/plain", b"")
    body = b"" if method == b"HEAD" else body
    fields = f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
    return f"{fields}x-content-type-options: nosniff\r\nconnection: close\r\n\r\n".encode() + body
