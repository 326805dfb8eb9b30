"""The waiting room as a service: join, status, claim, renew, give back, and what organisers do.

Hot paths: `join` is one store call shared by everybody who arrives during a round trip; `status` is a pure function of
the verified place and the cached window; `now_serving` hands out cached bytes. `serve()` keeps the cache fresh, leads
when it is this process' turn, and rebuilds a store that lost its memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from frontrow.core.clock import Clock
from frontrow.waitingroom.codes import Codes
from frontrow.waitingroom.config import Phase, RoomConfig
from frontrow.waitingroom.keys import RoomKeys
from frontrow.waitingroom.nowserving import NowServing
from frontrow.waitingroom.passes import Pass
from frontrow.waitingroom.ports import Audit, RoomState, RoomStore
from frontrow.waitingroom.window import PlaceState, Wait


@dataclass(frozen=True, slots=True)
class PlaceStatus:
    """What a person is told about a place. `position` is None in the pre-queue, before the draw."""

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


@dataclass(frozen=True, slots=True)
class Joined:
    """A new place (or the same again for a repeated idempotency key or person) and its status."""

    place_jwt: str
    status: PlaceStatus
    fresh: bool = True

    @property
    def position(self) -> int | None:
        return self.status.position


@dataclass(frozen=True, slots=True)
class Claimed:
    """A pass, ready to hand out."""

    pass_jwt: str
    expires_s: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class RoomView:
    """What the organiser sees."""

    event: str
    state: RoomState
    waiting: int
    unclaimed: int
    show_rate: float
    rates_milli: tuple[int, ...]
    leader: str
    is_leader: bool


class WaitingRoom:
    """All rooms of one process; store, audit, keys and clock come from outside."""

    def __init__(
        self,
        store: RoomStore,
        audit: Audit,
        keys: RoomKeys,
        *,
        clock: Clock | None = None,
        owner: str | None = None,
        lease_ttl_us: int = 5_000_000,
        refresh_us: int = 250_000,
        durable_joins: bool = False,
        codes: Codes | None = None,
    ) -> None:
        """`clock` is only used for what is shown and for pass expiry; the window moves by the store's clock.
        `durable_joins`: a join is answered after its audit row is on disk (embedded mode)."""
        raise NotImplementedError

    # -- people ------------------------------------------------------------------------------------------------------

    async def join(
        self,
        event: str,
        person: str = "",
        ip: str = "",
        code: str | None = None,
        idempotency_key: str | None = None,
        cnf: str | None = None,
    ) -> Joined:
        """A place at the end of the line. `person` may be empty (anonymous); `code` picks a lane; `cnf` is the RFC 7638
        thumbprint of the browser's key; `ip` only spreads people over shards. Raises RoomUnknown, RoomClosed,
        RoomOverflow, CodeInvalid, CodeUsed, Unavailable."""
        raise NotImplementedError

    def status(self, place_jwt: str, event: str | None = None) -> PlaceStatus:
        """The state of a place. Pure and synchronous. Raises PlaceInvalid, PlaceForeign, RoomUnknown."""
        raise NotImplementedError

    async def claim(
        self, place_jwt: str, event: str | None = None, idempotency_key: str | None = None, proof: str | None = None
    ) -> Claimed:
        """Exchange an active place, once, for a pass. The same idempotency key gets the same pass again. `proof` is
        needed for a bound place (`binding.py`). Raises PlaceInvalid, PlaceForeign, PlaceExpired, NotYourTurn,
        AlreadyClaimed, RoomFull, RoomHeld, ProofInvalid, Unavailable."""
        raise NotImplementedError

    async def renew(self, pass_jwt: str, event: str | None = None) -> Claimed:
        """A pass with a later expiry for a live one. Raises PassInvalid, PassExpired, PassEnded, StayTooLong."""
        raise NotImplementedError

    async def give_back(self, pass_jwt: str, event: str | None = None) -> bool:
        """End a visit (finished or left): the capacity returns at once. False if it had ended before."""
        raise NotImplementedError

    def check_pass(self, pass_jwt: str, event: str | None = None) -> Pass:
        """The pass, verified offline (signature, event, expiry, given back here). Raises PassInvalid, PassForeign,
        PassExpired, PassEnded. For middleware and nginx."""
        raise NotImplementedError

    async def check_pass_live(self, pass_jwt: str, event: str | None = None) -> Pass:
        """Like `check_pass`, and asks the store whether it was given back anywhere."""
        raise NotImplementedError

    def now_serving(self, event: str) -> NowServing:
        """The signed document as cached bytes. Raises RoomUnknown."""
        raise NotImplementedError

    def subscribe(self, event: str, listener: Callable[[NowServing], None]) -> Callable[[], None]:
        """Call `listener` with each new document, from the event loop; returns the way to stop it. Must not block."""
        raise NotImplementedError

    def jwks(self) -> dict[str, Any]:
        """The public keys: of the passes (RS256) and of the now-serving document (Ed25519, kid `now-serving`)."""
        raise NotImplementedError

    # -- roster stores only (W8) --------------------------------------------------------------------------------------

    async def rank(self, place_jwt: str) -> int | None:
        """How many people still in line are before this place; None if its person has left."""
        raise NotImplementedError

    async def leave(self, place_jwt: str) -> bool:
        """Leave the line."""
        raise NotImplementedError

    # -- organisers ---------------------------------------------------------------------------------------------------

    async def create(self, event: str, config: RoomConfig, phase: Phase = Phase.OPEN) -> RoomView:
        """Make a room, or find the one that is there, also after a restart. PREQUEUE commits to the draw."""
        raise NotImplementedError

    async def open(self, event: str, beacon: str = "") -> RoomView:
        """Open the doors; from PREQUEUE this draws the order. `beacon`: public randomness nobody could know before."""
        raise NotImplementedError

    async def pause(self, event: str) -> RoomView:
        """Admit nobody new until `resume`."""
        raise NotImplementedError

    async def resume(self, event: str) -> RoomView:
        """Go on after `pause`, `queue_all` or `close`."""
        raise NotImplementedError

    async def queue_all(self, event: str) -> RoomView:
        """Everybody waits, also those whose place is active, until `resume`; nobody's grace runs out meanwhile."""
        raise NotImplementedError

    async def close(self, event: str) -> RoomView:
        """No more joins and admissions."""
        raise NotImplementedError

    async def set_rate(self, event: str, rate_per_s: int, burst: int | None = None) -> RoomView:
        raise NotImplementedError

    async def set_capacity(self, event: str, capacity: int) -> RoomView:
        raise NotImplementedError

    async def set_message(self, event: str, message: str) -> RoomView:
        raise NotImplementedError

    def view(self, event: str) -> RoomView:
        """The room as last seen. Raises RoomUnknown."""
        raise NotImplementedError

    def events(self) -> tuple[str, ...]:
        """The rooms this process knows."""
        raise NotImplementedError

    def draw_record(self, event: str) -> dict[str, Any]:
        """The published record of the pre-queue draw: the commitment before the opening, everything after."""
        raise NotImplementedError

    # -- running ------------------------------------------------------------------------------------------------------

    async def tick(self, event: str) -> None:
        """One turn of the loop: refresh the cache, recover if needed, lead and slide if it is due and ours."""
        raise NotImplementedError

    async def start(self) -> None:
        """Start the loop of every known room (and of those created later)."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Stop the loops, resign, flush the audit."""
        raise NotImplementedError
