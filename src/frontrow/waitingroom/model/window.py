"""Pure: the window (lo, hi) of a lane, the state that it gives a place, and how slides move it.

Places ≤ lo are expired, ≤ hi active, above waiting; hi and lo never fall. A slide moves `hi`. `lo` follows by count
(the last k slides are active) or by time (each slide is active for the grace period).
"""

from dataclasses import dataclass
from enum import StrEnum


class PlaceState(StrEnum):
    EXPIRED = "expired"
    ACTIVE = "active"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Window:
    """One lane's window."""

    lo: int = 0
    hi: int = 0

    def state_of(self, position: int) -> PlaceState:
        """The state of a place, from its position alone."""
        if position <= self.lo:
            return PlaceState.EXPIRED
        return PlaceState.ACTIVE if position <= self.hi else PlaceState.WAITING

    def ahead_of(self, position: int) -> int:
        """How many places are served before this one."""
        return max(0, position - self.hi - 1)


@dataclass(frozen=True, slots=True)
class Slide:
    """One slide in the ring: its number, when, where each lane's `hi` came to, how many places it admitted."""

    number: int
    at_us: int
    his: tuple[int, ...]
    size: int


RING_SLIDES = 64


def push(ring: tuple[Slide, ...], slide: Slide, *, grace_us: int) -> tuple[Slide, ...]:
    """The ring with one more slide. Slides closer together than a 32nd of the grace are merged, so that the ring always
    covers the whole grace period. The older people of a merged slide gain at most that time."""
    if len(ring) >= 2 and ring[-1].at_us - ring[-2].at_us < grace_us // 32:
        last = ring[-1]
        return (*ring[:-1], Slide(last.number, slide.at_us, slide.his, last.size + slide.size))
    return (*ring, slide)[-RING_SLIDES:]


def lo_by_count(ring: tuple[Slide, ...], active_windows: int, los: tuple[int, ...]) -> tuple[int, ...]:
    """The new lower edges when the last `active_windows` slides stay active."""
    if len(ring) <= active_windows:
        return los
    return tuple(max(lo, hi) for lo, hi in zip(los, ring[-active_windows - 1].his, strict=True))


def lo_by_time(ring: tuple[Slide, ...], now_us: int, grace_us: int, los: tuple[int, ...]) -> tuple[int, ...]:
    """The new lower edges when each slide stays active until `grace_us` after it (half-open)."""
    for slide in reversed(ring):
        if slide.at_us + grace_us <= now_us:
            return tuple(max(lo, hi) for lo, hi in zip(los, slide.his, strict=True))
    return los
