"""Pure: the status of any place of a room, from one state of the room. As a value and as JSON."""

import msgspec

from frontrow.waitingroom.model.config import Phase
from frontrow.waitingroom.model.poll_interval import LEAST_S, poll_after_s
from frontrow.waitingroom.model.results import PlaceStatus
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.model.wait_estimate import Reason, Wait, band_s, estimate
from frontrow.waitingroom.model.window import PlaceState

NO_WAIT, UNKNOWN = Wait(0, 0), Wait(None, None)
_encode = msgspec.json.Encoder().encode


class RoomStatuses:
    """The statuses of all places of one room in one state. `rates_milli` are the shown admissions per 1000 seconds of
    each lane, `reason` says why a wait may have risen."""

    def __init__(self, event: str, state: RoomState, rates_milli: tuple[int, ...], reason: Reason) -> None:
        self._event = event
        self._state = state
        self._rates_milli = rates_milli
        self._reason = reason
        self._is_held = reason in (Reason.PAUSED, Reason.HELD)
        self._lane_names = tuple(rule.name for rule in state.config.lanes)
        self._forms = [self._forms_of(index) for index in range(len(state.lanes))]

    def status(self, lane_no: int, position: int) -> PlaceStatus:
        """The status of the place with this position."""
        state, lane = self._state, self._state.lanes[lane_no]
        if state.phase is Phase.PREQUEUE:
            return self._make_status(lane_no, PlaceState.WAITING, None, None, UNKNOWN, poll_after_s(None))
        place_state, ahead = lane.window.state_of(position), lane.window.ahead_of(position)
        if place_state is not PlaceState.WAITING:
            return self._make_status(lane_no, place_state, position, ahead, NO_WAIT, poll_after_s(0))
        wait = estimate(ahead, self._rates_milli[lane_no], self._reason)
        poll_s = LEAST_S if wait.high_s is None and self._is_called_next(lane, ahead) else poll_after_s(wait.high_s)
        return self._make_status(lane_no, place_state, position, ahead, wait, poll_s)

    def status_json(self, lane_no: int, position: int) -> bytes:
        """`status` as JSON, byte for byte, at a third of the cost: only the numbers are filled into a prepared form."""
        if self._state.phase is Phase.PREQUEUE:
            return _encode(self.status(lane_no, position))
        lane = self._state.lanes[lane_no]
        estimated, not_estimated, called_next, active, expired = self._forms[lane_no]
        if position <= lane.hi:
            return (expired if position <= lane.lo else active) % position
        ahead = position - lane.hi - 1
        rate_milli = self._rates_milli[lane_no]
        if rate_milli <= 0 or self._is_held:
            return (called_next if self._is_called_next(lane, ahead) else not_estimated) % (position, ahead)
        low_s, high_s = band_s(ahead, rate_milli)
        return estimated % (position, ahead, low_s, high_s, poll_after_s(high_s))

    def _make_status(
        self, lane_no: int, place_state: PlaceState, position: int | None, ahead: int | None, wait: Wait, poll_s: int
    ) -> PlaceStatus:
        return PlaceStatus(
            self._event,
            place_state,
            self._state.phase,
            self._lane_names[lane_no],
            position,
            ahead,
            wait,
            poll_s,
            self._state.epoch,
            self._state.message_no,
        )

    def _is_called_next(self, lane: LaneState, ahead: int) -> bool:
        """Whether somebody with so many ahead is among the first whom a room that opened a moment ago admits. The rate
        is not measured yet, but their turn comes soon."""
        return lane.hi == 0 and not self._is_held and ahead < self._state.config.capacity

    def _forms_of(self, lane_no: int) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        """The JSON of a status in this lane without its numbers: waiting (estimated, not estimated, called next),
        active, expired."""
        text = _encode(self._make_status(lane_no, PlaceState.WAITING, 0, 0, UNKNOWN, 0))
        text = text.replace(b"%", b"%%")  # names of events and lanes have none today
        head, _, rest = text.partition(b'"waiting"')
        middle, _, rest = rest.partition(b'"position":0,"ahead":0,"wait":{"low_s":null,"high_s":null,"reason":""},')
        tail = rest.partition(b'"poll_after_s":0')[2]
        reason, least_s = _encode(self._reason), poll_after_s(0)

        def form(place_state: bytes, numbers: bytes) -> bytes:
            return head + place_state + middle + numbers + tail

        no_wait = b'"position":%%d,"ahead":0,"wait":{"low_s":0,"high_s":0,"reason":""},"poll_after_s":%d' % least_s
        estimated = (
            b'"position":%%d,"ahead":%%d,"wait":{"low_s":%%d,"high_s":%%d,"reason":%b},"poll_after_s":%%d' % reason
        )
        not_estimated = (
            b'"position":%%d,"ahead":%%d,"wait":{"low_s":null,"high_s":null,"reason":%b},"poll_after_s":' % reason
        )
        waiting = b'"waiting"'
        return (
            form(waiting, estimated),
            form(waiting, not_estimated + b"%d" % poll_after_s(None)),
            form(waiting, not_estimated + b"%d" % least_s),
            form(b'"active"', no_wait),
            form(b'"expired"', no_wait),
        )
