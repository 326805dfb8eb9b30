"""One process of the service: both listeners over one `LimitService`, from start to a graceful stop."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontrow.core.background_tasks import hear_event_loop, start_loop
from frontrow.core.clock import Clock
from frontrow.core.errors import ConfigError
from frontrow.limits_service.http_connection import SWEEP_S, Connections
from frontrow.limits_service.http_routes import HttpRoutes
from frontrow.limits_service.limit_service import LimitService
from frontrow.limits_service.pages import Pages
from frontrow.limits_service.service_config import ServiceConfig
from frontrow.limits_service.settings import Address, read_address
from frontrow.limits_service.telemetry import WRITE_EVERY_S, OpenTelemetry, WorkerMetrics

log = logging.getLogger("frontrow.limits_service")

BACKLOG = 2048
MAX_STREAMS = 1000  # calls that one gRPC connection may have open
MAX_CALLS = 10_000  # calls that all gRPC connections may have open


@dataclass(frozen=True)
class WorkerPlace:
    """Which worker this is, what it shares with the others, and whether its ports are shared too."""

    number: int
    secret: bytes
    folder: Path | None = None  # for metrics
    shares_ports: bool = False


Listening = Callable[[str], None]


class Server:
    """Runs until it is told to stop."""

    def __init__(self, config: ServiceConfig, place: WorkerPlace, *, clock: Clock | None = None) -> None:
        self._config = config
        self._clock = clock
        self._place = place
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Begin the graceful stop."""
        self._stopping.set()

    async def run(self, listening: Listening, until: Awaitable[Any] | None = None) -> None:
        """Serve until `stop`, a signal, or the end of `until`. `listening` is told the addresses when both listen."""
        with hear_event_loop():
            service = LimitService(self._config, clock=self._clock)
            try:
                await self._serve(service, listening, until)
            finally:
                await service.aclose()

    async def _serve(self, service: LimitService, listening: Listening, until: Awaitable[Any] | None) -> None:
        settings = self._config.settings
        otel = OpenTelemetry(service) if settings.opentelemetry else None
        pages: dict[str, Any] = {}
        routes = HttpRoutes(service, pages, otel.trace if otel is not None else None)
        connections = Connections(
            routes.handle, max_body_bytes=settings.max_body_bytes, max_connections=settings.max_connections
        )
        metrics = WorkerMetrics(service, connections, self._place.number, self._place.folder)
        pages |= Pages(service, self._place.secret).routes() | {"/metrics": metrics.page}
        http = await self._listen_http(connections, read_address(settings.http, "serve.http"))
        grpc_server, grpc_address = await self._listen_grpc(service, read_address(settings.grpc, "serve.grpc"))
        chores = [start_loop(lambda: _every(SWEEP_S, connections.sweep), "close slow connections")]
        chores.append(start_loop(lambda: _every(WRITE_EVERY_S, metrics.write), "write metrics"))
        listening(" ".join(word for word in (_http_url(http), grpc_address and f"grpc://{grpc_address}") if word))
        await self._wait(until)
        log.info("stopping: up to %g s for open requests", settings.grace_s)
        service.draining = connections.draining = True
        if http is not None:
            http.close()
        stops = [connections.drain(settings.grace_s)]
        if grpc_server is not None:
            stops.append(grpc_server.stop(settings.grace_s))
        await asyncio.gather(*stops)
        for chore in chores:
            chore.cancel()
        metrics.forget()
        if otel is not None:
            await asyncio.to_thread(otel.close)

    async def _wait(self, until: Awaitable[Any] | None) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread
                loop.add_signal_handler(number, self.stop)
        waits = [asyncio.ensure_future(self._stopping.wait())]
        if until is not None:
            waits.append(asyncio.ensure_future(until))
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()

    async def _listen_http(self, connections: Connections, address: Address | None) -> asyncio.Server | None:
        if address is None:
            return None
        _warn_if_open(address, self._config)
        return await asyncio.get_running_loop().create_server(
            connections.connect, sock=bind(address, self._place.shares_ports), backlog=BACKLOG
        )

    async def _listen_grpc(self, service: LimitService, address: Address | None) -> tuple[Any, str]:
        if address is None:
            return None, ""
        import grpc

        from frontrow.limits_service.envoy_service import add_handlers

        _warn_if_open(address, self._config)
        options = [
            ("grpc.so_reuseport", int(self._place.shares_ports)),
            ("grpc.max_receive_message_length", self._config.settings.max_body_bytes),
            ("grpc.max_concurrent_streams", MAX_STREAMS),
        ]
        server = grpc.aio.server(options=options, maximum_concurrent_rpcs=MAX_CALLS)
        add_handlers(server, service)
        try:
            port = server.add_insecure_port(str(address))
        except RuntimeError:
            raise ConfigError(f"serve.grpc: {address} cannot be used; is it taken?", param="grpc") from None
        await server.start()
        return server, str(Address(address.host, port))


def bind(address: Address, shares: bool) -> socket.socket:
    """A socket at this address, which other workers may share."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise ConfigError(f"{address} cannot be used: {error.strerror or error}", param="address") from None
    return bound


def _http_url(server: asyncio.Server | None) -> str:
    if server is None:
        return ""
    host, port = server.sockets[0].getsockname()[:2]
    return f"http://{Address(host, port)}"


def _warn_if_open(address: Address, config: ServiceConfig) -> None:
    if not address.is_loopback and not config.settings.token:
        log.warning("%s can be reached from elsewhere and asks for no token; set serve.token", address)


async def _every(pause_s: float, work: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(pause_s)
        work()
