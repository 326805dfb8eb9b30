"""The box office's ports: what its services need from the outside, as Protocols. The docstrings are the contract;
one suite per port (tests/contracts) runs it over every adapter.

Every write is safe to repeat: bookings have ids made by the caller, moves that were already made answer as before. A
call that raises `Unavailable` may or may not have happened; ask again, or read the booking by its id.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from frontrow.boxoffice.model.bookings import Booking
from frontrow.boxoffice.model.facts import OutboxFact
from frontrow.boxoffice.model.holds import ActiveSeat, ExpiredHold, NewHold, PlacedHold

# --- Ledger ----------------------------------------------------------------------------------------------------------


class Ledger(Protocol):
    """The SQL store of record. What it has answered is durable; no two live bookings share a seat, whatever happens.

    All methods may raise `Unavailable` (connection lost for longer than the reconnect budget) and `Overloaded` (line
    full). Errors are those of model.bookings and model.holds.
    """

    async def place_hold(self, hold: NewHold) -> PlacedHold:
        """Hold all seats or none, and assign the fence.

        Seats of a hold that ended by `hold.now_us` count as free; that hold is ended in the same transaction (`ended`).
        `SeatsTaken` names exactly the seats that others have. `CapExceeded` when the fan's active seats in the event
        plus these exceed `hold.cap`, exact under any race. The same booking id again, or the same fan's idempotency
        key with the same request hash, answers the first hold with `repeated=True` as long as it stands; with another
        request hash `IdempotencyMismatch`; after its end `HoldEnded` or `MoveRefused`.
        """
        ...

    async def extend_hold(self, booking_id: str, fence: int, now_us: int, expires_at_us: int) -> Booking:
        """Move the end of a live hold (held or paying); never to an earlier time than it has."""
        ...

    async def release_hold(self, booking_id: str, fence: int, now_us: int) -> Booking:
        """held -> cancelled; its seats are free at once. Already released or expired: answered as is."""
        ...

    async def begin_payment(self, booking_id: str, fence: int, now_us: int, expires_at_us: int = 0) -> Booking:
        """held -> paying; `expires_at_us` later than the hold's end extends it."""
        ...

    async def step_back(self, booking_id: str, fence: int, now_us: int) -> Booking:
        """paying -> held: the fan wants to pay otherwise; the authorisation is already void."""
        ...

    async def decline(self, booking_id: str, fence: int, now_us: int) -> Booking:
        """paying -> cancelled: the card was declined; the seats are free at once (B9)."""
        ...

    async def confirm(self, booking_id: str, fence: int, now_us: int) -> Booking:
        """paying -> confirmed by ONE conditional update: the state, the fence and `now_us < hold_expires_at_us` (F4).

        Raises `HoldEnded` (410) after the end, `StaleFence`, `MoveRefused`, `BookingNotFound`; nothing changed then.
        Confirmed already with this fence: answered as is.
        """
        ...

    async def cancel(self, booking_id: str, fence: int, now_us: int) -> Booking:
        """confirmed -> cancelled, without money; the seats are free."""
        ...

    async def refund(self, booking_id: str, fence: int, now_us: int) -> Booking:
        """confirmed -> refunded; the seats are free."""
        ...

    async def expire_due(self, now_us: int, limit: int) -> list[ExpiredHold]:
        """End at most `limit` holds with `hold_expires_at_us <= now_us`, oldest first, each with a fact HoldExpired.

        Any number of workers may call at once: each due hold is ended, and answered, exactly once; a worker steps over
        holds another one is ending.
        """
        ...

    async def booking(self, booking_id: str) -> Booking | None:
        """The booking as last committed."""
        ...

    async def bookings_of(self, event_id: str, fan: str, limit: int = 100) -> list[Booking]:
        """This fan's bookings in this event, newest first."""
        ...

    def active_seats(self, event_id: str, now_us: int) -> AsyncIterator[ActiveSeat]:
        """Every seat sold or live held at `now_us`, in index order; for rebuilding claims and the availability map.

        One consistent snapshot; never blocks a writer.
        """
        ...

    async def time_us(self) -> int:
        """The ledger's own time: the one clock that all servers can agree on (services.expiry.LedgerClock)."""
        ...

    # outbox: facts leave here, at least once

    async def lease_facts(self, now_us: int, lease_us: int, limit: int) -> list[OutboxFact]:
        """The oldest unpublished facts nobody leases, leased until `now_us + lease_us`; workers get distinct ones."""
        ...

    async def facts_published(self, numbers: Sequence[int], now_us: int) -> None:
        """These facts are out; never lease them again."""
        ...

    async def aclose(self) -> None:
        """Finish what is in line and let go of the connections."""
        ...


# --- SeatClaims (helper CLAIMS writes this section) ------------------------------------------------------------------
