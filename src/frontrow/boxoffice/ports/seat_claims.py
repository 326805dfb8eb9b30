"""The port of the claim store: who has which seat right now."""

from asyncio import Future
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from frontrow.boxoffice.model.claims import BestClaim, Claimed, ClaimRefused, SeatClaim, TakenSeat
from frontrow.boxoffice.model.venues import Plan


class SeatClaims(Protocol):
    """Who has which seat right now: the bouncer before the ledger, absorbing every attempt that cannot win (N2).

    A claim is all-or-nothing, exclusive while `now_us < expires_at_us`, and safe to repeat for the same booking. Time
    is the caller's, never the store's: a jump of the store's clock neither frees early nor keeps for ever. An event
    must be learned first. Where the store is empty, old or being filled, everything that could grant raises
    `ClaimsLost` (503) until `rebuild` has filled it from the ledger. `Unavailable`: it may or may not have happened.
    """

    def learn(self, event_id: str, plan: Plan) -> None:
        """Know the seats of an event; again with the same plan changes nothing."""
        ...

    def forget(self, event_id: str) -> None:
        """This process sells the event no longer; what others know of it stays."""
        ...

    async def claim(self, wish: SeatClaim, now_us: int) -> Claimed | ClaimRefused:
        """All the seats or none. Seats the booking already has count as free to it; expired claims are free to all.

        A group across sections is claimed in plan order and undone when one part is refused; until all parts are in,
        `states` shows none of them. A refusal names exactly the seats that others have.
        """
        ...

    def claim_soon(self, wish: SeatClaim, now_us: int) -> "Future[Claimed | ClaimRefused]":
        """`claim` without a task of one's own: its answer as a future. A claim in line is made, heard or not."""
        ...

    async def claim_best(self, wish: BestClaim, now_us: int) -> Claimed | ClaimRefused:
        """Choose and claim in one atomic step, by the rules of model.best over the seats free at that instant.

        Grades are tried from the best to `wish.worst`. Refused when none fits; `taken` then shows the whole section. In
        an area larger than the store's window any fitting places may be chosen.
        """
        ...

    async def extend(self, wish: SeatClaim, now_us: int) -> Claimed | ClaimRefused:
        """A new end for seats that the booking has; refused, naming the seats, if one of them is not its own."""
        ...

    async def release(self, event_id: str, seats: Sequence[int], booking_id: str) -> int:
        """Free those of the seats that this booking has, held or sold; how many. Anybody else's stay (B3)."""
        ...

    async def put(self, event_id: str, seats: Sequence[TakenSeat], now_us: int) -> None:
        """Record what the ledger says, whoever claimed the seats before: a sold seat, or a hold the store lost."""
        ...

    async def states(self, event_id: str, now_us: int, seats: Sequence[int] | None = None) -> dict[int, TakenSeat]:
        """Which of the seats (rising; None: all) are held or sold at `now_us`; never half a group."""
        ...

    async def lost(self, event_id: str) -> bool:
        """Whether some section of the event must be filled from the ledger before it can be sold."""
        ...

    async def rebuild(self, event_id: str, read: Callable[[], AsyncIterator[TakenSeat]], now_us: int) -> bool:
        """Refuse everything, then read the ledger, forget everything, fill in what was read, then serve.

        False: somebody else's newer rebuild overtook this one; theirs stands.
        """
        ...

    async def aclose(self) -> None:
        """Finish what is in line and let go of the connections."""
        ...
