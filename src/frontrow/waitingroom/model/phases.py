"""Pure: changes of a room's settings and phase."""

from dataclasses import replace

from frontrow.core.errors import InvalidInput, Refused
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.model.window import Slide


def change_config(state: RoomState, config: RoomConfig) -> RoomState:
    """The state with new settings. Lanes can be added but not removed."""
    more = len(config.lanes) - len(state.lanes)
    if more < 0:
        raise InvalidInput("a lane with people in it cannot be taken away", param="lanes")
    changed = state.message_no + (config.message != state.config.message)
    lanes = state.lanes + (LaneState(),) * more
    ring = tuple(replace(slide, his=slide.his + (0,) * more) for slide in state.ring)
    return replace(state, config=config, lanes=lanes, ring=ring, message_no=changed)


def change_phase(state: RoomState, phase: Phase, now_us: int, beacon: str) -> RoomState:
    """The state in another phase. Leaving the pre-queue fixes the draw. Reopening gives the grace time back.

    A pre-queue begins only in a closed room where nobody has a place yet, because its draw would move places.
    """
    if phase is Phase.PREQUEUE and (state.phase is not Phase.CLOSED or any(lane.issued for lane in state.lanes)):
        raise Refused("a pre-queue begins in a closed room where nobody has a place yet")
    if state.phase is Phase.PREQUEUE:
        state = replace(state, lanes=tuple(replace(x, drawn=x.issued) for x in state.lanes), beacon=beacon)
    if phase is not Phase.OPEN:
        return replace(state, phase=phase, held_at_us=state.held_at_us or now_us)
    held_us = now_us - state.held_at_us if state.held_at_us else 0
    ring = tuple(Slide(x.number, x.at_us + held_us, x.his, x.size) for x in state.ring)
    start_us = max(state.slid_at_us, now_us - state.config.interval_us)  # a slide is due at once, but never two
    return replace(state, phase=phase, held_at_us=0, ring=ring, slid_at_us=start_us, bucket_at_us=now_us)
