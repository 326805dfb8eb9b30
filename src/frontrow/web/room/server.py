"""`frontrow room serve`: builds the room from its settings, puts the app and the hot lane in front of it, and runs it.

One process serves by itself. Several share one listening socket and a Redis store; a supervisor replaces those that
die.
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
from frontrow.waitingroom.audit.sqlite import open_sqlite_audit
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.door.door_limits import Entry, EntryRules
from frontrow.waitingroom.door.human_check import HCAPTCHA, TURNSTILE, Captcha, HumanCheck, ProofOfWork, UsedProofs
from frontrow.waitingroom.door.used_proofs import MemoryUsedProofs, RedisUsedProofs
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
from frontrow.web.room.app import Endpoints, hot_routes, room_app, rooms_of
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
    """The service over the store and the audit of the settings. Presales end by `sale_clock`. `clock` replaces the
    store's own as well: for simulations and tests."""
    proof_clock = WallClock() if clock else None
    return WaitingRoom(
        open_store(settings, clock),
        open_audit(settings),
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
        names = [name for name in settings.rooms if settings.events[0] in (name, _queue_of(name))]
        count = max([await room.import_codes(name, lines) for name in names])
        log.info("codes imported", extra={"event": settings.events[0], "codes": count})


def open_store(settings: RoomSettings, clock: Clock | None = None) -> RoomStore:
    from frontrow.waitingroom.stores.redis import RedisStore
    from frontrow.waitingroom.stores.sharded import RoutedStore

    if settings.embedded:
        return MemoryStore(clock, one_place_per_person=settings.by_identity)
    urls = settings.shards or (settings.store,)
    stores = [RedisStore(url, clock=clock, one_place_per_person=settings.by_identity) for url in urls]
    return cast(RoomStore, RoutedStore(stores)) if settings.shards else stores[0]


def open_audit(settings: RoomSettings) -> Audit:
    if settings.audit.startswith(("postgresql://", "postgres://")):
        from frontrow.waitingroom.audit.postgres import open_postgres_audit

        return open_postgres_audit(settings.audit)
    if settings.audit and "://" in settings.audit:
        raise ConfigError("room.audit is a file or postgresql://…", param="room.audit")
    return open_sqlite_audit(settings.audit or Path(settings.folder) / "audit.sqlite")


class HumanChecks:
    """Makes the human checks of rooms; their used proofs share one connection."""

    def __init__(self, settings: RoomSettings, keys: RoomKeys) -> None:
        self._settings, self._keys = settings, keys
        self._redis: Any = None

    def make(self, event: str, human: str) -> HumanCheck | None:
        """The check of an event's room by its name."""
        return human_check(self._settings, self._keys, event, human, self._used_proofs_of)

    def _used_proofs_of(self, event: str) -> UsedProofs:
        if self._settings.embedded:
            return MemoryUsedProofs()
        if self._redis is None:
            self._redis = connect(self._settings.store)
        return RedisUsedProofs(self._redis, event)

    async def aclose(self) -> None:
        if self._redis is not None:
            await disconnect(self._redis)


def human_check(
    settings: RoomSettings,
    keys: RoomKeys,
    event: str,
    chosen: str = "",
    used_proofs_of: Callable[[str], UsedProofs] | None = None,
) -> HumanCheck | None:
    """Who proves to be a person, and how, at this event's room; `chosen` instead of the settings' own check."""
    human = chosen or settings.human
    if human == "none":
        return None
    if human == "altcha":
        url = settings.shards[0] if settings.shards else settings.store
        if used_proofs_of is not None:
            used_proofs = used_proofs_of(event)
        else:
            used_proofs = MemoryUsedProofs() if settings.embedded else RedisUsedProofs(connect(url), event)
        return ProofOfWork(keys.master_secret, event, used_proofs, max_number=settings.human_max_number)
    return Captcha(
        TURNSTILE if human == "turnstile" else HCAPTCHA,
        settings.human_site_key,
        settings.human_secret,
        hostnames=settings.human_hostnames,
        when_down=settings.human_when_down,
    )


def make_endpoints(settings: RoomSettings, room: WaitingRoom, keys: RoomKeys) -> Endpoints:
    """The endpoints with their entry, pages and streams."""
    of_events = {event: check for event in settings.events if (check := human_check(settings, keys, event)) is not None}
    checks = of_events | {name: of_events[queue] for name in settings.rooms if (queue := _queue_of(name)) in of_events}
    rules = EntryRules(settings.per_person, settings.per_ip, settings.per_device)
    entry = Entry(checks, rules=rules, trusted_proxies=settings.trusted_proxies, processes=settings.workers)
    titles = ((settings.events[0], settings.title),) if settings.title else ()
    page = PageSettings(settings.brand, titles, settings.shop_url, settings.secure, settings.root_event)
    most = -(-settings.max_streams // settings.workers)
    streams = {event: Streams(max_open=most, heartbeat_s=settings.heartbeat_s) for event in settings.rooms}
    pages = RoomPages(room, entry, page)
    endpoints = RoomEndpoints(room, entry, pages, streams, organiser_key=settings.organiser_key)
    if not settings.shards:
        return endpoints
    queues = {event: ShardedRoom(event, [room] * len(settings.shards)) for event in settings.events}
    return ShardedEndpoints(endpoints, queues)


def _queue_of(name: str) -> str:
    """The queue a shard belongs to."""
    return name.rpartition(".")[0]


async def _create_rooms(room: WaitingRoom, settings: RoomSettings) -> None:
    """Make or find every room; a store that is still starting gets half a minute."""
    for event in settings.events:
        for attempt in range(START_TRIES):
            try:
                if settings.shards:
                    queue = ShardedRoom(event, [room] * len(settings.shards))
                    await queue.create(settings.config(), settings.phase)
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
    async with _counting(settings, rooms_of(endpoints), board), _balancing(endpoints):
        await uvicorn.Server(config).serve(sockets=sockets)


@contextlib.asynccontextmanager
async def _balancing(endpoints: Endpoints) -> AsyncIterator[None]:
    """With a queue over several stores, keep its capacity where people wait."""
    if not isinstance(endpoints, ShardedEndpoints):
        yield
        return
    task = asyncio.create_task(keep_balanced(endpoints.queues), name="shards")
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
    RoomKeys.load(settings.folder)  # generated once, before several processes need them
    Workers(settings.workers, run_worker, (settings, sock), before_stop=sock.close).watch()


def run_worker(settings: RoomSettings, sock: socket.socket) -> None:
    """One of several processes."""
    set_up_logs()
    run(settings, [sock])
