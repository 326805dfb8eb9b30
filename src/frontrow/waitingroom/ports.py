"""What the waiting room needs from outside: a store for its few integers, an audit that outlives the store, and a
check that a join comes from a person.

All times are microseconds by the *store's* clock, so servers with wrong clocks agree. Every method is one round trip
and atomic. A store that has lost its memory returns None from `snapshot` and raises `RoomRecovering` elsewhere; the
service then rebuilds it from the audit under a new epoch.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, RoomState, SlidePlan, VisitResult


class JoinCommand(msgspec.Struct, frozen=True, gc=False):
    """One person's join. The same idempotency `key` gets the same position again, and so does the same `person` with
    `one_place` (or in a store with one place per person). A fresh join uses up its `code_id`."""

    lane: int
    key: str = ""
    person: str = ""
    code_id: int = 0
    one_place: bool = False


class JoinReply(msgspec.Struct, frozen=True, gc=False):
    """The position the store issued; not `fresh` if it was issued before."""

    lane: int
    position: int
    epoch: int
    at_us: int
    fresh: bool = True


@dataclass(frozen=True, slots=True)
class PlaceKey:
    """The permanent name of a place: positions (after the draw) are unique within (lane, epoch)."""

    lane: int
    epoch: int
    position: int


@dataclass(frozen=True, slots=True)
class PersonAt:
    """Where a person stands (rooms with one place per person)."""

    person: str
    lane: int
    epoch: int
    position: int
    at_us: int = 0


class VisitOp(StrEnum):
    CLAIM = "claim"
    RENEW = "renew"
    GIVE_BACK = "give_back"
    HEAR = "hear"  # the visitor was heard: the idle time begins again, and a departure before that is taken back
    LEAVE = "leave"  # a page was closed: the visit ends soon unless the visitor is heard again
    KEEP = "keep"  # a hold is alive until `until_s`: the visit lasts at least as long; 0: the hold is over


@dataclass(frozen=True, slots=True)
class VisitCommand:
    """One request about a visit. `tag` (1…2^32−1) lets the same caller repeat a claim whose reply was lost;
    `slide_no` says which slide admitted the place (for the measured show rate only)."""

    op: VisitOp
    place: PlaceKey
    ttl_s: int = 0  # CLAIM, RENEW: how long the pass is to live, by the store's clock
    until_s: int = 0  # RENEW: never longer than this; KEEP: the end of the hold; HEAR: when it was, 0: now
    tag: int = 0
    slide_no: int = 0
    hold: str = ""  # KEEP: which hold, for whoever checks later whether it is still alive


@dataclass(frozen=True, slots=True)
class VisitReply:
    """`expires_s` is the end of the pass; `ends_s` the end of the visit unless the visitor is heard before."""

    result: VisitResult
    expires_s: int = 0
    active: int = 0
    ends_s: int = 0
    kept_until_s: int = 0


@dataclass(frozen=True, slots=True)
class EndedVisit:
    """A visit that ended before its pass ran out: every process refuses the pass until then."""

    place: PlaceKey
    expires_s: int
    timed_out: bool = False  # nobody gave it back, so nobody wrote it to the audit yet


@dataclass(frozen=True, slots=True)
class KeptVisit:
    """A visit that a live hold keeps."""

    place: PlaceKey
    until_s: int
    hold: str


class SlideResult(StrEnum):
    SLID = "slid"
    NOT_LEADER = "not_leader"
    NOT_DUE = "not_due"
    CHANGED = "changed"  # another slide, a reset or a phase change came in between
    TOO_FAR = "too_far"  # beyond the people there, or backwards


class RoomStore(Protocol):
    """One room's counters, window, visits and leader."""

    one_place_per_person: bool  # in every room, whatever its settings say (W8)

    async def create(self, event: str, room: "Recovered") -> bool:
        """Write a whole room, with the claims, used codes and people to restore, if there is none; False if there was.
        A `slid_at_us` of 0 makes the first slide due at once."""

    async def forget(self, event: str, epoch: int) -> None:
        """Drop the room if it is still of this epoch (it lost writes and will be rebuilt)."""

    async def lift(self, event: str, lanes: Sequence[LaneState]) -> None:
        """Raise issued, hi and lo to at least these (what another process had seen before a loss)."""

    async def snapshot(self, event: str) -> RoomState | None:
        """The room as it is, with passes that have run out counted out; None if the store knows no such room."""

    async def unchanged_at_us(self, event: str, state: RoomState) -> int:
        """The store's time if the room is still as this `snapshot` said, time aside; 0 if it is not, or may not be."""

    async def join(
        self, event: str, commands: Sequence[JoinCommand], seen: Sequence[int] = ()
    ) -> Sequence[JoinReply | FrontrowError]:
        """Positions for all of them, in order, in one step; RoomClosed, RoomOverflow or CodeUsed in place of one.
        `seen`: the last position of each lane the caller knows of; a store that is behind it lost writes and issues
        nothing (RoomRecovering)."""

    async def visit(self, event: str, commands: Sequence[VisitCommand]) -> Sequence[VisitReply]:
        """Requests about visits, each decided once, in order, in one step. Active never exceeds capacity.

        A visit ends when it is given back, when its pass runs out, when nobody was heard for the room's `idle_s`, or
        `leave_s` after a departure. A kept visit ends only by the first of these or with its hold."""

    async def ended(self, event: str, after: int, most: int) -> tuple[int, Sequence[EndedVisit]]:
        """At most `most` of the visits that ended after number `after`, in order, and the number of the last one.
        Entries are dropped, oldest first, once their pass has run out."""

    async def kept(self, event: str) -> Sequence[KeptVisit]:
        """The visits that a hold keeps; no more than there are people inside."""

    async def take_lead(self, event: str, owner: str, ttl_us: int) -> bool:
        """Make `owner` the leader for `ttl_us` if nobody else is; True if `owner` is the leader now."""

    async def resign(self, event: str, owner: str) -> None:
        """End the leadership of `owner` at once, if it has it."""

    async def slide(self, event: str, owner: str, plan: SlidePlan) -> SlideResult:
        """Check owner, due time, slide number and lengths, then move the window; all or nothing."""

    async def configure(
        self,
        event: str,
        *,
        config: RoomConfig | None = None,
        changes: Mapping[str, Any] | None = None,
        phase: Phase | None = None,
        beacon: str | None = None,
    ) -> RoomState:
        """Change settings or phase. `config` replaces all settings; `changes` only those it names, over whatever the
        others are at that instant, so that two servers changing different settings lose neither. Leaving PREQUEUE fixes
        `drawn` of each lane; leaving a hold starts anew."""

    # Rooms with one place per person (W8) have a roster: who has which position. In Redis it is a sorted set per lane
    # with the position as its score, about 140 bytes per person waiting. Other rooms store nothing per person.

    async def rank(self, event: str, lane: int, person: str) -> int | None:
        """How many people still in the queue wait before this one; None if this one is not in it."""

    async def leave(self, event: str, lane: int, person: str) -> bool:
        """Leave the queue; True if the person was in it."""

    async def aclose(self) -> None:
        """Close the connections."""


@dataclass(frozen=True, slots=True)
class JoinRow:
    """A run of positions issued together."""

    epoch: int
    lane: int
    first: int
    last: int
    at_us: int
    people: tuple[str, ...] = ()  # in order, "" for anonymous people; empty if all of them are


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One claim, renewal or return of a pass (`expires_s` 0: given back)."""

    place: PlaceKey
    expires_s: int
    at_us: int
    person: str = ""
    tag: int = 0


@dataclass(frozen=True, slots=True)
class RoomRow:
    """The room's state before a slide takes effect and after each change by the organiser."""

    state: RoomState
    at_us: int


@dataclass(frozen=True, slots=True)
class CodeRow:
    """A Verified-Fan code that was used."""

    code_id: int
    at_us: int


@dataclass(frozen=True, slots=True)
class ImportRow:
    """Codes of the organiser's own: the hash of each text and the lane it leads to."""

    lanes: Mapping[str, int]


AuditRow = JoinRow | ClaimRow | RoomRow | CodeRow | ImportRow


@dataclass(frozen=True, slots=True)
class Recovered:
    """A room as the audit has it: the last state, raised to all positions issued and slides begun, and its claims."""

    state: RoomState
    claims: tuple[ClaimRow, ...] = ()
    codes: tuple[int, ...] = ()
    people: tuple["PersonAt", ...] = ()
    ended: tuple[EndedVisit, ...] = ()


class Audit(Protocol):
    """The durable trail of positions, joins and admissions."""

    async def append(self, event: str, rows: Sequence[AuditRow]) -> None:
        """Return when the rows are durable (group commit)."""

    async def recover(self, event: str, now_s: int, *, with_people: bool = True) -> Recovered | None:
        """The room as far as the trail goes; None if it was never here. People are read for rooms with one place per
        person only, unless `with_people` asks for them."""

    async def imported_lane(self, event: str, digest: str) -> int | None:
        """The lane an imported code leads to, by the hash of its text; None if nobody imported it."""

    async def imported_counts(self, event: str) -> dict[int, int]:
        """How many imported codes lead to each lane."""

    async def used_codes(self, event: str) -> int:
        """How many codes, imported or signed here, brought somebody in."""

    async def aclose(self) -> None:
        """Flush and close."""


class HumanCheck(Protocol):
    """Decides whether a join comes from a person."""

    name: str

    def challenge(self, now_us: int, *, suspicion: int = 0) -> dict[str, Any]:
        """What the page needs to make a proof; `suspicion` (0 to 3) makes the work harder."""

    def verify(self, proof: str | None, ip: str, now_us: int) -> Awaitable[None] | None:
        """None: passed at once. An awaitable: passed when it returns. Raises `NotHuman`."""


class UsedProofs(Protocol):
    """Remembers which proofs were used until they expire."""

    def mark_used(self, proof_id: str, ttl_s: int, now_us: int) -> "Awaitable[bool] | bool":
        """True for the first caller with this id, False for every other one until it has expired."""
