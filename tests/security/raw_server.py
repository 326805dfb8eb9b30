"""The real server on a loopback port (uvicorn with the fast path), and sockets that say anything."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import uvicorn

from frontrow.app.wiring import Platform
from frontrow.web.fastpath.platform_routes import fast_routes
from frontrow.web.fastpath.protocol import fast_path
from frontrow.web.guard.connection_guard import GuardRules
from frontrow.web.guard.guarded_protocol import GuardedRequests, guarded
from frontrow.web.guard.overload_watch import Watch
from frontrow.web.http.request_ids import RequestIds
from frontrow.web.server.app import front_of
from frontrow.web.server.head_requests import HeadRequests
from frontrow.web.server.overload_middleware import GuardedApp
from tests.support.eventually import eventually
from tests.web.api.support import borrowed_app

WITHIN_S = 60.0


@contextlib.asynccontextmanager
async def serving(platform: Platform, *, hot: bool = True) -> AsyncIterator[int]:
    """The port of a server that answers, as `serve_platform` sets it up."""
    telemetry = platform.server.telemetry
    watch = Watch(telemetry.gate, telemetry.traffic, platform.server.limiter.is_proxy)
    limits, times = platform.server.limiter, platform.settings.server
    rules = GuardRules(
        watch=watch,
        request_id=RequestIds(limits).of,
        request_within_s=times.request_within_s,
        read_within_s=times.read_within_s,
    )
    with borrowed_app(platform) as app, socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(
            GuardedRequests(HeadRequests(GuardedApp(front_of(app, platform), watch))),
            http=fast_path(fast_routes(platform), rules, limits) if hot else guarded(rules),
            ws="none",
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
            await eventually(lambda: server.started)
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
