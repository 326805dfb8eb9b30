"""The rehearsal: its room slides like the server's, its sums add up, and millions of people take seconds (D6, W14)."""

from collections.abc import Coroutine
from typing import Any

import numpy as np
import pytest

from frontrow.core.errors import InvalidInput
from frontrow.rehearsal.sale_plan import ArrivalShape, Outage, SalePlan
from frontrow.rehearsal.simulated_room import SimulatedRoom
from frontrow.rehearsal.simulation import OPENED_AT_US, Simulation
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, RoomState, VisitResult
from frontrow.waitingroom.ports import JoinCommand, PlaceKey, Recovered, VisitCommand, VisitOp
from frontrow.waitingroom.service.leader import Leader
from frontrow.waitingroom.stores.memory import MemoryRoomStore

EVENT = "rehearsed"
SMALL = SalePlan(
    room=RoomConfig(capacity=40, window_size=15, rate_per_s=20, burst=30, grace_us=60_000_000),
    seats=300, people=900, before_s=60.0, after_s=120.0, patience_s=240.0, browse_s=8.0, payment_s=10.0, hold_s=60.0,
)  # fmt: skip


def finish(step: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that never waits."""
    try:
        step.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the memory store never waits")


class NoAudit:
    async def append(self, event: str, rows: object) -> None:
        """Keeps nothing."""

    async def windows(self, event: str) -> tuple[()]:
        return ()


class TwinRoom:
    """The rehearsal's room and a real store with its leader, told the same and compared after each slide."""

    def __init__(self, room: SimulatedRoom, config: RoomConfig, drawn: int) -> None:
        self.room, self.clock = room, ManualClock(OPENED_AT_US)
        self.store = MemoryRoomStore(self.clock)
        self.leader = Leader(self.store, NoAudit(), leadership_ttl_us=10**12)  # type: ignore[arg-type]
        lanes = (LaneState(issued=drawn, drawn=drawn),)
        state = RoomState(1, Phase.OPEN, config, lanes, bucket_milli=config.burst * 1000)
        finish(self.store.create(EVENT, Recovered(state)))
        self.inside: list[int] = []
        self.outside: list[int] = []
        self.real_issued = drawn
        self.slides = 0

    def __getattr__(self, name):
        return getattr(self.room, name)

    def __setattr__(self, name, value):
        if name == "issued":
            self.room.issued = value
        object.__setattr__(self, name, value)

    def still_active(self, positions):
        return self.room.still_active(positions)

    def claim(self, first_time, knockers):
        entered = self.room.claim(first_time, knockers)
        assert len(self.outside) == knockers
        came_in, ring = [], finish(self.store.snapshot(EVENT)).ring
        for position in (*self.outside, *first_time.tolist()):
            number = next(slide.number for slide in ring if slide.his[0] >= position) if ring else 0
            place = PlaceKey(0, 1, position)
            [reply] = finish(self.store.visit(EVENT, [VisitCommand(VisitOp.CLAIM, place, 3_000, slide_no=number)]))
            assert reply.result in (VisitResult.OK, VisitResult.FULL)
            if reply.result is VisitResult.OK:
                came_in.append(position)
        assert len(came_in) == entered
        everybody = [*self.outside, *first_time.tolist()]
        assert came_in == everybody[:entered]
        self.inside += came_in
        self.outside = everybody[entered:]
        return entered

    def leave(self, people):
        self.room.leave(people)
        for _ in range(people):
            command = VisitCommand(VisitOp.GIVE_BACK, PlaceKey(0, 1, self.inside.pop(0)))
            finish(self.store.visit(EVENT, [command]))

    def slide(self, now_us):
        self.clock.now_us = now_us
        finish(self.store.join(EVENT, [JoinCommand(0)] * (self.room.issued - self.real_issued)))
        self.real_issued = self.room.issued
        admitted = self.room.slide(now_us)
        turn = finish(self.leader.take_turn(EVENT, finish(self.store.snapshot(EVENT))))
        real = finish(self.store.snapshot(EVENT))
        assert (real.lanes[0].hi, real.active, real.knocking) == (self.room.hi, self.room.active, self.room.knocking)
        assert turn.admitted == admitted
        self.slides += 1
        return admitted


@pytest.mark.parametrize("shape", ArrivalShape.ALL)
def test_d6_the_rehearsed_room_slides_exactly_like_the_servers(shape):
    plan = SMALL.changed(arrivals=shape, bots=0.02)
    simulation = Simulation(plan)
    twin = simulation.room = TwinRoom(simulation.room, plan.room, simulation.crowd.drawn)
    simulation.run()
    assert twin.slides > 40
    assert twin.room.hi > 100


@pytest.mark.parametrize("shape", ArrivalShape.ALL)
def test_d6_every_seat_and_every_person_is_accounted_for(shape):
    plan = SMALL.changed(arrivals=shape, people=3_000, bots=0.2)
    simulation = Simulation(plan)
    history = simulation.run()
    assert simulation.free + simulation.held + simulation.sold == plan.seats
    assert history.sold[-1] == plan.seats
    assert history.sold_out_s is not None
    assert history.holds >= history.bookings + history.payments_failed
    assert max(history.active) <= plan.room.capacity
    assert all(a <= b for a, b in zip(history.sold, history.sold[1:], strict=False)), "sold only grows"
    assert history.admitted[-1] <= history.joined[-1] <= plan.people
    assert min(history.waiting) >= 0


def test_d6_outages_stop_admission_and_delay_payments():
    quiet = Simulation(SMALL).run()
    stopped = Simulation(SMALL.changed(server_outage=Outage(20, 30))).run()
    assert len({n for t, n in zip(stopped.time_s, stopped.admitted, strict=True) if 20 <= t < 50}) == 1
    unpaid = Simulation(SMALL.changed(provider_outage=Outage(10, 40))).run()
    during = [n for t, n in zip(unpaid.time_s, unpaid.sold, strict=True) if 12 <= t < 50]
    assert during[0] == during[-1], "nothing is sold while the provider is away"
    assert unpaid.sold[-1] == quiet.sold[-1] == SMALL.seats


def test_d6_the_same_seed_is_the_same_sale_and_bots_get_no_more_than_their_identities():
    first, again = (Simulation(SMALL.changed(bots=0.3, arrivals=ArrivalShape.BOTS)) for _ in range(2))
    assert first.run().sold == again.run().sold
    stopped = Simulation(SMALL.changed(bots=0.3, bots_stopped=1.0, arrivals=ArrivalShape.BOTS))
    assert stopped.run().bot_seats == 0
    assert first.history.bot_seats > 0


def test_d6_a_crowd_of_many_is_arrays_not_objects():
    simulation = Simulation(SMALL.changed(people=200_000))
    simulation.run()
    crowd = simulation.crowd
    arrays = (crowd.arrives_s, crowd.is_bot, crowd.leaves_line_s, crowd.line)
    assert sum(array.nbytes for array in arrays) == 13 * 200_000, "13 bytes a person"
    assert np.all(np.diff(crowd.arrives_s) >= 0)
    assert sorted(crowd.line.tolist()) == list(range(200_000)), "everybody has one place"


@pytest.mark.parametrize(
    ("table", "param"),
    [
        ({"people": 0}, "people"), ({"arrivals": "flood"}, "arrivals"), ({"guests": 3}, "guests"),
        ({"group_weights": []}, "group_weights"), ({"provider_outage": 3}, "provider_outage"),
        ({"bots": "many"}, "bots"),
    ],
)  # fmt: skip
def test_d6_a_plan_that_makes_no_sense_is_refused_by_name(table, param):
    with pytest.raises(InvalidInput) as refused:
        SalePlan.from_dict(table)
    assert refused.value.param == param


def test_a_closed_page_keeps_its_place_in_the_shop_for_a_while_as_on_the_server():
    def rehearse(leave_s: int) -> Simulation:
        room = RoomConfig(capacity=20, window_size=40, leave_s=leave_s)
        simulation = Simulation(SMALL.changed(room=room, people=200, leave_without_buying=1.0))
        simulation.run()
        return simulation

    short, long = rehearse(1), rehearse(30)
    for simulation, leave_s in ((short, 1), (long, 30)):
        browsing_s = simulation.history.visit_s / simulation.history.visits - leave_s
        assert 8 < browsing_s < 12, "the rest of a visit is looking around"
    assert long.history.time_s[-1] > short.history.time_s[-1] + 60, "with fewer free places the line moves slower"
