"""A whole platform for tests: embedded in a folder, or on a Redis and a PostgreSQL, with an event on sale."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
from litestar import Litestar

from frontrow.app.wiring import Platform, PlatformSettings, open_platform
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.events.model.room_rules import NO_RULES, RoomRules
from frontrow.boxoffice.seats.formats.plan_document import digest, plan_bytes
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, Section, Venue
from frontrow.core.clock import US_PER_S, Clock
from frontrow.limits.config import LimitsFile
from frontrow.settings.overload import OverloadSettings
from frontrow.settings.platform import LedgerSettings, RedisSettings, SecretSettings
from frontrow.settings.room import RoomSettings
from frontrow.settings.server import ServerSettings
from frontrow.shared.money import Money
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.web.server.app import front_of, platform_app, run_platform
from frontrow.web.server.platform_server import listen, make_server
from tests.boxoffice.plan_samples import small_plan
from tests.boxoffice.shop import sqlite_url
from tests.support.eventually import eventually

EVENT_ID = "evt_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"
DAY_US = 86_400 * US_PER_S
SECRET = "a test's secret key, long enough to be one"


@functools.cache
def room_keys() -> RoomKeys:
    """Made once a test process: an RSA key costs more than most tests."""
    return RoomKeys.generate()


def settings_for(
    folder: Path,
    *,
    redis_url: str = "",
    postgres_url: str = "",
    overload: OverloadSettings | None = None,
    limits: LimitsFile | None = None,
    **server: Any,
) -> PlatformSettings:
    """Embedded in `folder` unless the two URLs are given; made-up money, rooms that admit at once."""
    (folder / "room").mkdir(exist_ok=True, parents=True)
    room_keys().save(folder / "room")
    given: dict[str, Any] = {"demo": True, "folder": str(folder), "per_person": "1000/second", "per_ip": "1000/second"}
    given["heavy_processes"] = 0  # each would take a second to start
    return PlatformSettings(
        server=ServerSettings(**(given | server)),
        secret=SecretSettings(SECRET),
        ledger=LedgerSettings(postgres_url or sqlite_url(folder, keep=True)),
        redis=RedisSettings(redis_url),
        room=RoomSettings(capacity=1_000, window_size=100, interval_s=0.05),
        limits=limits,
        overload=overload or OverloadSettings(),
    )


def one_row(seats: int) -> Plan:
    """A tiny hall."""
    return Plan(
        "Tiny", (Section("S", (Row("A", tuple(Seat(str(n + 1), 10.0 * n, tier="front") for n in range(seats))),)),)
    )


def an_event(now_us: int, plan_hash: str, **changes: Any) -> Event:
    """A show in ten days, on sale since yesterday."""
    values: dict[str, Any] = {
        "id": EVENT_ID,
        "name": "Aurora",
        "venue_id": "ven_hall",
        "plan_hash": plan_hash,
        "currency": "EUR",
        "starts_at_us": now_us + 10 * DAY_US,
        "sale_starts_at_us": now_us - DAY_US,
        "sale_ends_at_us": now_us + 9 * DAY_US,
        "tiers": (
            PriceTier("front", Money(5000, "EUR")),
            PriceTier("back", Money(2000, "EUR")),
            PriceTier("standing", Money(3000, "EUR")),
        ),
        "status": EventStatus.ON_SALE,
        "lonely_rule_until_percent": 0,
    }
    return Event(**(values | changes))


async def put_event(platform: Platform, plan: Plan | None = None, **changes: Any) -> Event:
    """Write an event into the catalogue; the platform opens it by itself."""
    return await put_into(platform.ledger, platform.clock(), plan, **changes)


async def put_into(ledger: SqlLedger, now_us: int, plan: Plan | None = None, **changes: Any) -> Event:
    """Write an event into a ledger's catalogue."""
    body = plan_bytes(plan or small_plan())
    event = an_event(now_us, digest(body), **changes)
    await ledger.catalogue.put_plan(event.plan_hash, plan or small_plan(), body.decode(), now_us)
    hall = Venue("ven_hall", "Small Hall", event.plan_hash, "Vienna", "AT", "Europe/Vienna")
    await ledger.catalogue.put_venue(hall, now_us)
    await ledger.catalogue.put_event(event, now_us)
    return event


@contextlib.asynccontextmanager
async def a_platform(
    folder: Path, plan: Plan | None = None, *, hold_ttl_s: int = 600, clock: Clock | None = None, **options: Any
) -> AsyncIterator[Platform]:
    """A running platform with one event on sale."""
    async with open_platform(settings_for(folder, **options), clock=clock) as platform:
        await put_event(platform, plan, hold_ttl_s=hold_ttl_s)
        async with run_platform(platform):
            yield platform


@contextlib.asynccontextmanager
async def a_client(platform: Platform) -> AsyncIterator[httpx.AsyncClient]:
    """Asks the app without a socket."""
    with borrowed_app(platform) as app:
        transport = httpx.ASGITransport(front_of(app, platform))  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            yield client


_idle_apps: list[Litestar] = []


@contextlib.contextmanager
def borrowed_app(platform: Platform) -> Iterator[Litestar]:
    """An app for this platform, used again by others afterwards: its 240 routes take half a second to put together."""
    app = _idle_apps.pop() if _idle_apps else platform_app(platform, own_loops=False)
    app.state.platform = platform
    try:
        yield app
    finally:
        app.state.platform = None
        _idle_apps.append(app)


@contextlib.asynccontextmanager
async def a_server(
    folder: Path, plan: Plan | None = None, *, room: RoomRules = NO_RULES, **options: Any
) -> AsyncIterator[tuple[Platform, str]]:
    """A platform with one event on sale behind a real socket; its address."""
    async with open_platform(settings_for(folder, port=0, **options)) as platform:
        await put_event(platform, plan, room=room)
        with borrowed_app(platform) as app, listen(platform.settings.server) as sock:
            async with run_platform(platform):
                server = make_server(platform, app)
                serving = asyncio.create_task(server.serve(sockets=[sock]))
                try:
                    await eventually(lambda: server.started or (serving.done() and serving.result()))
                    yield platform, f"http://127.0.0.1:{sock.getsockname()[1]}"
                finally:
                    server.should_exit = True
                    await serving
