"""The servers that `bench.room` compares, each in a process of its own: `python -m bench.room_servers KIND`."""

import asyncio
import socket
import sys
from typing import Any

import uvicorn

from frontrow.web.hot import lane
from frontrow.web.wire import JSON, Answer, Ask

HELLO = b'{"hello":"world"}'


async def hello_app(scope: Any, receive: Any, send: Any) -> None:
    """The floor: the least an ASGI app can do."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    head = [(b"content-type", b"application/json"), (b"content-length", b"17")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": HELLO})


HELLO_ANSWER = Answer(200, JSON, HELLO)


def hot_hello(ask: Ask) -> Answer:
    return HELLO_ANSWER


def run(app: Any, http: Any = "httptools") -> None:
    """Serve on a port the system chose; print it first."""
    sock = socket.create_server(("127.0.0.1", 0), backlog=16384)
    print(sock.getsockname()[1], flush=True)
    config = uvicorn.Config(app, http=http, loop="uvloop", log_level="warning", access_log=False, proxy_headers=False)
    server = uvicorn.Server(config)
    asyncio.run(server.serve(sockets=[sock]), loop_factory=None) if False else server.run(sockets=[sock])


def main() -> None:
    kind = sys.argv[1]
    if kind == "hello":
        run(hello_app)
    elif kind == "hot-hello":
        run(hello_app, lane({(b"GET", b"/"): hot_hello}))
    else:
        sys.exit(f"unknown server {kind}")


if __name__ == "__main__":
    main()
