"""Runs the platform's app under uvicorn, with the fast path in front and an orderly end.

A server that must stop reports it at /readyz first, takes no new connections, finishes open requests within a bounded
time (live streams end properly, so that browsers reconnect elsewhere), then stops its jobs.
"""

import contextlib
import logging
import socket
from types import FrameType
from typing import Any

import uvicorn
from litestar import Litestar

from frontrow.settings.server import ServerSettings
from frontrow.shared import gc_tuning
from frontrow.shared.listening import listen_on, read_address
from frontrow.shared.open_files import allow_connections
from frontrow.web.fastpath.platform_routes import fast_routes
from frontrow.web.fastpath.protocol import fast_path
from frontrow.web.guard.address_caps import AddressCaps
from frontrow.web.guard.connection_guard import LINGER_S, GuardRules
from frontrow.web.guard.guarded_protocol import GuardedRequests, guarded
from frontrow.web.guard.overload_watch import Watch
from frontrow.web.http.request_ids import RequestIds
from frontrow.web.observability.plain_pages import serve_pages
from frontrow.web.observability.traces import traced
from frontrow.web.platform.metrics import metrics_answer
from frontrow.web.platform.platform import Platform
from frontrow.web.server.app import front_of, platform_app
from frontrow.web.server.head_requests import HeadRequests
from frontrow.web.server.nosniff import SERVER_HEADERS, OnceOnly
from frontrow.web.server.overload_middleware import GuardedApp
from frontrow.web.server.startup_wait import wait_for_stores

log = logging.getLogger("frontrow.serve")


class DrainingServer(uvicorn.Server):
    """uvicorn's server; it tells the platform first that it stops."""

    def __init__(self, config: uvicorn.Config, platform: Platform) -> None:
        super().__init__(config)
        self._platform = platform

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._platform.server.draining.set()
        super().handle_exit(sig, frame)
        self._captured_signals.clear()  # raised again they would kill the process before its stores are closed


def listen(settings: ServerSettings) -> socket.socket:
    """The listening socket, shared by all worker processes."""
    return listen_on(settings.host, settings.port, "server.port")


def listen_for_metrics(settings: ServerSettings) -> socket.socket | None:
    """The socket of `server.metrics`, shared in the same way; None where /metrics is on the same port as all else."""
    if not settings.metrics:
        return None
    return listen_on(*read_address(settings.metrics, "server.metrics", "127.0.0.1:8002"), "server.metrics")


def make_server(platform: Platform, routed: Litestar | None = None) -> DrainingServer:
    """The server of this process, ready to `serve`. `routed` is the app, if it exists already."""
    settings = platform.settings.server
    limiter = platform.server.limiter
    ids = RequestIds(limiter)
    front = front_of(routed or platform_app(platform), platform, ids)
    telemetry = platform.server.telemetry
    watch = Watch(telemetry.gate, telemetry.traffic, limiter.is_proxy, front.for_people)
    app: Any = HeadRequests(GuardedApp(traced(front, platform.settings.traces, limiter.is_proxy), watch))
    overload = platform.settings.overload
    rules = GuardRules(
        watch=watch,
        caps=AddressCaps(overload.max_connections_per_address, overload.uncapped, limiter.is_proxy),
        request_id=ids.of,
        request_within_s=settings.request_within_s,
        read_within_s=settings.read_within_s,
        linger_s=LINGER_S,
    )
    http: Any = fast_path(fast_routes(platform), rules, limiter) if settings.hot_lane else guarded(rules)
    config = uvicorn.Config(
        OnceOnly(app if settings.hot_lane else GuardedRequests(app)),
        http=http,
        ws="none",
        loop="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=SERVER_HEADERS,
        timeout_graceful_shutdown=max(1, round(settings.drain_s)),
    )
    return DrainingServer(config, platform)


async def serve_platform(
    platform: Platform, sockets: list[socket.socket], metrics: socket.socket | None = None
) -> None:
    """Serve in this process until told to stop. `metrics` is the socket where /metrics answers, if it has its own."""
    settings = platform.settings
    await wait_for_stores(platform, sockets)
    server = make_server(platform)
    allow_connections(settings.overload.max_connections)
    gc_tuning.freeze_after_startup()
    log.info("serving", extra={"hot_lane": settings.server.hot_lane, "shared": settings.shared})
    async with contextlib.AsyncExitStack() as stack:
        if metrics is not None:
            await stack.enter_async_context(serve_pages(metrics, lambda path: metrics_answer(platform, path)))
        await server.serve(sockets=sockets)
