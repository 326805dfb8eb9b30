"""Results of the service, which the web layer turns into JSON."""

from dataclasses import dataclass

import msgspec

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.model.config import Phase
from frontrow.waitingroom.model.errors import AlreadyClaimed, NotYourTurn, PlaceExpired, RoomFull, RoomHeld
from frontrow.waitingroom.model.inflow import Inflow
from frontrow.waitingroom.model.room_state import RoomState, VisitResult
from frontrow.waitingroom.model.wait_estimate import Wait
from frontrow.waitingroom.model.window import PlaceState


class PlaceStatus(msgspec.Struct, frozen=True, gc=False):
    """The status of a place. `position` and `ahead` are None in the pre-queue, before the draw."""

    event: str
    state: PlaceState
    phase: Phase
    lane: str
    position: int | None
    ahead: int | None
    wait: Wait
    poll_after_s: int
    epoch: int
    message_no: int


class Joined(msgspec.Struct, frozen=True, gc=False):
    """A place and its status; not `fresh` for a repeated idempotency key or person."""

    place_jwt: str
    status: PlaceStatus
    fresh: bool = True

    @property
    def position(self) -> int | None:
        return self.status.position


@dataclass(frozen=True, slots=True)
class ClaimedPass:
    """A signed pass."""

    pass_jwt: str
    expires_s: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Entered:
    """A place that was joined, and its pass if it was admitted at once."""

    joined: Joined
    claimed: ClaimedPass | None = None


@dataclass(frozen=True, slots=True)
class RoomView:
    """A room for organisers and metrics."""

    event: str
    state: RoomState
    waiting: int
    unclaimed: int
    show_rate: float
    rates_milli: tuple[int, ...]
    leader: str
    is_leader: bool
    inflow: Inflow | None = None  # while the room holds the shop's latency


def claim_refusal(result: VisitResult) -> FrontrowError | None:
    """The error for a claim with this result; None if it succeeded."""
    match result:
        case VisitResult.OK | VisitResult.REPEATED:
            return None
        case VisitResult.WAITING:
            return NotYourTurn("your place is not active yet", retry_after_s=5)
        case VisitResult.EXPIRED | VisitResult.ENDED:
            return PlaceExpired("your place was active and has expired; join again")
        case VisitResult.ALREADY:
            return AlreadyClaimed("this place was already exchanged for a pass")
        case VisitResult.FULL:
            return RoomFull("the shop is full this moment; your place stays active", retry_after_s=2)
        case VisitResult.HELD:
            return RoomHeld("everybody is asked to wait for now; your place stays active", retry_after_s=15)
