"""The state of a room in its store: a few integers per lane. And the results of visits and slides. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.window import Slide, Window


@dataclass(frozen=True, slots=True)
class LaneState:
    """One lane's counters: the last position issued and the window; `drawn` is the size of its pre-queue draw."""

    issued: int = 0
    hi: int = 0
    lo: int = 0
    drawn: int = 0

    @property
    def window(self) -> Window:
        return Window(self.lo, self.hi)

    @property
    def waiting(self) -> int:
        return max(0, self.issued - self.hi)


@dataclass(frozen=True, slots=True)
class RoomState:
    """One room in its store. Its size does not grow with the number of people waiting."""

    epoch: int
    phase: Phase
    config: RoomConfig
    lanes: tuple[LaneState, ...]
    active: int = 0
    knocking: int = 0  # people with an active place who found the shop full in the last half minute
    released: int = 0  # passes that ended (given back or expired) so far
    ended_no: int = 0  # visits that ended before their pass expires, so far; `RoomStore.ended` lists them
    kept: int = 0  # visits that a hold keeps
    admitted_at_idle_end: int = 0  # how many had been admitted when a visit last ended because it was idle
    slide_no: int = 0
    slid_at_us: int = 0
    held_at_us: int = 0  # since when the phase is not OPEN; 0 while it is
    bucket_milli: int = 0
    bucket_at_us: int = 0
    ring: tuple[Slide, ...] = ()
    took: Mapping[int, int] = field(default_factory=dict)  # slide number -> places of it claimed
    note: str = ""  # the leader's measurements, opaque to the store
    beacon: str = ""
    message_no: int = 0
    leader: str = ""
    leader_until_us: int = 0
    now_us: int = 0  # the store's clock when this was read

    @property
    def admitted(self) -> int:
        """How many people have been admitted so far, over all lanes."""
        return sum(lane.hi for lane in self.lanes)

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for a place in the shop, so that idle visits end."""
        return self.phase is Phase.OPEN and bool(self.knocking or any(lane.waiting for lane in self.lanes))


def windows_fell(state: RoomState, seen: RoomState) -> bool:
    """Whether a window is behind where it was seen. Windows never fall: the store of such a state has lost slides. Its
    slide number says nothing, because a leader that never saw the lost slides makes others with the same numbers."""
    both = zip(state.lanes, seen.lanes, strict=False)
    return any(now.hi < before.hi or now.lo < before.lo for now, before in both)


def raise_windows(lanes: Sequence[LaneState], windows: Sequence[Window]) -> tuple[LaneState, ...]:
    """The lanes with each window at the further of both. Windows of lanes that are not known here are left out."""
    given = tuple(windows)[: len(lanes)] + (Window(),) * (len(lanes) - len(windows))
    return tuple(
        LaneState(max(lane.issued, window.hi), max(lane.hi, window.hi), max(lane.lo, window.lo), lane.drawn)
        for lane, window in zip(lanes, given, strict=True)
    )


class VisitResult(StrEnum):
    OK = "ok"
    REPEATED = "repeated"  # the same claim again, or a renewal already made; `expires_s` is unchanged
    ALREADY = "already"  # claimed by another call, or given back before
    WAITING = "waiting"
    EXPIRED = "expired"
    FULL = "full"
    HELD = "held"
    ENDED = "ended"  # there is no live visit


@dataclass(frozen=True, slots=True)
class SlidePlan:
    """The leader's decision from a snapshot. The store applies it only if the slide number and phase are unchanged. It
    uses up `due` intervals, whether or not anybody is admitted."""

    expected_slide_no: int
    due: int
    his: tuple[int, ...]
    los: tuple[int, ...]
    ring: tuple[Slide, ...]
    bucket_milli: int
    bucket_at_us: int
    note: str
    admitted: int = 0
