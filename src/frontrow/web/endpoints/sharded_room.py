"""A line spread over several stores (W11), asked under its own name: join picks the shard, a place or pass names it.

Each shard is a room of its own (`aurora.0`, `aurora.1`, …) with every endpoint under its own path. Under the line's
name people join, ask, claim and wait on the page; organisers see the sum and change all shards. The now-serving
document and the stream exist for each shard only.
"""

import asyncio
import binascii
import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from frontrow.core.errors import FrontrowError, InvalidInput, NotFound
from frontrow.waitingroom.credentials.places import unb64
from frontrow.waitingroom.service.sharding import ShardedRoom, slices
from frontrow.web.endpoints.messages import EndpointRequest, EndpointResponse, json_answer, problem_answer
from frontrow.web.endpoints.room import RoomEndpoints
from frontrow.web.endpoints.room_bodies import idempotency_key, pass_of
from frontrow.web.endpoints.room_control import patch_room, room_body
from frontrow.web.endpoints.room_visitors import Result

log = logging.getLogger("frontrow.web.room")

REBALANCE_S = 5.0


class ShardedEndpoints(RoomEndpoints):
    """The endpoints of lines and of their shards."""

    lines: Mapping[str, ShardedRoom] = {}

    # -- people ------------------------------------------------------------------------------------------------------

    def join(self, event: str, ask: EndpointRequest) -> Result:
        line = self.lines.get(event)
        return super().join(line.names[self._shard(line, ask)] if line else event, ask)

    def status(self, event: str, ask: EndpointRequest) -> Result:
        return super().status(self._of_place(event, ask), ask)

    def claim(self, event: str, ask: EndpointRequest) -> Result:
        return super().claim(self._of_place(event, ask), ask)

    def leave(self, event: str, ask: EndpointRequest) -> Result:
        return super().leave(self._of_place(event, ask), ask)

    def renew(self, event: str, ask: EndpointRequest) -> Result:
        return super().renew(self._of_pass(event, ask), ask)

    def give_back(self, event: str, ask: EndpointRequest) -> Result:
        return super().give_back(self._of_pass(event, ask), ask)

    def heartbeat(self, event: str, ask: EndpointRequest) -> Result:
        return super().heartbeat(self._of_pass(event, ask), ask)

    def left(self, event: str, ask: EndpointRequest) -> Result:
        return super().left(self._of_pass(event, ask), ask)

    def check_pass(self, event: str, ask: EndpointRequest) -> Result:
        return super().check_pass(self._of_pass(event, ask), ask)

    def challenge(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        return super().challenge(self._of_place(event, ask), ask)

    def draw(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        return super().draw(self._of_place(event, ask), ask)

    def message(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        return super().message(self._of_place(event, ask), ask)

    def page(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        """The shard's page for who has a place, the line's for who has not."""
        line = self.lines.get(event)
        if line is None:
            return super().page(event, ask)
        mine = [name for name in line.names if self.pages.keeps_place(name, ask)]
        try:
            return self.pages.page(mine[0] if mine else line.names[0], ask, front="" if mine else event)
        except FrontrowError as error:
            return self.problem("page", error, ask, event)

    def now_serving(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        return self._only_shards(event) or super().now_serving(event, ask)

    def stream_refusal(self, event: str) -> EndpointResponse | None:
        return self._only_shards(event) or super().stream_refusal(event)

    # -- organisers --------------------------------------------------------------------------------------------------

    def show_room(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        line = self.lines.get(event)
        if line is None:
            return super().show_room(event, ask)
        try:
            self._organiser(ask)
            return json_answer(200, line_body(line))
        except FrontrowError as error:
            return self.problem("room", error, ask, event)

    async def _change_room(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        line = self.lines.get(event)
        if line is None:
            return await super()._change_room(event, ask)
        try:
            await self._change_line(line, ask.body)
            return json_answer(200, line_body(line))
        except FrontrowError as error:
            return self.problem("room", error, ask, event)

    async def _change_line(self, line: ShardedRoom, body: bytes) -> None:
        try:
            change: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise InvalidInput(f"the change is not what is expected here: {error}", param="body") from None
        capacity = change.pop("capacity", None)
        if capacity is not None and type(capacity) is not int:
            raise InvalidInput("capacity is a whole number", param="capacity")
        even = [1] * len(line.names)
        parts: list[dict[str, Any]] = [dict(change) for _ in line.names]
        for name in ("rate_per_s", "burst"):
            if type(change.get(name)) is int:
                for part, share in zip(parts, slices(change[name], even), strict=True):
                    part[name] = max(1, share) if name == "burst" else share
        for name, part in zip(line.names, parts, strict=True):
            await patch_room(self.room, name, msgspec.json.encode(part))
        if capacity is not None:
            await line.set_capacity(capacity)

    async def _import_codes(self, event: str, ask: EndpointRequest, lines: list[str]) -> EndpointResponse:
        line = self.lines.get(event)
        answers = [await super(ShardedEndpoints, self)._import_codes(name, ask, lines)
                   for name in (line.names if line else (event,))]  # fmt: skip
        return next((answer for answer in answers if answer.status != 200), answers[0])

    # -- which shard ---------------------------------------------------------------------------------------------------

    def _shard(self, line: ShardedRoom, ask: EndpointRequest) -> int:
        """By code (used once, so always the same shard), person or key; else by address."""
        try:
            body = self._join_body(ask)
            sure = body.code or body.person or idempotency_key(ask)
        except FrontrowError:
            return 0  # refused there with the proper words
        return line.shard_for(sure or "", self._ip(ask))

    def _of_place(self, event: str, ask: EndpointRequest) -> str:
        line = self.lines.get(event)
        if line is None:
            return event
        for name in line.names:
            if ask.header(b"authorization") is None and self.pages.keeps_place(name, ask):
                return name
        return _named(line, (ask.header(b"authorization") or b"")[7:], "evt")

    def _of_pass(self, event: str, ask: EndpointRequest) -> str:
        line = self.lines.get(event)
        if line is None:
            return event
        try:
            return _named(line, pass_of(ask, secure=self.pages.secure).encode(), "aud")
        except FrontrowError:
            return line.names[0]

    def _only_shards(self, event: str) -> EndpointResponse | None:
        line = self.lines.get(event)
        if line is None:
            return None
        told = f"the line of {event} is spread: ask for the event in your place, one of {', '.join(line.names)}"
        return problem_answer(NotFound(told, shards=list(line.names)))


def _named(line: ShardedRoom, token: bytes, claim: str) -> str:
    """The shard a token says it is for; whether that is true is checked by the shard."""
    try:
        name = msgspec.json.decode(unb64(token.split(b".")[1])).get(claim)
    except (IndexError, ValueError, AttributeError, binascii.Error, msgspec.MsgspecError):
        name = None
    return name if name in line.names else line.names[0]


def line_body(line: ShardedRoom) -> dict[str, Any]:
    """The organiser's view of a whole line: sums, and each shard as it is."""
    shards = [room_body(view) for view in line.views()]
    total = dict(shards[0]) | {"event": line.event, "shards": shards, "capacity": line.whole()}
    for name in ("waiting", "active", "unclaimed", "rate_per_s", "burst", "depth_cap"):
        total[name] = sum(shard[name] for shard in shards)
    pairs = [(shard["event"], lane) for shard in shards for lane in shard["lanes"]]
    total["lanes"] = [lane | {"name": f"{event}/{lane['name']}"} for event, lane in pairs]
    return total


async def keep_balanced(lines: Mapping[str, ShardedRoom]) -> None:
    """Move capacity to where people wait, in the process that leads a line's first shard, until cancelled."""
    while True:
        await asyncio.sleep(REBALANCE_S)
        for line in lines.values():
            try:
                if line.views()[0].is_leader:
                    await line.rebalance()
            except FrontrowError as error:
                log.warning("line not rebalanced", extra={"event": line.event, "problem": str(error)})
