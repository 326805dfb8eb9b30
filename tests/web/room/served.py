"""Runs an ASGI app in a uvicorn of its own, in a thread, on a port the system chooses; and a raw client."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn

from tests.support.eventually import eventually_sync


@contextlib.contextmanager
def serving(app: Any, http: Any = "httptools", **options: Any) -> Iterator[int]:
    """The port of a running server; stopped when the block ends."""
    sock = socket.create_server(("127.0.0.1", 0), backlog=2048)
    settings: dict[str, Any] = {"log_level": "critical", "access_log": False, "proxy_headers": False}
    settings |= {"timeout_graceful_shutdown": 1} | options
    server = uvicorn.Server(uvicorn.Config(app, http=http, **settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    eventually_sync(lambda: server.started or not thread.is_alive())
    assert server.started, "the server did not start"
    try:
        yield sock.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)
        server.force_exit = True
        thread.join(10)
        sock.close()
        assert not thread.is_alive(), "the server did not stop"


class Line:
    """A raw TCP connection: bytes out, answers in."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), 10)
        self.buffer = b""

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self.sock.sendall(part)

    def until(self, mark: bytes) -> bytes:
        """Bytes up to and including `mark`."""
        while mark not in self.buffer:
            more = self.sock.recv(65536)
            assert more, f"closed before {mark!r}; got {self.buffer[:300]!r}"
            self.buffer += more
        head, _, self.buffer = self.buffer.partition(mark)
        return head + mark

    def answer(self) -> tuple[int, dict[bytes, bytes], bytes]:
        """The next answer: status, headers, body (by content-length or chunks)."""
        lines = self.until(b"\r\n\r\n").split(b"\r\n")
        status = int(lines[0].split(b" ")[1])
        headers = {k.lower(): v for k, _, v in (line.partition(b": ") for line in lines[1:] if line)}
        if headers.get(b"transfer-encoding") == b"chunked":
            body = b""
            while size := int(self.until(b"\r\n"), 16):
                body += self.exactly(size + 2)[:-2]
            self.exactly(2)
            return status, headers, body
        return status, headers, self.exactly(int(headers.get(b"content-length", b"0")))

    def exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            more = self.sock.recv(65536)
            assert more, "closed in the middle of a body"
            self.buffer += more
        found, self.buffer = self.buffer[:count], self.buffer[count:]
        return found

    def at_end(self) -> bool:
        """True when the server has closed and nothing is left."""
        try:
            return not self.buffer and self.sock.recv(1) == b""
        except ConnectionResetError:
            return True
