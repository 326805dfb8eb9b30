"""A crowd over raw sockets, as cheap as Python can be: one request in flight on each keep-alive connection.

The connections are in groups. While the answers of one group are read, the server works on the others, so that it
finds many requests together, as in a crowd, and never waits for this client. Requests are not pipelined on a
connection: people do not share one. Every wait for the server is bounded.
"""

import contextlib
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Self

ANSWER_WITHIN_S = 120
READ_BYTES = 16_384
GROUPS = 4
HEAD = b"Host: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n"
Hear = Callable[[bytes], None]


class Crowd:
    """Keep-alive connections to one server, used by many people in turn."""

    def __init__(self, port: int, connections: int) -> None:
        self._port = port
        self.reopened = 0  # connections that the server had ended
        self._groups: list[list[socket.socket]] = [[] for _ in range(min(GROUPS, connections))]
        try:
            for number in range(connections):
                self._groups[number % len(self._groups)].append(_open(port))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for line in (line for group in self._groups for line in group):
            line.close()

    def ask(self, requests: Iterator[bytes], hear: Hear) -> None:
        """Send all requests, each when its connection is free, and tell `hear` every whole answer.

        A server ends connections that are idle for some seconds. Whose connection has ended without an answer asks once
        more over a new one. That never hides a lost place: its position would be missing at the end.
        """
        busy = deque((group, asked) for group in self._groups if (asked := _send(group, requests)))
        while busy:
            lines, asked = busy.popleft()
            for number, request in enumerate(asked):
                hear(_answer(lines[number]) or self._ask_again(lines, number, request))
            if asked := _send(lines, requests):
                busy.append((lines, asked))

    def _ask_again(self, lines: list[socket.socket], number: int, request: bytes) -> bytes:
        lines[number].close()
        lines[number] = _open(self._port)
        lines[number].sendall(request)
        self.reopened += 1
        answer = _answer(lines[number])
        if not answer:
            raise ConnectionResetError("the server ended two connections without an answer")
        return answer


def _open(port: int) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port), ANSWER_WITHIN_S)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.settimeout(None)  # the kernel's own bound costs no call for each answer
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", ANSWER_WITHIN_S, 0))
    return line


def _send(lines: list[socket.socket], requests: Iterator[bytes]) -> list[bytes]:
    """Ask on each connection as long as there are requests; what was asked, in order."""
    asked = list(islice(requests, len(lines)))
    for line, request in zip(lines, asked, strict=False):
        with contextlib.suppress(ConnectionError):  # it has ended: found when the answer is read
            line.sendall(request)
    return asked


def _answer(line: socket.socket) -> bytes:
    """The next answer; nothing if the connection ended before it began."""
    try:
        data = line.recv(READ_BYTES)
    except ConnectionError:
        return b""
    except BlockingIOError:
        raise TimeoutError(f"the server did not answer within {ANSWER_WITHIN_S} s") from None
    return data if not data or _is_whole(data) else _read_on(line, data)


def _is_whole(data: bytes) -> bool:
    end = data.find(b"\r\n\r\n")
    return end >= 0 and len(data) - end - 4 == _body_bytes(data[: end + 2])


def _body_bytes(head: bytes) -> int:
    at = head.find(b"\r\ncontent-length: ")
    if at < 0:
        at = head.lower().find(b"\r\ncontent-length: ")
    return int(head[at + 18 : head.find(b"\r", at + 18)]) if at >= 0 else 0


def _read_on(line: socket.socket, data: bytes) -> bytes:
    """The rest of an answer that came in pieces."""
    while True:
        more = line.recv(READ_BYTES)
        if not more:
            raise ConnectionResetError(f"the server ended a connection after {data[:120]!r}")
        data += more
        if _is_whole(data):
            return data
