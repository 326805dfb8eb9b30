"""The endpoints of a queue spread over several stores (W11): join picks the shard, a place or pass names it.

Each shard is a room of its own (`aurora.0`, `aurora.1`, …) with every endpoint under its own path. Under the queue's
own name people join, check their status, claim and wait on the page; organisers see the sum and change all shards. The
now-serving document and the stream exist per shard only.
"""

import asyncio
import binascii
import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from frontrow.core.errors import FrontrowError, InvalidInput, NotFound
from frontrow.core.failures import note_failure
from frontrow.waitingroom.credentials.places import unb64
from frontrow.waitingroom.service.sharding import ShardedRoom, slices
from frontrow.web.endpoints.messages import EndpointRequest, EndpointResponse, json_answer, problem_answer
from frontrow.web.endpoints.room import RoomEndpoints
from frontrow.web.endpoints.room_bodies import check_size, idempotency_key, pass_of, read_join_body
from frontrow.web.endpoints.room_context import Result
from frontrow.web.endpoints.room_control import patch_room, room_body

log = logging.getLogger("frontrow.web.room")

REBALANCE_S = 5.0


class ShardedEndpoints:
    """The endpoints of queues by their own name. A request for a shard's own name goes to `rooms` unchanged."""

    def __init__(self, rooms: RoomEndpoints, queues: Mapping[str, ShardedRoom]) -> None:
        self.rooms = rooms
        self.queues = queues
        self.room = rooms.room
        self.entry = rooms.entry
        self.streams = rooms.streams
        self.counts = rooms.counts
        self.overflow = rooms.overflow

    # -- visitors ------------------------------------------------------------------------------------------------------

    def join(self, event: str, request: EndpointRequest) -> Result:
        queue = self.queues.get(event)
        return self.rooms.join(queue.names[self._shard_for_join(queue, request)] if queue else event, request)

    def status(self, event: str, request: EndpointRequest) -> Result:
        return self.rooms.status(self._shard_of_place(event, request), request)

    def claim(self, event: str, request: EndpointRequest) -> Result:
        return self.rooms.claim(self._shard_of_place(event, request), request)

    def leave(self, event: str, request: EndpointRequest) -> Result:
        return self.rooms.leave(self._shard_of_place(event, request), request)

    def renew(self, event: str, request: EndpointRequest) -> Result:
        return self.rooms.renew(self._shard_of_pass(event, request), request)

    def give_back(self, event: str, request: EndpointRequest) -> Result:
        return self.rooms.give_back(self._shard_of_pass(event, request), request)

    def heartbeat(self, event: str, request: EndpointRequest) -> Result:
        return self.rooms.heartbeat(self._shard_of_pass(event, request), request)

    def left(self, event: str, request: EndpointRequest) -> Result:
        return self.rooms.left(self._shard_of_pass(event, request), request)

    def check_pass(self, event: str, request: EndpointRequest) -> Result:
        return self.rooms.check_pass(self._shard_of_pass(event, request), request)

    def challenge(self, event: str, request: EndpointRequest) -> EndpointResponse:
        return self.rooms.challenge(self._shard_of_place(event, request), request)

    def draw(self, event: str, request: EndpointRequest) -> EndpointResponse:
        return self.rooms.draw(self._shard_of_place(event, request), request)

    def message(self, event: str, request: EndpointRequest) -> EndpointResponse:
        return self.rooms.message(self._shard_of_place(event, request), request)

    def page(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """The shard's page for a browser with a place, the queue's page for one without."""
        queue = self.queues.get(event)
        if queue is None:
            return self.rooms.page(event, request)
        pages = self.rooms.pages
        mine = [name for name in queue.names if pages.keeps_place(name, request)]
        try:
            return pages.page(mine[0] if mine else queue.names[0], request, front="" if mine else event)
        except FrontrowError as error:
            return self.rooms.problem("page", error, request, event)

    def now_serving(self, event: str, request: EndpointRequest) -> EndpointResponse:
        return self._refuse_queue_name(event) or self.rooms.now_serving(event, request)

    def stream_refusal(self, event: str, address: str) -> EndpointResponse | None:
        return self._refuse_queue_name(event) or self.rooms.stream_refusal(event, address)

    # -- organisers ----------------------------------------------------------------------------------------------------

    def show_room(self, event: str, request: EndpointRequest) -> EndpointResponse:
        queue = self.queues.get(event)
        if queue is None:
            return self.rooms.show_room(event, request)
        try:
            self.rooms.organiser.check_organiser(request)
            return json_answer(200, queue_body(queue))
        except FrontrowError as error:
            return self.rooms.problem("room", error, request, event)

    def change_room(self, event: str, request: EndpointRequest) -> Result:
        queue = self.queues.get(event)
        if queue is None:
            return self.rooms.change_room(event, request)
        try:
            self.rooms.organiser.check_organiser(request)
            check_size(request)
        except FrontrowError as error:
            return self.rooms.problem("room", error, request, event)
        return self._change_queue(queue, request)

    async def _change_queue(self, queue: ShardedRoom, request: EndpointRequest) -> EndpointResponse:
        try:
            await self._change_shards(queue, request.body)
            return json_answer(200, queue_body(queue))
        except FrontrowError as error:
            return self.rooms.problem("room", error, request, queue.event)

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
            await patch_room(self.room, name, msgspec.json.encode(part))
        if capacity is not None:
            await queue.set_capacity(capacity)

    def import_codes(self, event: str, request: EndpointRequest) -> Result:
        queue = self.queues.get(event)
        if queue is None:
            return self.rooms.import_codes(event, request)
        try:
            return self._import_codes(queue, request, self.rooms.organiser.read_codes(request))
        except FrontrowError as error:
            return self.rooms.problem("codes", error, request, event)

    async def _import_codes(self, queue: ShardedRoom, request: EndpointRequest, lines: list[str]) -> EndpointResponse:
        """Every shard gets all codes; the first refusal is the answer."""
        answers = [await self.rooms.organiser.import_lines(name, request, lines) for name in queue.names]
        return next((answer for answer in answers if answer.status != 200), answers[0])

    # -- which shard ---------------------------------------------------------------------------------------------------

    def _shard_for_join(self, queue: ShardedRoom, request: EndpointRequest) -> int:
        """By code (used once, so always the same shard), person or key; else by address."""
        try:
            body = read_join_body(request)
            stable = body.code or body.person or idempotency_key(request)
        except FrontrowError:
            return 0  # that shard refuses it with the proper error
        return queue.shard_for(stable or "", self.rooms.context.client_ip(request))

    def _shard_of_place(self, event: str, request: EndpointRequest) -> str:
        queue = self.queues.get(event)
        if queue is None:
            return event
        for name in queue.names:
            if request.header(b"authorization") is None and self.rooms.pages.keeps_place(name, request):
                return name
        return _named_shard(queue, (request.header(b"authorization") or b"")[7:], "evt")

    def _shard_of_pass(self, event: str, request: EndpointRequest) -> str:
        queue = self.queues.get(event)
        if queue is None:
            return event
        try:
            return _named_shard(queue, pass_of(request, secure=self.rooms.pages.secure).encode(), "aud")
        except FrontrowError:
            return queue.names[0]

    def _refuse_queue_name(self, event: str) -> EndpointResponse | None:
        queue = self.queues.get(event)
        if queue is None:
            return None
        text = f"the line of {event} is spread: ask for the event in your place, one of {', '.join(queue.names)}"
        return problem_answer(NotFound(text, shards=list(queue.names)))


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
