"""The port of the ledger: holds and bookings. A domain's own `ports` add the books that its services use.

The docstrings are the contract. One test suite per port (tests/contracts) checks it over every adapter.

Every write is safe to repeat: the caller makes the booking ids, and a move that was already made gets the same answer
again. A call that raises `Unavailable` may or may not have happened. Call again, or read the booking by its id.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from frontrow.boxoffice.facts.ports import Outbox
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import ActiveSeat, ChangedHold, ExpiredHold, NewHold, PlacedHold, VisitHold
from frontrow.boxoffice.pricing.model.booking_choices import Reprice
from frontrow.boxoffice.tickets.model.tickets import NewTicket
from frontrow.shared.coalescer import ResultSlot
from frontrow.shared.quiet_time import QuietTime


class BookingReads(Protocol):
    """Bookings as last committed."""

    async def booking(self, booking_id: str) -> Booking | None:
        """The booking as last committed."""
        ...

    async def bookings_of(self, event_id: str, fan: str, limit: int = 100) -> list[Booking]:
        """The fan's bookings in this event, newest first."""
        ...

    async def live_bookings(self, event_id: str, after: str, limit: int) -> list[Booking]:
        """Bookings of the event that are held, paying or confirmed, ordered by id, from after `after` on."""
        ...

    async def visit_holds(self, event_id: str, now_us: int, limit: int) -> list[VisitHold]:
        """The visits whose seats are held and not sold, in the order in which their holds end."""
        ...

    def active_seats(self, event_id: str, now_us: int) -> AsyncIterator[ActiveSeat]:
        """Every seat that is sold or live held at `now_us`, in index order. Used to rebuild claims and seat maps.

        One consistent snapshot. Never blocks a writer.
        """
        ...

    async def live_uses(self, counters: Sequence[str], now_us: int) -> dict[str, int]:
        """How many of each counter are used by bookings that are sold or held; without those that nobody uses."""
        ...

    async def time_us(self) -> int:
        """The ledger's own time: the clock that all servers share (holds/expiry.py LedgerClock)."""
        ...


class Ledger(BookingReads, Outbox, Protocol):
    """The SQL store of record. Whatever it has answered is durable, and no two live bookings ever share a seat.

    All methods may raise `Unavailable` (connection lost for longer than the reconnect budget) and `Overloaded` (too
    many calls waiting). Other errors are those of holds.model.bookings and holds.model.holds.
    """

    async def place_hold(self, hold: NewHold) -> PlacedHold:
        """Hold all seats or none, and assign the fence.

        Seats of a hold that ended by `hold.now_us` count as free; that hold is ended in the same transaction (`ended`).
        `SeatsTaken` names exactly the seats that others have. `CapExceeded` when the fan's active seats in the event
        plus these exceed `hold.cap`; this is exact under any race.

        A repeated booking id, or the same fan's idempotency key with the same request hash, returns the first hold with
        `repeated=True` while it is live, and raises `HoldEnded` or `MoveRefused` after its end. The same key with
        another request hash raises `IdempotencyMismatch`.
        """
        ...

    def place_hold_into(self, hold: NewHold, slot: ResultSlot) -> None:
        """`place_hold` without a task: the answer, or the error, is put into the slot. Invalid input raises here."""
        ...

    async def change_hold(self, hold: NewHold, fence: int) -> ChangedHold:
        """Give a live hold other seats: those in both choices are kept, new ones taken, the others free; or nothing.

        `hold.booking_id` names the hold; its end does not move. `SeatsTaken` names exactly the seats that others have.
        `CapExceeded` as in `place_hold`. `HoldEnded` after its end, `MoveRefused` while it is being paid or after,
        `StaleFence`, `BookingNotFound` (also for another fan's). The seats it already has are no change.
        """
        ...

    async def extend_hold(self, booking_id: str, fence: int, now_us: int, expires_at_us: int) -> Booking:
        """Move the end of a live hold (held or paying), never to an earlier time."""
        ...

    async def release_hold(self, booking_id: str, fence: int, now_us: int) -> Booking:
        """held -> cancelled. Its seats are free at once. An already released or expired hold is returned as is."""
        ...

    async def begin_payment(self, booking_id: str, fence: int, now_us: int) -> Booking:
        """held -> paying."""
        ...

    async def step_back(self, booking_id: str, fence: int, now_us: int) -> Booking:
        """paying -> held: the fan wants to pay another way. The authorisation is already void."""
        ...

    async def confirm(self, booking_id: str, fence: int, now_us: int, tickets: Sequence[NewTicket] = ()) -> Booking:
        """paying -> confirmed, by one conditional update over state, fence and `now_us < hold_expires_at_us` (F4).

        `tickets` (from `TicketIssuer.issue`) are written in the same transaction, and only if this call confirms.

        Raises `HoldEnded` (410) after the end, `StaleFence`, `MoveRefused` or `BookingNotFound`; then nothing has
        changed. A booking already confirmed with this fence is returned as is.
        """
        ...

    async def confirm_free(
        self, booking_id: str, fence: int, now_us: int, tickets: Sequence[NewTicket] = ()
    ) -> Booking:
        """held or paying -> confirmed for a booking that costs nothing. `MoveRefused` if it costs something by now."""
        ...

    async def reprice(self, ask: Reprice) -> Booking:
        """Write the price of a live hold after a choice, with what the choice uses, all or nothing.

        Raises `DiscountRefused` or `NoneLeft` when a limit is reached; of the last one exactly one caller gets it. A
        use ends with its booking: released, declined, expired, cancelled or refunded.
        """
        ...

    async def expire_due(self, now_us: int, limit: int) -> list[ExpiredHold]:
        """End at most `limit` holds with `hold_expires_at_us <= now_us`, oldest first, each with a fact HoldExpired.

        Any number of workers may call at once. Each due hold is ended and returned exactly once; a worker skips holds
        that another one is ending.
        """
        ...

    async def purge_keys(self, before_us: int, limit: int, after: tuple[str, str] = ("", "")) -> tuple[str, str]:
        """Read `limit` idempotency keys of holds from `after` on, and delete those created before `before_us`.

        Returns where to continue, ("", "") at the end. Payments keep their own keys for good.
        """
        ...

    @property
    def due_work(self) -> QuietTime:
        """When workers may sleep."""
        ...

    async def aclose(self) -> None:
        """Finish waiting calls and close the connections."""
        ...
