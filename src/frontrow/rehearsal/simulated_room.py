"""The waiting room of a rehearsal: the counters a store would keep, moved by the server's own `plan_slide`.

People come as arrays of positions, so a slide of thousands costs one call. A test replays small sales against the real
store and compares every slide.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from frontrow.waitingroom.model.admission import plan_slide, slide_bounds
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.measurements import read_note
from frontrow.waitingroom.model.room_state import LaneState, RoomState

Positions = NDArray[np.int64]
BOUNDS = ("window", "rate", "capacity", "line")  # what can limit a slide


class SimulatedRoom:
    """One room with one lane."""

    def __init__(self, config: RoomConfig, opened_at_us: int, drawn: int = 0) -> None:
        self._state = RoomState(
            epoch=1,
            phase=Phase.OPEN,
            config=config,
            lanes=(LaneState(issued=drawn, drawn=drawn),),
            slid_at_us=opened_at_us - config.interval_us,
            bucket_milli=config.burst * 1000,
            bucket_at_us=opened_at_us,
        )
        self.issued = drawn
        self.active = 0
        self.knocking = 0
        self.released = 0
        self.bound = ""  # what limited the last slide
        self._claimed: dict[int, int] = {}  # slide number -> places of it claimed

    @property
    def hi(self) -> int:
        return self._state.lanes[0].hi

    @property
    def free(self) -> int:
        """How many more people fit into the shop."""
        return max(0, self._state.config.capacity - self.active)

    def claim(self, first_time: Positions, knockers: int) -> int:
        """Let people in: those who found the shop full before, then new ones. Returns how many came in."""
        if first_time.size:
            his = np.array([slide.his[0] for slide in self._state.ring], dtype=np.int64)
            numbers = np.array([slide.number for slide in self._state.ring], dtype=np.int64)
            slides, counts = np.unique(numbers[np.searchsorted(his, first_time)], return_counts=True)
            for number, count in zip(slides.tolist(), counts.tolist(), strict=True):
                self._claimed[number] = self._claimed.get(number, 0) + count
        wanting = int(first_time.size) + knockers
        entered = min(wanting, self.free)
        self.active += entered
        self.knocking = wanting - entered
        return entered

    def still_active(self, positions: Positions) -> NDArray[np.bool_]:
        """Which of these places have not expired."""
        active: NDArray[np.bool_] = positions > self._state.lanes[0].lo
        return active

    def leave(self, people: int) -> None:
        """So many visits end."""
        self.active -= people
        self.released += people

    def slide(self, now_us: int) -> int:
        """Slide the window if that is due. Returns how many people were admitted."""
        state = replace(
            self._state,
            lanes=(replace(self._state.lanes[0], issued=self.issued),),
            active=self.active,
            knocking=self.knocking,
            released=self.released,
            took=self._claimed,
            now_us=now_us,
        )
        plan = plan_slide(state)
        if plan is None:
            return 0
        self.bound = _name_bound(state, min(plan.due, state.config.most_windows))
        self._state = replace(
            state,
            lanes=(replace(state.lanes[0], hi=plan.his[0], lo=plan.los[0]),),
            ring=plan.ring,
            note=plan.note,
            slide_no=state.slide_no + 1,
            slid_at_us=state.slid_at_us + plan.due * state.config.interval_us,
            bucket_milli=plan.bucket_milli,
            bucket_at_us=plan.bucket_at_us,
        )
        oldest = plan.ring[0].number if plan.ring else 0
        self._claimed = {number: count for number, count in self._claimed.items() if number >= oldest}
        return plan.admitted


def _name_bound(state: RoomState, due: int) -> str:
    bounds = slide_bounds(state, read_note(state.note), due)
    values = (bounds.due, bounds.permits, bounds.free, bounds.waiting)
    return BOUNDS[values.index(min(values))]
