"""What the waiting room needs from outside: a store for its few integers, an audit that outlives the store, and a
check that a join comes from a person.

All times are microseconds by the *store's* clock, so servers with wrong clocks agree. Every method of the store is one
round trip and atomic. A store without the room returns None from `snapshot` and raises `RoomRecovering` elsewhere; the
service then rebuilds the room from the audit under a new epoch.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.inflow import ShopReport
from frontrow.waitingroom.model.room_state import LaneState, RoomState, SlidePlan, VisitResult
from frontrow.waitingroom.model.window import Window


class JoinCommand(msgspec.Struct, frozen=True, gc=False):
    """One person's join. The same idempotency `key` gets the same position again, and so does the same `person` with
    `one_place` (or in a store with one place per person). A fresh join marks its `code_id` as used."""

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
    """The permanent key of a place: positions (after the draw) are unique within (lane, epoch)."""

    lane: int
    epoch: int
    position: int


@dataclass(frozen=True, slots=True)
class PersonAt:
    """The position of a person (in rooms with one place per person)."""

    person: str
    lane: int
    epoch: int
    position: int
    at_us: int = 0


class VisitOp(StrEnum):
    CLAIM = "claim"
    RENEW = "renew"
    GIVE_BACK = "give_back"
    HEAR = "hear"  # the visitor made a request: the idle time restarts, and an earlier departure is revoked
    LOOK = "look"  # when does the visit end? Changes nothing
    LEAVE = "leave"  # a page was closed: the visit ends soon unless the visitor makes a request
    HAND_OVER = "hand_over"  # the shop exchanges the hand-over `hold`, once, before `until_s`; counts as a request
    KEEP = "keep"  # a hold lasts until `until_s`, and the visit at least as long; 0: the hold has ended


@dataclass(frozen=True, slots=True)
class VisitCommand:
    """One request about a visit. `tag` (1…2^32−1) lets the same caller repeat a claim whose reply was lost;
    `slide_no` says which slide admitted the place (for the measured show rate only)."""

    op: VisitOp
    place: PlaceKey
    ttl_s: int = 0  # CLAIM, RENEW: the time to live of the pass, by the store's clock; HAND_OVER: the room's epoch
    until_s: int = 0  # RENEW: at most until then; KEEP, HAND_OVER: its end; HEAR: the time of the request, 0: now
    tag: int = 0
    slide_no: int = 0
    hold: str = ""  # KEEP: which hold, so that a job can check later whether it still exists; HAND_OVER: which one


@dataclass(frozen=True, slots=True)
class VisitReply:
    """`expires_s` is the end of the pass; `ends_s` the end of the visit unless the visitor makes a request before."""

    result: VisitResult
    expires_s: int = 0
    active: int = 0
    ends_s: int = 0
    kept_until_s: int = 0


@dataclass(frozen=True, slots=True)
class EndedVisit:
    """A visit that ended before its pass expires: every process refuses the pass until then."""

    place: PlaceKey
    expires_s: int
    timed_out: bool = False  # nobody gave it back, so the audit does not have its end yet
    idle: bool = False  # nobody was heard of while others waited


@dataclass(frozen=True, slots=True)
class KeptVisit:
    """A visit that a hold keeps."""

    place: PlaceKey
    until_s: int
    hold: str


class SlideResult(StrEnum):
    SLID = "slid"
    NOT_LEADER = "not_leader"
    NOT_DUE = "not_due"
    CHANGED = "changed"  # another slide, a reset or a phase change came in between
    TOO_FAR = "too_far"  # beyond the last position issued, or backwards


class RoomStore(Protocol):
    """One room's counters, window, visits and leader."""

    one_place_per_person: bool  # in every room, whatever its settings say (W8)

    async def create(self, event: str, room: "Recovered") -> bool:
        """Write a whole room with its claims, used codes and people, if the store has none; False if it has one. A
        `slid_at_us` of 0 makes the first slide due at once."""

    async def forget(self, event: str, epoch: int) -> None:
        """Delete the room if its epoch is still this one (it lost writes and will be rebuilt)."""

    async def lift(self, event: str, lanes: Sequence[LaneState]) -> None:
        """Raise issued, hi and lo to at least these (seen by another process before a loss)."""

    async def snapshot(self, event: str) -> RoomState | None:
        """The state of the room without expired passes; None if the store has no such room."""

    async def unchanged_at_us(self, event: str, state: RoomState) -> int:
        """The store's time if the room is still in this state, apart from the time; 0 if it is not, or may not be."""

    async def join(
        self, event: str, commands: Sequence[JoinCommand], seen: Sequence[int] = ()
    ) -> Sequence[JoinReply | FrontrowError]:
        """Issue positions for all of them, in order, in one step; RoomClosed, RoomOverflow or CodeUsed in place of one.
        `seen` is the last position of each lane that the caller has seen. A store that is behind it lost writes and
        issues nothing (RoomRecovering)."""

    async def visit(self, event: str, commands: Sequence[VisitCommand]) -> Sequence[VisitReply]:
        """Decide requests about visits, in order, in one step. Active never exceeds capacity.

        A visit ends when it is given back, when its pass expires, after `idle_s` without a request, or `leave_s` after
        a departure. A kept visit ends only by the first of these or with its hold. An idle visit goes on until somebody
        has waited for a minute (`RoomState.is_wanted`). After a time in which nobody could reach the store, visits get
        a minute in which they can be heard."""

    async def ended(self, event: str, after: int, most: int) -> tuple[int, Sequence[EndedVisit]]:
        """At most `most` of the visits that ended after number `after`, in order, and the number of the last one.
        Entries are dropped, oldest first, once their pass has run out."""

    async def kept(self, event: str) -> Sequence[KeptVisit]:
        """The visits that a hold keeps; at most as many as there are people in the shop."""

    async def take_lead(self, event: str, owner: str, ttl_us: int) -> bool:
        """Make `owner` the leader for `ttl_us` if nobody else is; True if `owner` is the leader now."""

    async def resign(self, event: str, owner: str) -> None:
        """End the leadership of `owner` at once, if it has it."""

    async def slide(self, event: str, owner: str, plan: SlidePlan) -> SlideResult:
        """Check owner, due time, slide number and lengths, then move the window; all or nothing."""

    async def put_report(self, event: str, report: ShopReport) -> bool:
        """Keep a shop's report with the store's time. False if a report of this reporter with the same or a higher
        number is here, or if `MAX_REPORTERS` others reported within `REPORT_TTL_US`."""

    async def reports(self, event: str) -> Sequence[ShopReport]:
        """The last report of each reporter; old ones may be missing."""

    async def configure(
        self,
        event: str,
        *,
        config: RoomConfig | None = None,
        changes: Mapping[str, Any] | None = None,
        phase: Phase | None = None,
        beacon: str | None = None,
    ) -> RoomState:
        """Change settings or phase. `config` replaces all settings. `changes` replaces only those it names, so that two
        servers that change different settings lose neither. Leaving PREQUEUE fixes `drawn` of each lane. Reopening
        gives active places the time back that the room was held."""

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
    """Imported codes of an organiser: the hash of each text and its lane."""

    lanes: Mapping[str, int]


AuditRow = JoinRow | ClaimRow | RoomRow | CodeRow | ImportRow


@dataclass(frozen=True, slots=True)
class Recovered:
    """A room from the audit: the last state, raised to all positions issued and slides begun, and its claims."""

    state: RoomState
    claims: tuple[ClaimRow, ...] = ()
    codes: tuple[int, ...] = ()
    people: tuple["PersonAt", ...] = ()
    ended: tuple[EndedVisit, ...] = ()


class Audit(Protocol):
    """The durable record of positions, joins and admissions."""

    async def append(self, event: str, rows: Sequence[AuditRow]) -> None:
        """Return when the rows are durable (group commit)."""

    async def recover(self, event: str, now_s: int, *, with_people: bool = True) -> Recovered | None:
        """The room from its rows; None if there are none. People are read only for rooms with one place per person,
        unless `with_people` asks for them."""

    async def windows(self, event: str) -> Sequence[Window]:
        """The window of each lane, the furthest of the last slides begun; nothing if there were none."""

    async def imported_lane(self, event: str, digest: str) -> int | None:
        """The lane of an imported code, by the hash of its text; None if nobody imported it."""

    async def imported_counts(self, event: str) -> dict[int, int]:
        """The number of imported codes of each lane."""

    async def used_codes(self, event: str) -> int:
        """The number of codes, imported or signed, that were used to join."""

    async def aclose(self) -> None:
        """Flush and close."""


class HumanCheck(Protocol):
    """Decides whether a join comes from a person. `site_key` is the public key of its provider, if it has one."""

    name: str
    site_key: str

    def challenge(self, now_us: int, *, suspicion: int = 0) -> dict[str, Any]:
        """What the page needs to make a proof; `suspicion` (0 to 3) makes the work harder."""

    def verify(self, proof: str | None, ip: str, now_us: int) -> Awaitable[None] | None:
        """None: passed at once. An awaitable: passed when it returns. Raises `NotHuman`."""


class UsedProofs(Protocol):
    """Remembers which proofs were used until they expire."""

    def mark_used(self, proof_id: str, ttl_s: int, now_us: int) -> "Awaitable[bool] | bool":
        """True for the first caller with this id, False for every other one until it has expired."""
