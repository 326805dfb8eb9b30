"""Rebuilding a room whose store lost its memory, wholly (wiped) or partly (a failover to a replica that lagged).

What the audit knows and what this process has seen are raised to their maximum, the epoch goes up by one, and the room
is written if nobody else did first; whoever comes second only raises the counters to what they have seen. Positions
issued twice by such a loss differ in their epoch, so both places stay good, and claims are kept for each epoch.
"""

from collections.abc import Sequence
from dataclasses import replace

from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.ports import Audit, Recovered, RoomRow, RoomStore

MAX_TRIES = 3


def raised(lanes: Sequence[LaneState], seen: Sequence[LaneState]) -> tuple[LaneState, ...]:
    """Each counter at its maximum of both."""
    both = zip(lanes, tuple(seen) + (LaneState(),) * (len(lanes) - len(seen)), strict=False)
    return tuple(
        LaneState(max(a.issued, b.issued), max(a.hi, b.hi), max(a.lo, b.lo), max(a.drawn, b.drawn)) for a, b in both
    )


def went_back(state: RoomState, seen: RoomState, issued: Sequence[int]) -> bool:
    """Whether the store shows less than it has shown before."""
    if state.epoch != seen.epoch:
        return state.epoch < seen.epoch
    fewer = any(lane.issued < last for lane, last in zip(state.lanes, issued, strict=False))
    return state.slide_no < seen.slide_no or fewer


async def recover(
    store: RoomStore, audit: Audit, event: str, seen: RoomState | None, issued: Sequence[int], now_s: int
) -> RoomState | None:
    """The room, rebuilt if need be; None if neither audit nor process ever knew it."""
    for _ in range(MAX_TRIES):
        state = await store.snapshot(event)
        if state is not None and seen is not None and went_back(state, seen, issued):
            await store.forget(event, state.epoch)
            continue
        if state is None:
            known = await _known(audit, event, seen, now_s)
            if known is None:
                return None
            await store.create(event, known)
            await audit.append(event, [RoomRow(known.state, now_s * 1_000_000)])
        if seen is not None:
            await store.lift(event, raised([LaneState(last) for last in issued], seen.lanes))
        state = await store.snapshot(event)
        if state is not None:
            return state
    return None


async def _known(audit: Audit, event: str, seen: RoomState | None, now_s: int) -> Recovered | None:
    found = await audit.recover(event, now_s)
    if found is None and seen is None:
        return None
    base = found.state if found is not None else seen
    assert base is not None
    epoch = max(base.epoch, seen.epoch if seen else 0) + 1
    lanes = raised(base.lanes, seen.lanes) if seen else base.lanes
    fresh = replace(base, epoch=epoch, lanes=lanes, leader="", leader_until_us=0, slid_at_us=0, bucket_at_us=0)
    return replace(found, state=fresh) if found is not None else Recovered(fresh)
