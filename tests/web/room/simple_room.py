"""A waiting room small enough to read in a minute, for tests of the servers: the window moves only when told to."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontrow.shared.coalescer import ResultSlot
from frontrow.waitingroom.credentials.now_serving import NowServing, document
from frontrow.waitingroom.credentials.passes import Pass, PassSigner, new_key
from frontrow.waitingroom.credentials.places import Place, PlaceSigner
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.errors import AlreadyClaimed, NotYourTurn, PassEnded, RoomOverflow, RoomUnknown
from frontrow.waitingroom.model.results import ClaimedPass, Joined, PlaceStatus, RoomView
from frontrow.waitingroom.model.room_state import LaneState, RoomState, VisitResult
from frontrow.waitingroom.model.wait_estimate import Reason, Wait, estimate
from frontrow.waitingroom.model.window import PlaceState
from frontrow.waitingroom.ports import PlaceKey, VisitReply
from frontrow.waitingroom.service.room import WaitingRoom

RSA = new_key()
NOW_S = 1_800_000_000


class SimpleRoom(WaitingRoom):
    """One event, one lane. One object plays all parts of a room."""

    def __init__(self, event: str = "aurora", config: RoomConfig | None = None) -> None:
        self.joins = self.statuses = self.visits = self.control = self.loops = self.cache = self
        self.event = event
        self.counts = Counter()
        self.places = PlaceSigner([b"s" * 32])
        self.passes = PassSigner([RSA])
        self.state = RoomState(1, Phase.OPEN, config or RoomConfig(), (LaneState(),))
        self.keys: dict[str, Joined] = {}
        self.claimed: dict[int, str] = {}
        self.ended: set[str] = set()
        self.heard: set[str] = set()
        self.listeners: list[Callable[[NowServing], None]] = []
        self.document = self._make()

    def _make(self) -> NowServing:
        key = Ed25519PrivateKey.from_private_bytes(bytes(32))
        state = self.state
        reason = Reason.PAUSED if state.phase is Phase.PAUSED else Reason.NONE
        return document(key, self.event, 1, state.phase, state.lanes, [60_000], reason, NOW_S, state.message_no)

    def change(self, **changes: Any) -> None:
        self.state = dataclasses.replace(self.state, **changes)
        self.document = self._make()
        for listener in list(self.listeners):
            listener(self.document)

    def move(self, hi: int, lo: int = 0) -> None:
        self.change(lanes=(dataclasses.replace(self.state.lanes[0], hi=hi, lo=lo),))

    def _known(self, event: str | None) -> None:
        if event is not None and event != self.event:
            raise RoomUnknown(f"there is no room for {event!r} here")

    async def join(
        self,
        event: str,
        person: str = "",
        ip: str = "",
        code: str | None = None,
        idempotency_key: str | None = None,
        cnf: str | None = None,
    ) -> Joined:
        self._known(event)
        if idempotency_key in self.keys:
            return self.keys[idempotency_key]
        lane, cap = self.state.lanes[0], self.state.config.depth_cap
        if cap and lane.waiting >= cap:
            raise RoomOverflow("too many people are waiting; try later", retry_after_s=60)
        position = lane.issued + 1
        self.change(lanes=(dataclasses.replace(lane, issued=position),))
        place = self.places.mint(Place(event, 0, 1, position, NOW_S, person, cnf or ""))
        joined = Joined(place, self.of(place, event))
        if idempotency_key:
            self.keys[idempotency_key] = joined
        return joined

    def join_into(self, event: str, slot: ResultSlot, person: str = "", idempotency_key: str | None = None) -> None:
        def tell(task: "asyncio.Task[Joined]") -> None:
            error = task.exception()
            slot.set_result(task.result()) if error is None else slot.set_exception(error)

        self._known(event)
        join = self.join(event, person, idempotency_key=idempotency_key)
        asyncio.get_running_loop().create_task(join).add_done_callback(tell)

    def joined_json(self, event: str, answer: Any, person: str) -> bytes:
        return b'{"place":"' + answer.place_jwt.encode() + b'",' + msgspec.json.encode(answer.status)[1:]

    def json_of(self, place_jwt: str, event: str | None = None) -> bytes:
        return msgspec.json.encode(self.of(place_jwt, event))

    def of(self, place_jwt: str, event: str | None = None) -> PlaceStatus:
        self._known(event)
        place = self.places.verify(place_jwt, event)
        window = self.state.lanes[0].window
        state, ahead = window.state_of(place.position), window.ahead_of(place.position)
        wait = estimate(ahead, 60_000, Reason.NONE) if state is PlaceState.WAITING else Wait(0, 0)
        return PlaceStatus(self.event, state, self.state.phase, "general", place.position, ahead, wait, 7, 1, 0)

    async def claim(
        self, place_jwt: str, event: str | None = None, idempotency_key: str | None = None, proof: str | None = None
    ) -> ClaimedPass:
        told = self.of(place_jwt, event)
        if told.state is not PlaceState.ACTIVE:
            raise NotYourTurn("it is not your turn yet")
        assert told.position is not None
        if told.position in self.claimed and (not idempotency_key or self.claimed[told.position] != idempotency_key):
            raise AlreadyClaimed("this place was used")
        self.claimed[told.position] = idempotency_key or ""
        visit = Pass(
            event=self.event,
            person=f"p{told.position}",
            place=PlaceKey(0, 1, told.position),
            issued_s=NOW_S,
            expires_s=NOW_S + 900,
            since_s=NOW_S,
        )
        return ClaimedPass(self.passes.mint(visit), NOW_S + 900)

    async def renew(self, pass_jwt: str, event: str | None = None) -> ClaimedPass:
        visit = self.check_pass(pass_jwt, event)
        return ClaimedPass(
            self.passes.mint(dataclasses.replace(visit, expires_s=visit.expires_s + 900)), visit.expires_s + 900
        )

    async def give_back(self, pass_jwt: str, event: str | None = None) -> bool:
        self.passes.verify(pass_jwt, event, NOW_S)
        fresh = pass_jwt not in self.ended
        self.ended.add(pass_jwt)
        return fresh

    async def heartbeat(self, pass_jwt: str, event: str | None = None) -> VisitReply:
        visit = self.check_pass(pass_jwt, event)
        return VisitReply(VisitResult.OK, visit.expires_s, 1, NOW_S + 120)

    async def look(self, pass_jwt: str, event: str | None = None) -> VisitReply:
        return await self.heartbeat(pass_jwt, event)

    async def leave_shop(self, pass_jwt: str, event: str | None = None) -> VisitReply:
        visit = self.check_pass(pass_jwt, event)
        return VisitReply(VisitResult.OK, visit.expires_s, 1, NOW_S + 10)

    def hear(self, visit_id: str) -> None:
        self.heard.add(visit_id)

    def clock(self) -> int:
        return NOW_S * 1_000_000

    def check_pass(self, pass_jwt: str, event: str | None = None) -> Pass:
        visit = self.passes.verify(pass_jwt, event, NOW_S)
        if pass_jwt in self.ended:
            raise PassEnded("this visit is over")
        return visit

    def find(self, event: str) -> "SimpleRoom":
        self._known(event)
        return self

    def now_serving(self) -> NowServing:
        return self.document

    def subscribe(self, listener: Callable[[NowServing], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def jwks(self) -> dict[str, Any]:
        return self.passes.jwks()

    async def pause(self, event: str) -> RoomView:
        self.change(phase=Phase.PAUSED)
        return self.view(event)

    async def resume(self, event: str) -> RoomView:
        self.change(phase=Phase.OPEN)
        return self.view(event)

    async def set_rate(self, event: str, rate_per_s: int, burst: int | None = None) -> RoomView:
        self.change(config=self.state.config.changed(rate_per_s=rate_per_s))
        return self.view(event)

    async def set_capacity(self, event: str, capacity: int) -> RoomView:
        self.change(config=self.state.config.changed(capacity=capacity))
        return self.view(event)

    async def set_message(self, event: str, message: str) -> RoomView:
        self.change(config=self.state.config.changed(message=message), message_no=self.state.message_no + 1)
        return self.view(event)

    def view(self, event: str) -> RoomView:
        self._known(event)
        return RoomView(event, self.state, self.state.lanes[0].waiting, 0, 1.0, (60_000,), "me", True)

    def events(self) -> tuple[str, ...]:
        return (self.event,)

    async def start(self) -> None:
        pass

    async def aclose(self) -> None:
        pass
