"""`frontrow room serve`: chooses the adapters by the settings, puts both doors in front of the room, and runs it.

One process serves by itself; several share one listening socket and a Redis store, and are watched and replaced when
they die.
"""

import asyncio
import gc
import logging
import os
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn

from frontrow.core import settings as settings_files
from frontrow.core.errors import ConfigError, FrontrowError, Unavailable
from frontrow.core.redis_url import connect
from frontrow.waitingroom.audit import SqliteAudit
from frontrow.waitingroom.entry import Entry, EntryRules
from frontrow.waitingroom.humans import HCaptcha, HumanCheck, ProofOfWork, SpentProofs, Turnstile
from frontrow.waitingroom.keys import RoomKeys
from frontrow.waitingroom.ports import Audit, RoomStore
from frontrow.waitingroom.room import WaitingRoom
from frontrow.waitingroom.spent import MemorySpent, RedisSpent
from frontrow.waitingroom.stores.memory import MemoryStore
from frontrow.web.hot import lane
from frontrow.web.live import Streams
from frontrow.web.logs import set_up_logs
from frontrow.web.room_app import hot_routes, room_app
from frontrow.web.room_endpoints import RoomEndpoints
from frontrow.web.room_pages import PageSettings, RoomPages
from frontrow.web.room_settings import RoomSettings
from frontrow.web.workers import Workers

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


def make_room(settings: RoomSettings, keys: RoomKeys) -> WaitingRoom:
    """The service over the store and the audit that the settings name."""
    embedded = settings.store == "memory://"
    room = WaitingRoom(_store(settings), _audit(settings), keys, durable_joins=embedded)
    if settings.codes_csv:
        lanes = {rule.name: number for number, rule in enumerate(settings.config().lanes)}
        with open(settings.codes_csv, encoding="utf-8", newline="") as lines:
            count = room.codes.import_csv(settings.events[0], lines, lanes)
        log.info("codes imported", extra={"event": settings.events[0], "codes": count})
    return room


def _store(settings: RoomSettings) -> RoomStore:
    if settings.store == "memory://":
        return MemoryStore()
    if settings.by_identity:
        from frontrow.waitingroom.stores.roster import RosterRedisStore

        return RosterRedisStore(settings.store)
    from frontrow.waitingroom.stores.redis import RedisStore

    return RedisStore(settings.store)


def _audit(settings: RoomSettings) -> Audit:
    if settings.audit.startswith(("postgresql://", "postgres://")):
        from frontrow.waitingroom.audit_postgres import PostgresAudit

        return PostgresAudit(settings.audit)
    if settings.audit and "://" in settings.audit:
        raise ConfigError("room.audit is a file or postgresql://…", param="room.audit")
    return SqliteAudit(settings.audit or Path(settings.folder) / "audit.sqlite")


def human_check(settings: RoomSettings, keys: RoomKeys, event: str) -> HumanCheck | None:
    """Who proves to be a person, and how, at this event's room."""
    if settings.human == "none":
        return None
    if settings.human == "altcha":
        embedded = settings.store == "memory://"
        spent: SpentProofs = MemorySpent() if embedded else RedisSpent(connect(settings.store), event)
        return ProofOfWork(keys.master_secret, event, spent, max_number=settings.human_max_number)
    kind = Turnstile if settings.human == "turnstile" else HCaptcha
    return kind(
        settings.human_site_key,
        settings.human_secret,
        hostnames=settings.human_hostnames,
        when_down=settings.human_when_down,
    )


def make_endpoints(settings: RoomSettings, room: WaitingRoom, keys: RoomKeys) -> RoomEndpoints:
    """The endpoints with their entry, pages and streams."""
    checks = {event: check for event in settings.events if (check := human_check(settings, keys, event)) is not None}
    rules = EntryRules(settings.per_person, settings.per_ip, settings.per_device)
    entry = Entry(checks, rules=rules, trusted_proxies=settings.trusted_proxies)
    titles = ((settings.events[0], settings.title),) if settings.title else ()
    page = PageSettings(settings.brand, titles, settings.shop_url, settings.secure_cookies, settings.root_event)
    streams = {
        event: Streams(max_open=settings.max_streams, heartbeat_s=settings.heartbeat_s) for event in settings.events
    }
    pages = RoomPages(room, entry, page)
    return RoomEndpoints(room, entry, pages, streams, organiser_key=settings.organiser_key)


async def _create_rooms(room: WaitingRoom, settings: RoomSettings) -> None:
    """Make or find every room; a store that is still starting gets half a minute."""
    for event in settings.events:
        for attempt in range(START_TRIES):
            try:
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
    except BaseException:
        await room.aclose()
        raise
    endpoints = make_endpoints(settings, room, keys)
    app = room_app(endpoints, root_event=settings.root_event)
    http: Any = lane(hot_routes(endpoints, root_event=settings.root_event)) if settings.hot_lane else "httptools"
    config = uvicorn.Config(
        app, http=http, loop="none", log_config=None, access_log=False, proxy_headers=False, timeout_graceful_shutdown=5
    )
    log.info(
        "room open", extra={"rooms": list(settings.events), "human": settings.human, "hot_lane": settings.hot_lane}
    )
    gc.collect()
    gc.freeze()  # what the start made lives as long as the process: the collector need not walk it again and again
    await uvicorn.Server(config).serve(sockets=sockets)


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
    Workers(settings.workers, run_worker, (settings, sock)).watch()


def run_worker(settings: RoomSettings, sock: socket.socket) -> None:
    """One of several processes."""
    set_up_logs()
    run(settings, [sock])
