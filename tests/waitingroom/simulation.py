"""A sale in virtual time: people who come, come late, never come, finish, or leave without a word; by seed.

Drives the real leader, plan and memory store; only the clock and the people are made up.
"""

import heapq
import random
from dataclasses import dataclass, field

from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, RoomState, VisitResult
from frontrow.waitingroom.model.window import Window
from frontrow.waitingroom.ports import AuditRow, JoinCommand, PlaceKey, Recovered, VisitCommand, VisitOp
from frontrow.waitingroom.service.leader import Leader
from frontrow.waitingroom.stores.memory import MemoryRoomStore

EVENT = "sim"


class NoAudit:
    async def append(self, event: str, rows: "list[AuditRow]") -> None: ...

    async def recover(self, event: str, now_s: int) -> None:
        return None

    async def windows(self, event: str) -> list[Window]:
        return []

    async def imported_counts(self, event: str) -> dict[int, int]:
        return {}

    async def used_codes(self, event: str) -> int:
        return 0

    async def imported_lane(self, event: str, digest: str) -> None:
        return None

    async def aclose(self) -> None: ...


@dataclass
class Behaviour:
    """Shares of people and times in seconds."""

    no_show: float = 0.40
    late: float = 0.10  # come back long after their turn, still inside the grace
    abandon: float = 0.10  # claim, then leave without giving the pass back
    prompt_s: float = 5.0
    visit_s: float = 180.0
    late_s: tuple[float, float] = (60.0, 240.0)


@dataclass
class Told:
    """What was measured."""

    peak: int = 0
    utilisation: float = 0.0
    claims: int = 0
    full: int = 0
    expired: int = 0
    series: list[int] = field(default_factory=list)


class Sale:
    """One simulated sale; `run` to the end."""

    def __init__(self, config: RoomConfig, behaviour: Behaviour, seed: int, people: int) -> None:
        self.clock = ManualClock()
        self.store = MemoryRoomStore(self.clock)
        self.leader = Leader(self.store, NoAudit(), owner="sim")  # type: ignore[arg-type]
        self.config, self.behaviour, self.people = config, behaviour, people
        self.random = random.Random(seed)
        self.agenda: list[tuple[int, int, str, int]] = []
        self.count = 0
        self.told = Told()
        self.cut: dict[int, int] = {}  # at second -> new capacity

    def later(self, seconds: float, what: str, position: int) -> None:
        self.count += 1
        heapq.heappush(self.agenda, (self.clock() + int(seconds * 1e6), self.count, what, position))

    async def run(self, seconds: int, warm_up_s: int) -> Told:
        lanes = (LaneState(),) * len(self.config.lanes)
        fresh = RoomState(1, Phase.OPEN, self.config, lanes, bucket_milli=self.config.burst * 1000)
        await self.store.create(EVENT, Recovered(fresh))
        await self.store.join(EVENT, [JoinCommand(0)] * self.people)
        start_us, admitted, used = self.clock(), 0, 0
        for second in range(seconds):
            if second in self.cut:
                await self.store.configure(EVENT, config=self.config.changed(capacity=self.cut[second]))
            await self.until(start_us + second * 1_000_000)
            state = await self.store.snapshot(EVENT)
            assert state is not None
            await self.leader.take_turn(EVENT, state)
            state = await self.store.snapshot(EVENT)
            assert state is not None
            for position in range(admitted + 1, state.lanes[0].hi + 1):
                self.turn_of(position)
            admitted = state.lanes[0].hi
            self.told.peak = max(self.told.peak, state.active)
            self.told.series.append(state.active)
            if second >= warm_up_s:
                used += state.active
        self.told.utilisation = used / ((seconds - warm_up_s) * self.config.capacity)
        return self.told

    def turn_of(self, position: int) -> None:
        """A place has become active: what will its person do?"""
        kind = self.random.random()
        if kind < self.behaviour.no_show:
            return
        if kind < self.behaviour.no_show + self.behaviour.late:
            self.later(self.random.uniform(*self.behaviour.late_s), "claim", position)
        else:
            self.later(self.random.expovariate(1 / self.behaviour.prompt_s), "claim", position)

    async def until(self, at_us: int) -> None:
        while self.agenda and self.agenda[0][0] <= at_us:
            when, _, what, position = heapq.heappop(self.agenda)
            self.clock.now_us = max(self.clock.now_us, when)
            await self.act(what, position)
        self.clock.now_us = max(self.clock.now_us, at_us)

    async def act(self, what: str, position: int) -> None:
        key = PlaceKey(0, 1, position)
        if what == "leave":
            await self.store.visit(EVENT, [VisitCommand(VisitOp.GIVE_BACK, key)])
            return
        state = await self.store.snapshot(EVENT)
        assert state is not None
        slide_no = next((s.number for s in state.ring if position <= s.his[0]), 0)
        ask = VisitCommand(VisitOp.CLAIM, key, self.config.pass_ttl_s, slide_no=slide_no)
        (answer,) = await self.store.visit(EVENT, [ask])
        self.told.peak = max(self.told.peak, answer.active)
        if answer.result is VisitResult.OK:
            self.told.claims += 1
            if self.random.random() >= self.behaviour.abandon:
                self.later(self.random.expovariate(1 / self.behaviour.visit_s), "leave", position)
        elif answer.result is VisitResult.FULL:
            self.told.full += 1
            self.later(5.0, "claim", position)
        elif answer.result is VisitResult.EXPIRED:
            self.told.expired += 1
