"""The seat map (B1, B2): the geometry, immutable under its hash, and the seats' states as snapshot, stream or poll."""

import gzip
import re
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.types import ASGIApp

from frontrow.core.errors import NotFound
from frontrow.web.api.shared_routes import After, declared, shared_route
from frontrow.web.endpoints.routes import GET_SEATS, POLL_SEATS, STREAM_SEATS
from frontrow.web.http.access import Access
from frontrow.web.http.asgi import AnswerApp, read_request
from frontrow.web.http.messages import EndpointResponse
from frontrow.web.platform.injected import FromPlatform
from frontrow.web.streams.stream_app import StreamApp

FILE = re.compile(r"([0-9a-f]{64})\.json\Z")
FOREVER = "public, max-age=31536000, immutable"


class MapDocument(msgspec.Struct):
    """Geometry and prices in the format `fsmap/1`; see docs/seatmap.md."""

    v: Annotated[str, msgspec.Meta(examples=["fsmap/1"])]
    name: str
    seats: int
    tiers: list[dict[str, Any]]
    sections: list[list[Any]]


@get(
    "/v1/events/{event_id:str}/map/{file:str}",
    operation_id="get_map",
    summary="The map's geometry, immutable; the event names its `<hash>.json`",
    opt={"access": Access.PUBLIC, "answers": {200: MapDocument}},
    media_type="application/json",
)
async def get_map(
    request: Request[Any, Any, Any], platform: FromPlatform, event_id: FromPath[str], file: FromPath[str]
) -> Response[bytes]:
    found = FILE.match(file)
    seat_map = platform.box_office.openings.maps.get(event_id)
    if found is None or seat_map is None or seat_map.hash != found[1]:
        raise NotFound("there is no such map; the event has the address of its map", event=event_id[:60])
    headers = {"cache-control": FOREVER, "etag": f'"{seat_map.hash[:18]}"', "vary": "accept-encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(seat_map.body, headers=headers, media_type="application/json")
    headers["content-encoding"] = "gzip"
    return Response(_packed(seat_map.body), headers=headers, media_type="application/json")


@lru_cache(64)
def _packed(body: bytes) -> bytes:
    """Compressed once and cached, to an eighth of its size."""
    return gzip.compress(body, 9, mtime=0)


@declared(STREAM_SEATS)
async def stream_seats(
    request: Request[Any, Any, Any], event_id: FromPath[str], platform: FromPlatform, after: After = ""
) -> ASGIApp:
    ask = await read_request(request)
    reply = platform.endpoints.seat_map.stream(event_id, ask)
    if isinstance(reply, EndpointResponse):
        return AnswerApp(reply)
    return StreamApp(lambda: platform.endpoints.seat_map.follow(event_id, ask), takeover=reply)


ROUTES: list[HTTPRouteHandler] = [get_map, shared_route(GET_SEATS), shared_route(POLL_SEATS), stream_seats]
