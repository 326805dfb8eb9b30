"""`frontrow room serve`: chooses the adapters by the settings, puts both doors in front of the room, and runs it.

One process serves by itself; several share one listening socket and a Redis store, and are watched and replaced when
they die.
"""

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import uvicorn

from frontrow.core import gc_tuning
from frontrow.core import settings_loader as settings_files
from frontrow.core.clock import Clock, WallClock
from frontrow.core.errors import ConfigError, FrontrowError, Unavailable
from frontrow.core.redis_url import connect, disconnect
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.audit.sqlite import SqliteAudit
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.door.door_limits import Entry, EntryRules
from frontrow.waitingroom.door.human_check import HCaptcha, HumanCheck, ProofOfWork, SpentProofs, Turnstile
from frontrow.waitingroom.door.used_proofs import MemorySpent, RedisSpent
from frontrow.waitingroom.ports import Audit, RoomStore
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.service.sharding import ShardedRoom
from frontrow.waitingroom.stores.memory import MemoryStore
from frontrow.web.endpoints.room import RoomEndpoints
from frontrow.web.endpoints.sharded_room import ShardedEndpoints, keep_balanced
from frontrow.web.lane.protocol import lane
from frontrow.web.observability.logs import set_up_logs
from frontrow.web.observability.room_metrics import write_room_counts
from frontrow.web.observability.worker_metrics import Board
from frontrow.web.room.app import hot_routes, room_app
from frontrow.web.room.page import PageSettings, RoomPages
from frontrow.web.server.process_supervisor import Workers
from frontrow.web.streams.positions import Streams

log = logging.getLogger("frontrow.room")

START_TRIES = 30


def read_settings(path: str | None, changes: dict[str, Any] | None = None) -> RoomSettings:
    """`[room]` of the file (if any), the environment, then what the command line says."""
    tables = settings_files.read_toml(path) if path else {}
    given = dict(tables.get("room", {})) | {k: v for k, v in (changes or {}).items() if v is not None}
    return settings_files.load(RoomSettings, "room", tables={"room": given}, env=_without(changes or {}))


def _without(changes: dict[str, Any]) -> dict[str, str]:
    """The environment, less what the command line overrides."""
    taken = {f"FRONTROW_ROOM_{name}".upper() for name, value in changes.items() if value is not None}
    return {name: value for name, value in os.environ.items() if name not in taken}


def make_room(
    settings: RoomSettings, keys: RoomKeys, *, sale_clock: Clock | None = None, clock: Clock | None = None
) -> WaitingRoom:
    """The service over the store and the audit that the settings name; presales end by `sale_clock`. `clock` replaces
    the store's own as well: for simulations and tests."""
    stores = _store(settings, clock), _audit(settings)
    proof_clock = WallClock() if clock else None
    return WaitingRoom(
        *stores,
        keys,
        durable_joins=settings.embedded,
        sale_clock=sale_clock,
        clock=clock,
        proof_clock=proof_clock,
    )


async def _import_codes(room: WaitingRoom, settings: RoomSettings) -> None:
    """The codes of the settings' file; to import them again is harmless."""
    if settings.codes_csv:
        lines = Path(settings.codes_csv).read_text("utf-8").splitlines()  # noqa: ASYNC240  # before anybody is served
        names = [name for name in settings.rooms if settings.events[0] in (name, _line(name))]
        count = max([await room.import_codes(name, lines) for name in names])
        log.info("codes imported", extra={"event": settings.events[0], "codes": count})


def _store(settings: RoomSettings, clock: Clock | None = None) -> RoomStore:
    from frontrow.waitingroom.stores.redis import RedisStore
    from frontrow.waitingroom.stores.roster import RosterMemoryStore, RosterRedisStore
    from frontrow.waitingroom.stores.sharded import RoutedStore

    if settings.embedded:
        return RosterMemoryStore(clock) if settings.by_identity else MemoryStore(clock)
    kind = RosterRedisStore if settings.by_identity else RedisStore
    if settings.shards:
        return cast(RoomStore, RoutedStore([kind(url, clock=clock) for url in settings.shards]))
    return kind(settings.store, clock=clock)


def _audit(settings: RoomSettings) -> Audit:
    if settings.audit.startswith(("postgresql://", "postgres://")):
        from frontrow.waitingroom.audit.postgres import PostgresAudit

        return PostgresAudit(settings.audit)
    if settings.audit and "://" in settings.audit:
        raise ConfigError("room.audit is a file or postgresql://…", param="room.audit")
    return SqliteAudit(settings.audit or Path(settings.folder) / "audit.sqlite")


class HumanChecks:
    """Makes the human checks of rooms; their used proofs share one connection."""

    def __init__(self, settings: RoomSettings, keys: RoomKeys) -> None:
        self._settings, self._keys = settings, keys
        self._redis: Any = None

    def make(self, event: str, human: str) -> HumanCheck | None:
        """The check of an event's room by its name."""
        return human_check(self._settings, self._keys, event, human, self._spent)

    def _spent(self, event: str) -> SpentProofs:
        if self._settings.embedded:
            return MemorySpent()
        if self._redis is None:
            self._redis = connect(self._settings.store)
        return RedisSpent(self._redis, event)

    async def aclose(self) -> None:
        if self._redis is not None:
            await disconnect(self._redis)


def human_check(
    settings: RoomSettings,
    keys: RoomKeys,
    event: str,
    chosen: str = "",
    spent_of: Callable[[str], SpentProofs] | None = None,
) -> HumanCheck | None:
    """Who proves to be a person, and how, at this event's room; `chosen` instead of the settings' own check."""
    human = chosen or settings.human
    if human == "none":
        return None
    if human == "altcha":
        url = settings.shards[0] if settings.shards else settings.store
        if spent_of is not None:
            spent = spent_of(event)
        else:
            spent = MemorySpent() if settings.embedded else RedisSpent(connect(url), event)
        return ProofOfWork(keys.master_secret, event, spent, max_number=settings.human_max_number)
    kind = Turnstile if human == "turnstile" else HCaptcha
    return kind(
        settings.human_site_key,
        settings.human_secret,
        hostnames=settings.human_hostnames,
        when_down=settings.human_when_down,
    )


def make_endpoints(settings: RoomSettings, room: WaitingRoom, keys: RoomKeys) -> RoomEndpoints:
    """The endpoints with their entry, pages and streams."""
    of_events = {event: check for event in settings.events if (check := human_check(settings, keys, event)) is not None}
    checks = of_events | {name: of_events[line] for name in settings.rooms if (line := _line(name)) in of_events}
    rules = EntryRules(settings.per_person, settings.per_ip, settings.per_device)
    entry = Entry(checks, rules=rules, trusted_proxies=settings.trusted_proxies, processes=settings.workers)
    titles = ((settings.events[0], settings.title),) if settings.title else ()
    page = PageSettings(settings.brand, titles, settings.shop_url, settings.secure, settings.root_event)
    most = -(-settings.max_streams // settings.workers)
    streams = {event: Streams(max_open=most, heartbeat_s=settings.heartbeat_s) for event in settings.rooms}
    pages = RoomPages(room, entry, page)
    if not settings.shards:
        return RoomEndpoints(room, entry, pages, streams, organiser_key=settings.organiser_key)
    sharded = ShardedEndpoints(room, entry, pages, streams, organiser_key=settings.organiser_key)
    sharded.lines = {event: ShardedRoom(event, [room] * len(settings.shards)) for event in settings.events}
    return sharded


def _line(name: str) -> str:
    """The line a shard belongs to."""
    return name.rpartition(".")[0]


async def _create_rooms(room: WaitingRoom, settings: RoomSettings) -> None:
    """Make or find every room; a store that is still starting gets half a minute."""
    for event in settings.events:
        for attempt in range(START_TRIES):
            try:
                if settings.shards:
                    line = ShardedRoom(event, [room] * len(settings.shards))
                    await line.create(settings.config(), settings.phase)
                else:
                    await room.create(event, settings.config(), settings.phase)
                break
            except Unavailable as error:
                if attempt == START_TRIES - 1:
                    raise
                log.warning("store not there yet", extra={"problem": error.message})
                await asyncio.sleep(1)


async def serve_async(settings: RoomSettings, sockets: list[socket.socket]) -> None:
    """Serve in this process until told to stop."""
    keys = RoomKeys.load(settings.folder)
    room = make_room(settings, keys)
    try:
        await _create_rooms(room, settings)
        await _import_codes(room, settings)
    except BaseException:
        await room.aclose()
        raise
    endpoints = make_endpoints(settings, room, keys)
    board = Board.of_workers(Path(settings.folder), settings.workers)
    app = room_app(endpoints, root_event=settings.root_event, board=board)
    http: Any = lane(hot_routes(endpoints, root_event=settings.root_event)) if settings.hot_lane else "httptools"
    config = uvicorn.Config(
        app, http=http, loop="none", log_config=None, access_log=False, proxy_headers=False, timeout_graceful_shutdown=5
    )
    log.info(
        "room open", extra={"rooms": list(settings.events), "human": settings.human, "hot_lane": settings.hot_lane}
    )
    gc_tuning.freeze_after_startup()
    async with _counting(settings, endpoints, board), _balancing(endpoints):
        await uvicorn.Server(config).serve(sockets=sockets)


@contextlib.asynccontextmanager
async def _balancing(endpoints: RoomEndpoints) -> AsyncIterator[None]:
    """With a line over several stores, keep its capacity where people wait."""
    if not isinstance(endpoints, ShardedEndpoints):
        yield
        return
    task = asyncio.create_task(keep_balanced(endpoints.lines), name="shards")
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
    task = asyncio.create_task(write_room_counts(endpoints, board), name="shared counts")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def run(settings: RoomSettings, sockets: list[socket.socket]) -> None:
    """`serve_async` on uvloop; a wrong setting or a store that is away ends it with one sentence."""
    import uvloop

    try:
        uvloop.run(serve_async(settings, sockets))
    except FrontrowError as error:
        sys.exit(f"frontrow room: {error.message}")


def serve(settings: RoomSettings) -> None:
    """Listen and serve; prints where."""
    try:
        settings.config()
        sock = socket.create_server((settings.host, settings.port), backlog=16_384, reuse_port=False)
    except OSError as error:
        raise ConfigError(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from error
    sock.set_inheritable(True)
    host, port = sock.getsockname()[:2]
    print(f"waiting room of {', '.join(settings.events)} on http://{host}:{port}", flush=True)
    set_up_logs()
    if settings.workers == 1:
        run(settings, [sock])
        return
    RoomKeys.load(settings.folder)  # made once, before several processes want them
    Workers(settings.workers, run_worker, (settings, sock), before_stop=sock.close).watch()


def run_worker(settings: RoomSettings, sock: socket.socket) -> None:
    """One of several processes."""
    set_up_logs()
    run(settings, [sock])
