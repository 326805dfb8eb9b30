"""Builds waiting rooms from their settings: the room with its store and audit, human checks, endpoints.

`open_rooms` is what `frontrow room serve` runs. The platform's wiring uses `make_room` and `HumanChecks` for its own
room.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontrow.app.console_wiring import RunningConsole, open_console
from frontrow.core.clock import Clock, WallClock
from frontrow.core.errors import ConfigError, Unavailable
from frontrow.core.redis_url import connect, disconnect
from frontrow.settings.colours import theme_css
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.audit.sqlite import open_sqlite_audit
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.entrance.human_check import CAPTCHAS, Captcha, ProofOfWork
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits, EntranceRules
from frontrow.waitingroom.entrance.suspect_networks import SuspectNetworks
from frontrow.waitingroom.entrance.used_proofs import MemoryUsedProofs, RedisUsedProofs
from frontrow.waitingroom.ports import Audit, HumanCheck, RoomStore, UsedProofs
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.service.sharding import ShardedRoom
from frontrow.waitingroom.stores.memory import MemoryRoomStore
from frontrow.web.endpoints.room.page import PageSettings, RoomPages
from frontrow.web.endpoints.room.room_endpoints import RoomEndpoints
from frontrow.web.endpoints.room.sharded_queue import ShardedEndpoints
from frontrow.web.endpoints.room.shop_wishes import check_origins
from frontrow.web.guard.address_caps import AddressCaps
from frontrow.web.site.console.room_page import DesignedSurroundings
from frontrow.web.streams.positions import Streams

log = logging.getLogger("frontrow.room")

START_TRIES = 30


@dataclass(frozen=True)
class OpenRooms:
    """The rooms of this process: their endpoints, and the console of their owner if there is one."""

    endpoints: ShardedEndpoints
    console: RunningConsole | None
    make_streams: Callable[[], Streams]
    make_check: Callable[[str], HumanCheck | None]


async def open_rooms(settings: RoomSettings) -> OpenRooms:
    """The rooms in the settings, which exist afterwards. The app that serves them closes them."""
    keys = RoomKeys.load(settings.folder)
    room = make_room(settings, keys)
    console = None
    try:
        console = await open_console(settings, room) if settings.has_console else None
        wanted = settings.events
        if console is not None:  # a room that was deleted in the console stays deleted
            wanted = await console.rooms.not_deleted(settings.events)
        await _create_rooms(room, settings, wanted)
        await _import_codes(room, settings)
    except BaseException:
        if console is not None:
            await console.aclose()
        await room.aclose()
        raise
    return make_endpoints(settings, room, keys, console, wanted)


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
        pass_algorithm=settings.pass_algorithm,
    )


def open_store(settings: RoomSettings, clock: Clock | None = None) -> RoomStore:
    if settings.embedded:
        return MemoryRoomStore(clock, one_place_per_person=settings.by_identity)
    from frontrow.waitingroom.stores.redis import RedisRoomStore
    from frontrow.waitingroom.stores.sharded import ShardedRoomStore

    urls = settings.shards or (settings.store,)
    stores = [RedisRoomStore(url, clock=clock, one_place_per_person=settings.by_identity) for url in urls]
    return ShardedRoomStore(stores) if settings.shards else stores[0]


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
        CAPTCHAS[human],
        settings.human_site_key,
        settings.human_secret,
        hostnames=settings.human_hostnames,
        when_down=settings.human_when_down,
    )


def make_endpoints(
    settings: RoomSettings,
    room: WaitingRoom,
    keys: RoomKeys,
    console: RunningConsole | None = None,
    events: Sequence[str] | None = None,
) -> OpenRooms:
    """The endpoints with their entry, pages and streams; `events` are those that are served from the start, else all
    of the settings."""
    of_events = {event: check for event in settings.events if (check := human_check(settings, keys, event)) is not None}
    checks = of_events | {name: of_events[queue] for name in settings.rooms if (queue := _queue_of(name)) in of_events}
    rules = EntranceRules(
        settings.per_person,
        settings.per_ip,
        settings.per_device,
        settings.x_ratelimit_headers,
        settings.joins_without_scripts,
    )
    entry = EntranceLimits(
        checks,
        rules=rules,
        trusted_proxies=settings.trusted_proxies,
        processes=settings.workers,
        store=settings.limit_store,
        suspects=suspect_networks(settings),
    )
    ask_for_proofs(entry, settings, room)
    titles = ((settings.events[0], settings.title),) if settings.title and settings.events else ()
    theme = theme_css(settings.colours)
    page = PageSettings(
        settings.brand, titles, settings.shop_url, settings.secure, theme, check_origins(settings.shops)
    )
    most = -(-settings.max_streams // settings.workers)
    caps = AddressCaps(settings.max_streams_per_address, settings.uncapped, entry.is_proxy)

    def make_streams() -> Streams:
        return Streams(max_open=most, heartbeat_s=settings.heartbeat_s, caps=caps)

    served = settings.rooms if events is None or settings.shards else events
    streams = {event: make_streams() for event in served}
    designed = (
        DesignedSurroundings(titles, console.rooms.plans, settings.colours, console.notices.kinds)
        if console is not None
        else None
    )
    pages = RoomPages(room, entry, page, designed)
    endpoints = RoomEndpoints(room, entry, pages, streams, organiser_key=settings.organiser_key)
    if console is not None:
        endpoints.context.console = console.rooms, console.open.access
    queues = {event: ShardedRoom(event, [room] * len(settings.shards)) for event in settings.events if settings.shards}
    return OpenRooms(
        ShardedEndpoints(endpoints, queues), console, make_streams, functools.partial(human_check, settings, keys)
    )


def suspect_networks(settings: RoomSettings) -> SuspectNetworks | None:
    """The operator's list of networks, if there is one."""
    return SuspectNetworks(settings.suspect_networks) if settings.suspect_networks else None


def ask_for_proofs(entry: EntranceLimits, settings: RoomSettings, room: WaitingRoom) -> None:
    """With `human_when = "busy"`, joins need a proof only while more people come than are admitted. A line over
    several stores is busy as soon as one of its rooms is."""
    if settings.human_when == "busy":
        parts = {event: [f"{event}.{n}" for n in range(len(settings.shards))] for event in settings.events}
        entry.needs_proof = lambda event: any(map(room.cache.is_busy, parts.get(event) or (event,)))


def _queue_of(name: str) -> str:
    """The queue a shard belongs to."""
    return name.rpartition(".")[0]


async def _create_rooms(room: WaitingRoom, settings: RoomSettings, events: Sequence[str]) -> None:
    """Make or find every room; a store that is still starting gets half a minute."""
    for event in events:
        for attempt in range(START_TRIES):
            try:
                if settings.shards:
                    queue = ShardedRoom(event, [room] * len(settings.shards))
                    await queue.create(settings.config(), settings.phase)
                else:
                    await room.control.create(event, settings.config(), settings.phase)
                break
            except Unavailable as error:
                if attempt == START_TRIES - 1:
                    raise
                log.warning("store not there yet", extra={"problem": error.message})
                await asyncio.sleep(1)


async def _import_codes(room: WaitingRoom, settings: RoomSettings) -> None:
    """The codes of the settings' file; to import them again is harmless."""
    if settings.codes_csv:
        lines = Path(settings.codes_csv).read_text("utf-8").splitlines()  # noqa: ASYNC240  # before anybody is served
        names = [name for name in settings.rooms if settings.events[0] in (name, _queue_of(name))]
        count = max([await room.joins.import_codes(name, lines) for name in names])
        log.info("codes imported", extra={"event": settings.events[0], "codes": count})
