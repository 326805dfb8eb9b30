"""The endpoints of a queue spread over several stores (W11): join picks the shard, a place or pass names it.

Each shard is a room of its own (`aurora.0`, `aurora.1`, …) with every endpoint under its own path. Under the queue's
own name people join, check their status, claim and wait on the page; organisers see the sum and change all shards. The
now-serving document and the stream exist per shard only.
"""

import asyncio
import binascii
import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from frontrow.core.errors import FrontrowError, InvalidInput, NotFound
from frontrow.core.failures import note_failure
from frontrow.waitingroom.console.model.owners import Scope
from frontrow.waitingroom.credentials.places import unb64
from frontrow.waitingroom.service.sharding import ShardedRoom, slices
from frontrow.web.endpoints.room.organiser import patch_room, room_body
from frontrow.web.endpoints.room.room_endpoints import RoomEndpoints
from frontrow.web.endpoints.room.routes import RoomRoute, ShardBy
from frontrow.web.endpoints.room.visitors import idempotency_key, read_join_body
from frontrow.web.http.messages import Endpoint, EndpointRequest, EndpointResponse, Result, json_answer, problem_answer
from frontrow.web.http.request_bodies import check_size
from frontrow.web.http.room_credentials import keeps_place, pass_of

log = logging.getLogger("frontrow.web.room")

REBALANCE_S = 5.0


class ShardedEndpoints:
    """The endpoints of rooms and of `queues` by their own name. A request for a room's name goes to `rooms` unchanged;
    without queues all do."""

    def __init__(self, rooms: RoomEndpoints, queues: Mapping[str, ShardedRoom]) -> None:
        self.rooms = rooms
        self.queues = queues
        self._of_queue: dict[str, Callable[[ShardedRoom, EndpointRequest], Result]] = {
            "page": self._page,
            "now_serving": self._refuse_queue_name,
            "show_room": self._show_room,
            "change_room": self._change_room,
            "import_codes": self._import_codes,
            "exchange": self._exchange,
            "connector": self._follow,
            "shop_health": self._take_report,
        }

    def endpoint_of(self, route: RoomRoute) -> Endpoint:
        """The endpoint of this route for queues and their shards."""
        endpoint = route.endpoint(self.rooms)
        if not self.queues:
            return endpoint
        shard_of = {
            ShardBy.JOIN: self._shard_for_join,
            ShardBy.PLACE: self._shard_of_place,
            ShardBy.PASS: self._shard_of_pass,
        }.get(route.shard)

        @functools.wraps(endpoint)
        def answer(event: str, request: EndpointRequest) -> Result:
            queue = self.queues.get(event)
            if queue is None:
                return endpoint(event, request)
            return (
                self._of_queue[route.name](queue, request)
                if shard_of is None
                else endpoint(shard_of(queue, request), request)
            )

        return answer

    # -- visitors ------------------------------------------------------------------------------------------------------

    def _page(self, queue: ShardedRoom, request: EndpointRequest) -> Result:
        """The shard's page for a browser with a place, the queue's page for one without."""
        pages = self.rooms.pages
        mine = [name for name in queue.names if keeps_place(name, request, secure=pages.secure)]
        try:
            front = "" if mine else queue.event
            return self.rooms.hand_overs.page(mine[0] if mine else queue.names[0], request, front)
        except FrontrowError as error:
            return self.rooms.context.problem("page", error, request, queue.event)

    def _exchange(self, queue: ShardedRoom, request: EndpointRequest) -> Result:
        return self.rooms.hand_overs.exchange_of(queue.names, request)

    def _follow(self, queue: ShardedRoom, request: EndpointRequest) -> Result:
        return self.rooms.hand_overs.follow_all(queue.names, request)

    def stream_refusal(self, event: str, address: str) -> EndpointResponse | None:
        """As of a room; a queue has no stream of its own."""
        queue = self.queues.get(event)
        return self._no_document(queue) if queue is not None else self.rooms.documents.stream_refusal(event, address)

    def _refuse_queue_name(self, queue: ShardedRoom, request: EndpointRequest) -> EndpointResponse:
        return self._no_document(queue)

    def _no_document(self, queue: ShardedRoom) -> EndpointResponse:
        text = f"the line of {queue.event} is spread: ask for the event in your place, one of {', '.join(queue.names)}"
        return problem_answer(NotFound(text, shards=list(queue.names)))

    # -- organisers ----------------------------------------------------------------------------------------------------

    def _show_room(self, queue: ShardedRoom, request: EndpointRequest) -> EndpointResponse:
        try:
            self.rooms.organiser.check_organiser(request, queue.event, Scope.ROOM_READ)
            return json_answer(200, queue_body(queue))
        except FrontrowError as error:
            return self.rooms.context.problem("room", error, request, queue.event)

    def _change_room(self, queue: ShardedRoom, request: EndpointRequest) -> Result:
        try:
            self.rooms.organiser.check_organiser(request, queue.event, Scope.ROOM_WRITE)
            check_size(request)
        except FrontrowError as error:
            return self.rooms.context.problem("room", error, request, queue.event)
        return self._change_queue(queue, request)

    async def _change_queue(self, queue: ShardedRoom, request: EndpointRequest) -> EndpointResponse:
        try:
            await self._change_shards(queue, request.body)
            return json_answer(200, queue_body(queue))
        except FrontrowError as error:
            return self.rooms.context.problem("room", error, request, queue.event)

    async def _change_shards(self, queue: ShardedRoom, body: bytes) -> None:
        try:
            change: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise InvalidInput(f"the change is not what is expected here: {error}", param="body") from None
        capacity = change.pop("capacity", None)
        if capacity is not None and type(capacity) is not int:
            raise InvalidInput("capacity is a whole number", param="capacity")
        even = [1] * len(queue.names)
        parts: list[dict[str, Any]] = [dict(change) for _ in queue.names]
        for name in ("rate_per_s", "burst"):
            if type(change.get(name)) is int:
                for part, share in zip(parts, slices(change[name], even), strict=True):
                    part[name] = max(1, share) if name == "burst" else share
        for name, part in zip(queue.names, parts, strict=True):
            await patch_room(self.rooms.room, name, msgspec.json.encode(part))
        if capacity is not None:
            await queue.set_capacity(capacity)

    def _take_report(self, queue: ShardedRoom, request: EndpointRequest) -> Result:
        return self.rooms.shop_health.report_to(queue.event, queue.names, request)

    def _import_codes(self, queue: ShardedRoom, request: EndpointRequest) -> Result:
        try:
            return self._import_lines(queue, request, self.rooms.organiser.read_codes(queue.event, request))
        except FrontrowError as error:
            return self.rooms.context.problem("codes", error, request, queue.event)

    async def _import_lines(self, queue: ShardedRoom, request: EndpointRequest, lines: list[str]) -> EndpointResponse:
        """Every shard gets all codes; the first refusal is the answer."""
        answers = [await self.rooms.organiser.import_lines(name, request, lines) for name in queue.names]
        return next((answer for answer in answers if answer.status != 200), answers[0])

    # -- which shard ---------------------------------------------------------------------------------------------------

    def _shard_for_join(self, queue: ShardedRoom, request: EndpointRequest) -> str:
        """By code (used once, so always the same shard), person or key; else by address."""
        try:
            body = read_join_body(request)
            stable = body.code or body.person or idempotency_key(request)
        except FrontrowError:
            return queue.names[0]  # that shard refuses it with the proper error
        return queue.names[queue.shard_for(stable or "", self.rooms.context.client_ip(request))]

    def _shard_of_place(self, queue: ShardedRoom, request: EndpointRequest) -> str:
        for name in queue.names:
            if request.header(b"authorization") is None and keeps_place(name, request, secure=self.rooms.pages.secure):
                return name
        return _named_shard(queue, (request.header(b"authorization") or b"")[7:], "evt")

    def _shard_of_pass(self, queue: ShardedRoom, request: EndpointRequest) -> str:
        try:
            return _named_shard(queue, pass_of(request, secure=self.rooms.pages.secure).encode(), "aud")
        except FrontrowError:
            return queue.names[0]


def _named_shard(queue: ShardedRoom, token: bytes, claim: str) -> str:
    """The shard a token says it is for; whether that is true is checked by the shard."""
    try:
        name = msgspec.json.decode(unb64(token.split(b".")[1])).get(claim)
    except (IndexError, ValueError, AttributeError, binascii.Error, msgspec.MsgspecError):
        name = None
    return name if name in queue.names else queue.names[0]


def queue_body(queue: ShardedRoom) -> dict[str, Any]:
    """The organiser's view of a whole queue: sums, and each shard."""
    shards = [room_body(view) for view in queue.views()]
    total = dict(shards[0]) | {"event": queue.event, "shards": shards, "capacity": queue.whole()}
    for name in ("waiting", "active", "unclaimed", "rate_per_s", "burst", "depth_cap"):
        total[name] = sum(shard[name] for shard in shards)
    pairs = [(shard["event"], lane) for shard in shards for lane in shard["lanes"]]
    total["lanes"] = [lane | {"name": f"{event}/{lane['name']}"} for event, lane in pairs]
    return total


async def keep_balanced(queues: Mapping[str, ShardedRoom]) -> None:
    """Move capacity to where people wait, in the process that leads a queue's first shard, until cancelled."""
    while True:
        await asyncio.sleep(REBALANCE_S)
        for queue in queues.values():
            try:
                if queue.views()[0].is_leader:
                    await queue.rebalance()
            except FrontrowError as error:
                note_failure(error, event_id=queue.event)
