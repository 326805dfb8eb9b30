"""The box office's ports: what its services need from the outside, as Protocols. The docstrings are the contract;
one suite per port (tests/contracts) runs it over every adapter.

Every write is safe to repeat: bookings have ids made by the caller, moves that were already made answer as before. A
call that raises `Unavailable` may or may not have happened; ask again, or read the booking by its id.
"""

from asyncio import Future
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from frontrow.boxoffice.model.bookings import Booking
from frontrow.boxoffice.model.event_search import EventSearch
from frontrow.boxoffice.model.events import Event, EventStatus
from frontrow.boxoffice.model.facts import OutboxFact
from frontrow.boxoffice.model.holds import ActiveSeat, ExpiredHold, NewHold, PlacedHold
from frontrow.boxoffice.model.tickets import DuplicateScan, NewTicket, Scan, Ticket
from frontrow.boxoffice.model.venues import Plan, Venue

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

    def place_hold_soon(self, hold: NewHold) -> "Future[PlacedHold]":
        """`place_hold` without a task of one's own: its answer as a future. Input that cannot be right raises here."""
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

    async def confirm(self, booking_id: str, fence: int, now_us: int, tickets: Sequence[NewTicket] = ()) -> Booking:
        """paying -> confirmed by ONE conditional update: the state, the fence and `now_us < hold_expires_at_us` (F4).

        `tickets` (from `TicketIssuer.issue`) are written in the same transaction, only if this call confirms.

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

    async def live_bookings(self, event_id: str, after: str, limit: int) -> list[Booking]:
        """Bookings of the event that are held, paying or confirmed, ordered by id, from after `after` on."""
        ...

    async def live_holds(self, event_id: str, now_us: int, limit: int) -> list[Booking]:
        """Bookings of the event whose seats are held and not sold, in the order in which their holds end."""
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


class Catalogue(Protocol):
    """What is sold: plans, venues, events with their price tiers. It is `ledger.catalogue`."""

    async def put_plan(self, plan_hash: str, plan: Plan, document: str, now_us: int) -> None:
        """Keep a plan, its document and its seats under its hash; a hash that is known is the same plan."""
        ...

    async def plan_document(self, plan_hash: str) -> str | None:
        """The document kept under this hash."""
        ...

    async def put_venue(self, venue: Venue, now_us: int) -> None:
        """Create or change a venue."""
        ...

    async def venue(self, venue_id: str) -> Venue | None: ...

    async def put_event(self, event: Event, now_us: int) -> None:
        """Create or change an event with its price tiers; all of it or nothing."""
        ...

    async def event(self, event_id: str) -> Event:
        """The event, or `EventNotFound`."""
        ...

    async def events(
        self, status: EventStatus | None = None, after: tuple[int, str] = (-1, ""), limit: int = 100
    ) -> list[Event]:
        """Events in order of (starts_at_us, id), from after that pair on."""
        ...

    async def find_events(self, search: EventSearch) -> tuple[list[Event], bool]:
        """A page of what a search finds, in the same order, and whether there is more."""
        ...

    async def newest_change(self) -> int:
        """The number of the newest change of any event. Numbers become visible in their order."""
        ...

    async def live_events(self, after: tuple[int, str], limit: int) -> list[Event]:
        """What is on sale or sold out, in order of (starts_at_us, id)."""
        ...

    async def changed_events(self, after: tuple[int, str], limit: int) -> list[tuple[int, str, Event | None]]:
        """(number, id, event) of what changed behind that pair, in its order; no event if it is not for sale."""
        ...


# --- Tickets ---------------------------------------------------------------------------------------------------------


class TicketIssuer(Protocol):
    """Signs tickets. Pure and quick (about 60 us a seat): no I/O, so it may be called while building the confirm."""

    def issue(self, booking: Booking, *, rotating: bool = False) -> tuple[NewTicket, ...]:
        """One signed ticket per seat of a booking about to be confirmed: pass them to `Ledger.confirm(tickets=...)`.

        `rotating` is the event's choice (`Event.rotating_codes`), which is fixed once the event is published.
        The same booking (id, fence, seats) always gets the same tickets, byte for byte, so a repeated confirm and
        every message about it show the same QR.
        """
        ...


class TicketBook(Protocol):
    """Tickets and scans in the ledger. Cancelling or refunding a booking revokes its tickets in the same transaction;
    a partial refund puts `Query("revoke_tickets", [(booking_id, seat_index, now_us)])` into its own."""

    async def ticket(self, ticket_id: str) -> Ticket | None: ...

    async def tickets_of(self, booking_id: str) -> list[Ticket]:
        """All tickets of a booking, revoked ones included, by seat."""
        ...

    async def name_of_buyer(self, booking_id: str) -> str:
        """The name that was given when the booking was bought; empty when none was."""
        ...

    async def revoked_tickets(
        self, event_id: str, after: tuple[int, str] = (-1, ""), limit: int = 1_000
    ) -> list[tuple[str, int]]:
        """The event's revocation list as (ticket id, revoked_at_us), oldest first; `after` is (revoked_at_us, id)."""
        ...

    async def record_scans(self, scans: Sequence[Scan]) -> list[DuplicateScan]:
        """Take in what gates scanned, in any order and safe to repeat; answers which of these tickets have been let
        in more than once so far."""
        ...

    async def duplicate_scans(self, event_id: str, after: int = 0, limit: int = 100) -> list[DuplicateScan]:
        """Tickets of the event that were let in more than once."""
        ...
