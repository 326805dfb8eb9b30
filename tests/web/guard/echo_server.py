"""An app that says what it got, requests as bytes, and a connection whose time the test moves."""

import asyncio
from typing import Any


async def echo_app(scope: Any, receive: Any, send: Any) -> None:
    """The app behind: says that it answered, and what it got."""
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    names = b",".join(name for name, _ in scope["headers"])
    text = b"cold %b %b %b %b" % (scope["method"].encode(), scope["path"].encode(), body, names)
    head = [(b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else text})


class WebSockets(asyncio.Protocol):
    """What uvicorn would give a connection to if a library for WebSockets happened to be installed."""

    def __init__(self, **given: Any) -> None:
        raise AssertionError("such a connection would have none of our bounds")


def get(path: bytes, extra: bytes = b"", method: bytes = b"GET", version: bytes = b"1.1") -> bytes:
    return b"%b %b HTTP/%b\r\nHost: x\r\n%b\r\n" % (method, path, version, extra)


def post(path: bytes, body: bytes) -> bytes:
    return b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (path, len(body), body)


class StandStillLoop:
    """A loop whose time the test moves: what is due is called only when the test says so."""

    def __init__(self) -> None:
        self.now_s, self.due = 1_000.0, list[tuple[float, Any]]()

    def time(self) -> float:
        return self.now_s

    def call_later(self, after_s: float, call: Any, *arguments: Any) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(self.now_s + after_s, call, arguments, asyncio.get_running_loop())
        self.due.append((self.now_s + after_s, handle))
        return handle

    def stand_still(self, for_s: float) -> None:
        """Time passes; then, as in a real loop, timers run before anything is read."""
        self.now_s += for_s
        due, self.due = self.due, []
        for at_s, handle in due:
            if at_s > self.now_s:
                self.due.append((at_s, handle))
            elif not handle.cancelled():
                handle._run()


class Pipe(asyncio.Transport):
    """The server's end of a connection; remembers whether it was closed."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.closed = False
        self.written = b""

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True
