"""The real server on a loopback port (uvicorn with the hot lane), and sockets that say anything."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import uvicorn

from frontrow.app.wiring import Platform
from frontrow.web.app import front_of
from frontrow.web.lane.protocol import lane
from frontrow.web.server.head_requests import HeadRequests
from frontrow.web.server.overload_middleware import GuardedApp
from frontrow.web.server.request_middleware import RequestIds
from tests.web.api.support import borrowed_app

WITHIN_S = 60.0


@contextlib.asynccontextmanager
async def serving(platform: Platform, *, hot: bool = True) -> AsyncIterator[int]:
    """The port of a server that answers, as `serve_platform` sets it up."""
    watch = platform.server.telemetry.watch(platform.server.limiter.is_proxy)
    table = platform.server.hot.routes if hot else {}
    limits, times = platform.server.limiter, platform.settings.server
    protocol = lane(
        table,
        RequestIds(limits).of,
        watch=watch,
        limits=limits,
        request_within_s=times.request_within_s,
        read_within_s=times.read_within_s,
    )
    with borrowed_app(platform) as app, socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(
            HeadRequests(GuardedApp(front_of(app, platform), watch)),
            http=protocol,
            loop="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            proxy_headers=False,
        )  # type: ignore[arg-type]
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        port = listening.getsockname()[1]
        running = asyncio.create_task(server._serve(sockets=[listening]))
        try:
            for _ in range(1_500):
                if server.started:
                    break
                await asyncio.sleep(0.01)
            yield port
        finally:
            server.should_exit = True
            await running


async def say(port: int, *chunks: bytes) -> bytes:
    """Send bytes as they are and read all that comes back until the server closes, for a bounded time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    try:
        for chunk in chunks:
            writer.write(chunk)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
        async with asyncio.timeout(WITHIN_S):
            while part := await reader.read(65_536):
                got += part
    except ConnectionError:
        pass
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    return got
