"""The port of what organisers read and write: bookings, box-office sales, waitlists, webhooks, the audit log."""

from collections.abc import Sequence
from typing import Protocol

from frontrow.boxoffice.checkout.ports import SellerBook, SellerReads
from frontrow.boxoffice.events.model.event_changes import Change, NotedChange
from frontrow.boxoffice.events.ports import EventBook, OwnEventReads
from frontrow.boxoffice.gate.ports import ScanBook, ScanReads
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.messages.model.messages import Buyer, Endpoint, SentDelivery
from frontrow.boxoffice.organiser.model.booking_search import BookingSearch
from frontrow.boxoffice.organiser.model.box_office_sales import BoxOfficeTotal
from frontrow.boxoffice.organiser.model.reseating import Reseat
from frontrow.boxoffice.payments.model.payments import Payment
from frontrow.boxoffice.refunds.ports.refunds import RefundBook, RefundReads
from frontrow.boxoffice.tickets.model.tickets import NewTicket
from frontrow.boxoffice.waitlist.model.waitlist import WaitlistEntry


class OrganiserReads(OwnEventReads, RefundReads, ScanReads, SellerReads, Protocol):
    """What organisers look at (`ledger.organiser`).

    Bookings come newest first; `before` is the fence of the last one of the page before.
    """

    async def changes(
        self,
        organiser_id: str,
        event_id: str,
        before: int,
        limit: int,
        *,
        act: str = "",
        actor: str = "",
        booking_id: str = "",
    ) -> list[NotedChange]:
        """Noted changes, newest first, filtered by event, act, member or booking."""
        ...

    async def event_bookings(self, event_id: str, state: str, before: int, limit: int) -> list[Booking]:
        """Bookings in this state. An empty state means all."""
        ...

    async def bookings_by_email(self, event_id: str, email: str, before: int, limit: int) -> list[Booking]: ...

    async def bookings_by_name(self, event_id: str, words: Sequence[str], before: int, limit: int) -> list[Booking]:
        """Bookings whose buyer's name contains all these folded words (`person_names.search_words`)."""
        ...

    async def bookings_on_seat(self, event_id: str, seat: int, before: int, limit: int) -> list[Booking]:
        """Bookings that have or had this seat."""
        ...

    async def bookings_by_part(self, event_id: str, search: BookingSearch, before: int, limit: int) -> list[Booking]:
        """Bookings whose number, or whose buyer's address, contains this part. Reads at most `MAX_SCANNED` bookings."""
        ...

    async def buyers_of(self, fans: Sequence[str]) -> dict[str, Buyer]:
        """Name and address per fan, for those who gave any."""
        ...

    async def box_office_totals(self, event_id: str, from_us: int, before_us: int) -> list[BoxOfficeTotal]:
        """What each member of the team sold at the box office, by way of payment."""
        ...

    async def waitlist_page(self, event_id: str, state: str, after: int, limit: int) -> list[WaitlistEntry]: ...

    async def waitlist_counts(self, event_id: str) -> dict[str, tuple[int, int]]:
        """State -> (entries, seats)."""
        ...

    async def own_endpoints(self, organiser_id: str, after: str, limit: int) -> list[Endpoint]:
        """The organiser's webhooks by id, from after `after` on."""
        ...

    async def endpoint_deliveries(self, endpoint: Endpoint, before: int, limit: int) -> list[SentDelivery]:
        """Deliveries to a webhook before number `before` (0: all), newest first."""
        ...


class OrganiserBook(OrganiserReads, EventBook, RefundBook, ScanBook, SellerBook, Protocol):
    """What organisers and gates read and write (`ledger.organiser`).

    Every change is written in one transaction with the note of who made it, and only over the version it was made from.
    """

    async def note(self, change: Change) -> None:
        """Write only the note. The change itself was made elsewhere, for example in the waiting room."""
        ...

    async def change_email(self, booking: Booking, email: str, change: Change) -> bool:
        """Correct the address of a booking's buyer. False when it was this one already."""
        ...

    async def reseat(self, ask: Reseat, change: Change) -> Booking:
        """Move a confirmed booking to other seats, in one transaction."""
        ...

    async def sell_noted(
        self,
        booking_id: str,
        fence: int,
        payment: Payment | None,
        tickets: Sequence[NewTicket],
        *,
        now_us: int,
        change: Change,
    ) -> Booking:
        """Confirm a sale by staff with its payment (None: free), its tickets and the note of who sold, in one
        transaction. A repeated sale is not noted again."""
        ...

    async def write_endpoint(self, endpoint: Endpoint, change: Change) -> None: ...

    async def redeliver(self, endpoint: Endpoint, number: int, change: Change) -> bool:
        """Send a delivery once more. False when the webhook has no such delivery."""
        ...
