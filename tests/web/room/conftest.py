"""The room as it is served: with the fast path, with the guard alone, and as a bare Litestar app."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits, EntranceRules
from frontrow.web.endpoints.room.page import PageSettings, RoomPages
from frontrow.web.endpoints.room.room_endpoints import RoomEndpoints
from frontrow.web.endpoints.room.sharded_queue import ShardedEndpoints
from frontrow.web.fastpath.protocol import fast_path
from frontrow.web.fastpath.room_routes import hot_routes
from frontrow.web.guard.guarded_protocol import GuardedRequests, guarded
from frontrow.web.room.app import room_app
from frontrow.web.server.limit_headers_middleware import LimitHeadersMiddleware
from frontrow.web.streams.positions import Streams
from tests.web.room.served import serving
from tests.web.room.simple_room import SimpleRoom

ORGANISER = "organiser-key-of-the-tests"
WIDE = EntranceRules("100000/second", "100000/second", "100000/second")


def endpoints_of(
    room: SimpleRoom, *, rules: EntranceRules = WIDE, key: str = ORGANISER, **stream: object
) -> RoomEndpoints:
    entry = EntranceLimits(rules=rules)
    pages = RoomPages(room, entry, PageSettings(next_url="/shop"))
    streams = {room.event: Streams(**({"heartbeat_s": 0.2} | stream))}  # type: ignore[arg-type]
    return RoomEndpoints(room, entry, pages, streams, organiser_key=key)


@dataclass
class ServedRoom:
    """A running server and a client to it."""

    room: SimpleRoom
    endpoints: RoomEndpoints
    port: int
    client: httpx.Client


def opened(kind: str, room: SimpleRoom, endpoints: RoomEndpoints) -> Iterator[ServedRoom]:
    """`hot`: the fast path answers; `behind`: the app behind it; `guarded`: the app behind the guard alone; `litestar`:
    the app under uvicorn alone."""
    served = ShardedEndpoints(endpoints, {})
    app = GuardedRequests(LimitHeadersMiddleware(room_app(served, root_event=room.event), endpoints.entry))
    http: Any = "httptools" if kind == "litestar" else guarded()
    if kind in ("hot", "behind"):
        http = fast_path(hot_routes(served, root_event=room.event) if kind == "hot" else {}, limits=endpoints.entry)
    with (
        serving(app, http, ws="none") as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False) as client,
    ):
        yield ServedRoom(room, endpoints, port, client)


@pytest.fixture(params=["hot", "guarded", "litestar"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(kind: str) -> Iterator[ServedRoom]:
    room = SimpleRoom()
    yield from opened(kind, room, endpoints_of(room))
