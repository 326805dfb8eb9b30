"""The room behind both of its doors: the hot lane, and Litestar alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from frontrow.waitingroom.entrance.entrance_limits import EntranceLimits, EntranceRules
from frontrow.web.endpoints.room import RoomEndpoints
from frontrow.web.lane.protocol import lane
from frontrow.web.room.app import hot_routes, room_app
from frontrow.web.room.page import PageSettings, RoomPages
from frontrow.web.server.told_limits import ToldLimits
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
class Door:
    """A running server and a client to it."""

    room: SimpleRoom
    endpoints: RoomEndpoints
    port: int
    client: httpx.Client


def opened(kind: str, room: SimpleRoom, endpoints: RoomEndpoints) -> Iterator[Door]:
    """`hot`: the lane answers; `behind`: the app behind the lane; `litestar`: the app under uvicorn alone."""
    app = ToldLimits(room_app(endpoints, root_event=room.event), endpoints.entry)
    routes = hot_routes(endpoints, root_event=room.event) if kind == "hot" else {}
    http = "httptools" if kind == "litestar" else lane(routes, limits=endpoints.entry)
    with (
        serving(app, http) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False) as client,
    ):
        yield Door(room, endpoints, port, client)


@pytest.fixture(params=["hot", "litestar"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def door(kind: str) -> Iterator[Door]:
    room = SimpleRoom()
    yield from opened(kind, room, endpoints_of(room))
