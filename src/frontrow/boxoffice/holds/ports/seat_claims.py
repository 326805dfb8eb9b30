"""The port of the claim store, which stores who has which seat."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from frontrow.boxoffice.holds.model.claims import BestClaim, ClaimedSeats, ClaimRefused, SeatClaim, TakenSeat
from frontrow.boxoffice.seats.model.map_format import SeatState
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.shared.coalescer import ResultSlot


class SeatClaims(Protocol):
    """Who has which seat. It is called before the ledger and absorbs every attempt that cannot succeed (N2).

    A claim is all-or-nothing, exclusive while `now_us < expires_at_us`, and safe to repeat for the same booking. The
    caller's time counts, never the store's: a jump of the store's clock frees no seat early and keeps none too long.
    `learn` an event first. While the store is empty, old or being filled, every operation that could grant a seat
    raises `ClaimsLost` (503) until `rebuild` has filled it from the ledger. After `Unavailable` the operation may or
    may not have happened.
    """

    def learn(self, event_id: str, plan: Plan) -> None:
        """Prepare for an event with this plan. Repeating it with the same plan changes nothing."""
        ...

    def forget(self, event_id: str) -> None:
        """Drop what this process keeps about the event. The stored claims stay."""
        ...

    async def claim(self, claim: SeatClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        """Claim all the seats or none. Seats that the booking has are free to it; expired claims are free to all.

        Claiming its own seats again moves their end.

        A group across sections is claimed in plan order and undone when one part is refused. Until all parts are
        claimed, `states` shows none of them. A refusal names exactly the seats that others have.
        """
        ...

    def claim_into(self, claim: SeatClaim, now_us: int, slot: ResultSlot) -> None:
        """`claim` without a task: the answer, or the error, is put into the slot later. Invalid input raises here."""
        ...

    async def claim_best(self, claim: BestClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        """Choose and claim seats in one atomic step, by the rules of `model/best_seats.py`.

        Grades are tried from the best to `claim.worst`. The claim is refused when none fits; `taken` then lists the
        taken seats of the whole section. In an area larger than the store's window, any fitting places may be chosen.
        """
        ...

    async def release(self, event_id: str, seats: Sequence[int], booking_id: str) -> int:
        """Free those of the seats that this booking has, held or sold, and return how many (B3)."""
        ...

    async def put(self, event_id: str, seats: Sequence[TakenSeat], now_us: int) -> None:
        """Store what the ledger says (a sold seat, or a hold that the store lost), whoever claimed the seats before."""
        ...

    async def states(self, event_id: str, now_us: int, seats: Sequence[int] | None = None) -> dict[int, TakenSeat]:
        """Those of the seats (sorted; None: all) that are held or sold at `now_us`; never part of a group."""
        ...

    async def map_states(self, event_id: str, now_us: int, seats: Sequence[int] | None = None) -> dict[int, SeatState]:
        """What the map shows of the same seats as `states`: held or sold, without their owners."""
        ...

    async def lost(self, event_id: str) -> bool:
        """Whether some section of the event must be filled from the ledger before it can be sold."""
        ...

    async def lost_among(self, event_ids: Sequence[str]) -> set[str]:
        """Those of the events that are `lost`, found with as few calls as possible."""
        ...

    async def rebuild(self, event_id: str, read: Callable[[], AsyncIterator[TakenSeat]], now_us: int) -> bool:
        """Refuse all claims, read the ledger, replace the content with what was read, then serve again.

        False: a newer rebuild by another process overtook this one.
        """
        ...

    async def aclose(self) -> None:
        """Finish what is queued and close the connections."""
        ...
