"""The routes of a waiting room: one table for the fast path, the room as a server of its own and the platform's API.

Each route exists under `/v1/events/{event}/room/…` and, when one room is served alone, at the root as well.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from frontrow.web.endpoints.room.room_endpoints import RoomEndpoints
from frontrow.web.http.messages import Endpoint


class ShardBy(Enum):
    """What names the shard of a queue that is spread over several stores (`sharded_queue`)."""

    JOIN = "join"
    PLACE = "place"
    PASS = "pass"  # noqa: S105 - not a password
    QUEUE = "queue"  # the queue answers for all of its shards


@dataclass(frozen=True, slots=True)
class RoomRoute:
    """One route: its method and path, its `name` in operation ids, shapes and counts, the endpoint that answers, and
    whether the fast path does too."""

    method: str
    path: str
    name: str
    summary: str
    endpoint: Callable[[RoomEndpoints], Endpoint]
    shard: ShardBy = ShardBy.PLACE
    fast: bool = False


ROUTES = (
    RoomRoute(
        "POST",
        "/join",
        "join",
        "Take a place at the end of the line",
        lambda rooms: rooms.visitors.join,
        ShardBy.JOIN,
        fast=True,
    ),
    RoomRoute(
        "GET",
        "/status",
        "status",
        "What a place is worth at the moment",
        lambda rooms: rooms.visitors.status,
        fast=True,
    ),
    RoomRoute(
        "POST",
        "/claim",
        "claim",
        "Exchange an active place for a pass, once",
        lambda rooms: rooms.visitors.claim,
        fast=True,
    ),
    RoomRoute(
        "GET",
        "/now-serving",
        "now_serving",
        "The signed document, the same for everybody",
        lambda rooms: rooms.documents.now_serving,
        ShardBy.QUEUE,
        fast=True,
    ),
    RoomRoute(
        "GET",
        "/pass",
        "check_pass",
        "204 when the request carries a good pass (nginx auth_request)",
        lambda rooms: rooms.visits.check_pass,
        ShardBy.PASS,
        fast=True,
    ),
    RoomRoute("POST", "/renew", "renew", "A pass that lives longer", lambda rooms: rooms.visits.renew, ShardBy.PASS),
    RoomRoute(
        "POST",
        "/give-back",
        "give_back",
        "End a visit; its room goes to the next person",
        lambda rooms: rooms.visits.give_back,
        ShardBy.PASS,
    ),
    RoomRoute(
        "POST",
        "/heartbeat",
        "heartbeat",
        "The visitor is still there; answers when the visit ends otherwise",
        lambda rooms: rooms.visits.heartbeat,
        ShardBy.PASS,
    ),
    RoomRoute(
        "GET",
        "/visit",
        "visit",
        "When the visit ends; asking is no activity",
        lambda rooms: rooms.visits.visit,
        ShardBy.PASS,
    ),
    RoomRoute(
        "POST",
        "/left",
        "left",
        "A page of the shop was closed; the visit ends soon unless the visitor is heard again",
        lambda rooms: rooms.visits.left,
        ShardBy.PASS,
    ),
    RoomRoute("POST", "/leave", "leave", "Leave the line (rooms by identity)", lambda rooms: rooms.visitors.leave),
    RoomRoute(
        "GET",
        "/challenge",
        "challenge",
        "What a browser needs to prove that a person sits there",
        lambda rooms: rooms.documents.challenge,
    ),
    RoomRoute("GET", "/draw", "draw", "The published record of the pre-queue draw", lambda rooms: rooms.documents.draw),
    RoomRoute("GET", "/message", "message", "The organiser's words", lambda rooms: rooms.documents.message),
    RoomRoute(
        "GET",
        "/overflow",
        "overflow",
        "The static page for those there is no room for",
        lambda rooms: rooms.documents.overflow,
    ),
    RoomRoute(
        "GET", "/room", "show_room", "The organiser's view", lambda rooms: rooms.organiser.show_room, ShardBy.QUEUE
    ),
    RoomRoute(
        "PATCH",
        "/room",
        "change_room",
        "Open, pause, resume, queue-all; rate, capacity, message",
        lambda rooms: rooms.organiser.change_room,
        ShardBy.QUEUE,
    ),
    RoomRoute(
        "POST",
        "/shop-health",
        "shop_health",
        "A shop's signed report of its latency and errors",
        lambda rooms: rooms.shop_health.report,
        ShardBy.QUEUE,
    ),
    RoomRoute(
        "POST",
        "/codes",
        "import_codes",
        "Take over the organiser's own fan codes (CSV: code,lane)",
        lambda rooms: rooms.organiser.import_codes,
        ShardBy.QUEUE,
    ),
    RoomRoute("GET", "/", "page", "The page people wait on", lambda rooms: rooms.hand_overs.page, ShardBy.QUEUE),
)

# Only in the room as a server of its own: the platform is itself the shop behind its rooms.
HAND_OVER_ROUTES = (
    RoomRoute(
        "POST",
        "/exchange",
        "exchange",
        "Exchange a hand-over for a pass, once (connectors of shops on other domains)",
        lambda rooms: rooms.hand_overs.exchange,
        ShardBy.QUEUE,
        fast=True,
    ),
    RoomRoute(
        "GET",
        "/connector",
        "connector",
        "The keys of passes and the visits that have ended (connectors)",
        lambda rooms: rooms.hand_overs.follow,
        ShardBy.QUEUE,
    ),
)
ALONE_ROUTES = ROUTES + HAND_OVER_ROUTES
