"""Serves waiting rooms on their own: their app under uvicorn, with the fast path in front of it.

`frontrow.app.room_wiring` builds the rooms, `frontrow.cli.room_serve` starts the processes.
"""

import asyncio
import contextlib
import difflib
import functools
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from litestar.handlers import HTTPRouteHandler

from frontrow.core import settings_loader as settings_files
from frontrow.core.background_tasks import start_loop
from frontrow.core.errors import ConfigError
from frontrow.settings.colours import theme_css
from frontrow.settings.room import RoomSettings
from frontrow.shared import gc_tuning
from frontrow.shared.open_files import allow_connections
from frontrow.waitingroom.notices.turn_notices import TurnNotices
from frontrow.waitingroom.ports import HumanCheck
from frontrow.waitingroom.service.metrics import RoomMetrics
from frontrow.web.endpoints.room.room_endpoints import RoomEndpoints
from frontrow.web.endpoints.room.sharded_queue import ShardedEndpoints, keep_balanced
from frontrow.web.fastpath.protocol import fast_path
from frontrow.web.fastpath.room_routes import hot_routes
from frontrow.web.guard.address_caps import AddressCaps
from frontrow.web.guard.connection_guard import GuardRules
from frontrow.web.guard.guarded_protocol import GuardedRequests, guarded
from frontrow.web.http.overflow_page import Notices
from frontrow.web.observability.room_metrics import write_room_counts
from frontrow.web.observability.worker_metrics import Board
from frontrow.web.room.app import room_app
from frontrow.web.server.console_rooms import ServedRooms
from frontrow.web.server.head_requests import HeadRequests
from frontrow.web.server.limit_headers_middleware import LimitHeadersMiddleware
from frontrow.web.server.nosniff import SERVER_HEADERS, OnceOnly
from frontrow.web.site.console.all_routes import CONSOLE_ROUTES
from frontrow.web.site.console.console import Console
from frontrow.web.streams.positions import Streams
from frontrow.web.streams.room_streams import RoomStreams

log = logging.getLogger("frontrow.room")


class RoomServer(uvicorn.Server):
    """uvicorn's server; a signal ends it in order, with exit code 0."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._captured_signals.clear()  # raised again they would kill the process before its stores are closed


def read_settings(path: str | None, changes: dict[str, Any] | None = None) -> RoomSettings:
    """`[room]` of the file (or of the frontrow.toml here, if any), the environment, then what the command line says."""
    tables = settings_files.read_tables(path)
    _check_sections(settings_files.without_services(os.environ))
    given = dict(tables.get("room", {})) | {k: v for k, v in (changes or {}).items() if v is not None}
    return settings_files.load(RoomSettings, "room", tables={"room": given}, env=_without(changes or {}))


def _check_sections(environment: Mapping[str, str]) -> None:
    """Refuse `FRONTROW_CAPACITY` and `FRONTROW_ROM_CAPACITY`: a setting of the room without its section, or with one
    that is nearly `room`. Variables of the platform's sections may stand beside."""
    names = [one.name for one in fields(RoomSettings)]
    for variable in sorted(name for name in environment if name.startswith("FRONTROW_")):
        word = variable.removeprefix("FRONTROW_").lower()
        section, _, name = word.partition("_")
        is_nearly = section != "room" and bool(difflib.get_close_matches(section, ["room"], cutoff=0.7))
        meant = word if word in names else name if is_nearly and name in names else ""
        if meant:
            message = f"{variable} is not a setting; did you mean FRONTROW_ROOM_{meant.upper()}?"
            raise ConfigError(message, param=variable)


def _without(changes: dict[str, Any]) -> dict[str, str]:
    """The environment, less what the command line overrides."""
    taken = {f"FRONTROW_ROOM_{name}".upper() for name, value in changes.items() if value is not None}
    return {name: value for name, value in os.environ.items() if name not in taken}


def listen(settings: RoomSettings) -> socket.socket:
    """The listening socket, shared by all worker processes."""
    try:
        sock = socket.create_server((settings.host, settings.port), backlog=16_384, reuse_port=False)
    except OSError as error:
        raise ConfigError(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from error
    sock.set_inheritable(True)
    return sock


async def serve_rooms(
    endpoints: ShardedEndpoints,
    settings: RoomSettings,
    sockets: list[socket.socket],
    console: "ServedConsole | None" = None,
) -> None:
    """Serve in this process until told to stop."""
    board = Board.of_workers(Path(settings.folder), settings.workers)
    entry = endpoints.rooms.entry
    streams, more = RoomStreams(endpoints.rooms.room), console.routes if console is not None else ()
    inner = room_app(endpoints, root_event=settings.root_event, board=board, streams=streams, more=more)
    app: Any = HeadRequests(LimitHeadersMiddleware(inner, entry))
    rules = GuardRules(caps=AddressCaps(settings.max_connections_per_address, settings.uncapped, entry.is_proxy))
    http: Any
    routes = hot_routes(endpoints, root_event=settings.root_event)
    if console is not None:
        inner.state.console, inner.state.organiser = console.pages, endpoints.rooms.organiser
        inner.state.notices, inner.state.room_context = console.notices, endpoints.rooms.context
        inner.state.notice_pages = Notices(settings.brand, theme_css(settings.colours))
        rooms = console.pages.rooms
        rooms.serve_with(ServedRooms(endpoints, routes, streams, console.make_streams, console.make_check))
    if settings.hot_lane:
        http = fast_path(routes, rules, entry)
    else:
        http, app = guarded(rules), GuardedRequests(app)
    config = uvicorn.Config(
        OnceOnly(app),
        http=http,
        ws="none",
        headers=SERVER_HEADERS,
        loop="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )
    log.info(
        "room open", extra={"rooms": list(settings.events), "human": settings.human, "hot_lane": settings.hot_lane}
    )
    allow_connections(2 * -(-settings.max_streams // settings.workers))  # a live stream and a request of each
    gc_tuning.freeze_after_startup()
    async with _counting(settings, endpoints.rooms, board), _balancing(endpoints), _console(console):
        await RoomServer(config).serve(sockets=sockets)


@dataclass(frozen=True)
class ServedConsole:
    """The console as this process serves it: its pages, what runs beside them, and how rooms are opened."""

    pages: Console
    notices: TurnNotices
    jobs: Sequence[tuple[Callable[[], Any], str]]
    make_streams: Callable[[], Streams]
    make_check: Callable[[str], HumanCheck | None]
    routes: Sequence[HTTPRouteHandler] = tuple(CONSOLE_ROUTES)


@contextlib.asynccontextmanager
async def _console(console: ServedConsole | None) -> AsyncIterator[None]:
    """Follow the console's book, run the schedules and take figures while the server runs."""
    if console is None:
        yield
        return
    await console.pages.rooms.turn()  # its rooms are there before the first request
    tasks = [start_loop(run, name) for run, name in console.jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def _balancing(endpoints: ShardedEndpoints) -> AsyncIterator[None]:
    """With a queue over several stores, keep its capacity where people wait."""
    if not endpoints.queues:
        yield
        return
    task = start_loop(functools.partial(keep_balanced, endpoints.queues), "shards")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def _counting(settings: RoomSettings, endpoints: RoomEndpoints, board: Board) -> AsyncIterator[None]:
    """With several workers, share what is counted."""
    if settings.workers == 1:
        yield
        return
    metrics = RoomMetrics(
        endpoints.room, endpoints.counts, endpoints.streams, endpoints.entry.harder, endpoints.entry.without_scripts
    )
    task = start_loop(functools.partial(write_room_counts, metrics, board), "shared counts")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
