"""The servers that `bench.room` compares, each in a process of its own: `python -m bench.room_servers KIND [REDIS]`.

hello: the least an ASGI app can do. hot-hello: the same through the fast path. room / room-cold: the waiting room with
and without the fast path. fastapi: routes that do the same work in the usual way (PyJWT, redis-py).
"""

import asyncio
import contextlib
import json
import socket
import tempfile
from typing import Any

import uvicorn

from bench.measure import options
from frontrow.web.fastpath.protocol import fast_path
from frontrow.web.http.messages import JSON, EndpointRequest, EndpointResponse

HELLO = b'{"hello":"world"}'
HELLO_ANSWER = EndpointResponse(200, JSON, HELLO)
SECRET = "s" * 32


async def hello_app(scope: Any, receive: Any, send: Any) -> None:
    """The floor."""
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": message["type"] + ".complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    head = [(b"content-type", b"application/json"), (b"content-length", b"17")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": HELLO})


def hot_hello(ask: EndpointRequest) -> EndpointResponse:
    return HELLO_ANSWER


def fastapi_app(redis_url: str) -> Any:
    """The waiting room's three hot routes as most people would write them."""
    import jwt
    import redis.asyncio
    from fastapi import FastAPI, Header, HTTPException
    from fastapi.responses import Response

    client = redis.asyncio.Redis.from_url(redis_url, max_connections=256)
    window = {"lo": 0, "hi": 1000, "rate": 60_000}
    document = json.dumps({"e": "aurora", "l": [[0, 1000, 2000]], "r": [60_000], "sig": "x" * 86})

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> Any:
        yield
        await client.aclose()

    app = FastAPI(lifespan=life)

    @app.post("/join", status_code=201)
    async def join() -> dict[str, Any]:
        position = await client.incr("fastapi:next")
        claims = {"sub": str(position), "evt": "aurora", "ep": 1, "ln": 0, "iat": 1}
        return {"place": jwt.encode(claims, SECRET, algorithm="HS256"), "position": position, "state": "waiting"}

    @app.get("/status")
    async def status(authorization: str = Header()) -> dict[str, Any]:
        try:
            claims = jwt.decode(authorization.removeprefix("Bearer "), SECRET, algorithms=["HS256"])
        except jwt.InvalidTokenError:
            raise HTTPException(401) from None
        position = int(claims["sub"])
        state = "expired" if position <= window["lo"] else "active" if position <= window["hi"] else "waiting"
        ahead = max(0, position - window["hi"] - 1)
        return {"state": state, "position": position, "ahead": ahead, "wait_s": ahead * 1000 / window["rate"]}

    @app.get("/now-serving")
    async def now_serving() -> Response:
        return Response(document, media_type="application/json", headers={"etag": '"abc"'})

    return app


def listening() -> socket.socket:
    sock = socket.create_server(("127.0.0.1", 0), backlog=16_384)
    print(sock.getsockname()[1], flush=True)
    return sock


def run(app: Any, http: Any = "httptools") -> None:
    """Serve on a port the system chose; its number is the first line printed."""
    config = uvicorn.Config(app, http=http, loop="uvloop", log_level="warning", access_log=False, proxy_headers=False)
    uvicorn.Server(config).run(sockets=[listening()])


def run_room(redis_url: str, folder: str, hot: bool) -> None:
    """The waiting room as `frontrow room serve` runs it, with limits that are checked and never reached."""
    import uvloop

    from frontrow.cli.room_serve import serve_async
    from frontrow.settings.room import RoomSettings

    wide = "1000000000/second"
    with tempfile.TemporaryDirectory() as own:
        settings = RoomSettings(
            human="none",
            events=("aurora",),
            store=redis_url,
            folder=folder or own,
            audit=f"{own}/audit.sqlite",
            hot_lane=hot,
            per_ip=wide,
            per_person=wide,
            capacity=100,
            window_size=100,
            max_streams=100_000,
        )
        uvloop.run(serve_async(settings, [listening()]))


class BareWriter(asyncio.Protocol):
    """A reader's connection with nothing around it: what streams are compared with."""

    readers: "set[BareWriter]" = set()  # noqa: RUF012

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        self.readers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.readers.discard(self)


async def bare_writer() -> None:
    """Sends the same 300 bytes to everybody every 5 seconds."""
    loop = asyncio.get_running_loop()
    await loop.create_server(BareWriter, sock=listening())
    frame = b"event: now-serving\ndata: " + b"x" * 230 + b"\n\n"
    while True:
        await asyncio.sleep(5)
        for reader in list(BareWriter.readers):
            reader.transport.write(frame)


def main() -> None:
    arguments = options(__doc__)
    arguments.add_argument("kind", choices=("hello", "hot-hello", "fastapi", "room", "room-cold", "bare-writer"))
    arguments.add_argument("redis_url", nargs="?", default="")
    arguments.add_argument("folder", nargs="?", default="")
    chosen = arguments.parse_args()
    kind, redis_url = chosen.kind, chosen.redis_url
    if kind == "hello":
        run(hello_app)
    elif kind == "hot-hello":
        run(hello_app, fast_path({(b"GET", b"/"): hot_hello}))
    elif kind == "fastapi":
        run(fastapi_app(redis_url))
    elif kind in ("room", "room-cold"):
        run_room(redis_url, chosen.folder, kind == "room")
    else:
        import uvloop

        uvloop.run(bare_writer())


if __name__ == "__main__":
    main()
