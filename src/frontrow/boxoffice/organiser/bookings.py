"""What a box office does with the bookings of its event (B12, B13): find, refund, reseat, cancel, transfer, resend.

The API and the pages use the same methods. Every change is recorded with who made it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState, Move, MoveRefused
from frontrow.boxoffice.messages.notifications import Notifier
from frontrow.boxoffice.organiser.model.booking_search import read_search
from frontrow.boxoffice.organiser.model.reseating import ReseatRefused
from frontrow.boxoffice.organiser.ports.ledger import OrganiserLedger
from frontrow.boxoffice.organiser.reseating import Reseater
from frontrow.boxoffice.people.model.email_addresses import checked_email, is_email
from frontrow.boxoffice.people.model.person_names import search_words
from frontrow.boxoffice.refunds.model.refund_lines import add_ons_gone, decode_refund_lines
from frontrow.boxoffice.refunds.model.refunds import Refund
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.seats.model.venues import Plan, UnknownSeats
from frontrow.boxoffice.tickets.model.ticket_transfers import Transfer, TransferState
from frontrow.boxoffice.tickets.ticket_transfers import TicketTransfers
from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput, Refused

MAX_SEATS: Final = 100  # per request


class OrganiserBookings:
    """Finds and changes bookings for the organiser of their event. The caller has checked whose event it is."""

    def __init__(
        self,
        ledger: OrganiserLedger,
        refunds: Refunds,
        reseater: Reseater,
        transfers: TicketTransfers,
        notifier: Notifier,
        plan_of: Callable[[str], Awaitable[Plan]],
        clock: Clock,
    ) -> None:
        self._ledger, self._refunds, self._reseater, self._notifier = ledger, refunds, reseater, notifier
        self._transfers = transfers
        self._plan_of, self._clock = plan_of, clock

    async def find(self, event: Event, text: str, before: int, limit: int) -> list[Booking]:
        """Bookings found by a booking's number or a part of it, a seat, or a part of a name or an e-mail address."""
        search = read_search(text, await self._plan_of(event.plan_hash))
        book = self._ledger.organiser
        if search.booking_id:
            return await self.by_id(event, search.booking_id)
        if search.seat is not None:
            return await book.bookings_on_seat(event.id, search.seat, before, limit)
        exact = await book.bookings_by_email(event.id, search.email, before, limit) if search.email else []
        if exact or (before and search.email):
            return exact
        found = {one.fence: one for one in await book.bookings_by_name(event.id, search.words, before, limit)}
        if search.needs_scan:
            found |= {one.fence: one for one in await book.bookings_by_part(event.id, search, before, limit)}
        return [found[fence] for fence in sorted(found, reverse=True)[:limit]]

    async def by_id(self, event: Event, booking_id: str) -> list[Booking]:
        """The booking with this number, if it is of this event."""
        found = await self._ledger.booking(booking_id)
        return [found] if found is not None and found.event_id == event.id else []

    async def by_email(self, event: Event, email: str, before: int, limit: int) -> list[Booking]:
        """Purchases and live bookings of this address."""
        return await self._ledger.organiser.bookings_by_email(event.id, checked_email(email), before, limit)

    async def by_name(self, event: Event, name: str, before: int, limit: int) -> list[Booking]:
        """Bookings of buyers with these words, or parts of them, in their name."""
        return await self._ledger.organiser.bookings_by_name(event.id, search_words(name), before, limit)

    async def by_seat(self, event: Event, seat: str, before: int, limit: int) -> list[Booking]:
        """Bookings that have or had this seat. `UnknownSeats` when the plan has no such seat."""
        (index,) = seat_indexes(await self._plan_of(event.plan_hash), [seat], "seat")
        return await self._ledger.organiser.bookings_on_seat(event.id, index, before, limit)

    async def by_state(self, event: Event, state: str, before: int, limit: int) -> list[Booking]:
        """Bookings in this state. An empty state means all."""
        return await self._ledger.organiser.event_bookings(event.id, state, before, limit)

    async def refund(
        self,
        editor: Editor,
        event: Event,
        booking: Booking,
        seats: Sequence[str],
        *,
        keep_fee: bool,
        reason: str,
        add_ons: Mapping[str, int] | None = None,
        number: int | None = None,
    ) -> Refund:
        """Refund some seats and add-ons, or everything when nothing is named, whatever the event's policy says.

        `keep_fee`: less what the policy keeps. `number`: of the quote, so that a repeated call refunds once.
        """
        indexes = seat_indexes(await self._plan_of(event.plan_hash), seats, "seats") if seats else None

        def note(new: Refund) -> Change:
            counts = {"amount_minor": new.amount_minor, "seats": len(new.seats)}
            extras = add_ons_gone([decode_refund_lines(new.lines)]).total()
            counts |= {"add_ons": extras} if extras else {}
            return self._change(editor, "refund", event, {"booking": booking.id, "refund": new.id, **counts})

        return await self._refunds.override(
            booking.id,
            indexes,
            add_ons,
            number=number,
            free_of_fee=not keep_fee,
            reason=f"organiser:{reason}" if reason else "organiser",
            note=note,
        )

    async def retry_refund(self, editor: Editor, event: Event, booking: Booking, refund_id: str) -> Refund:
        """Ask the provider again for a refund that failed."""

        def note(failed: Refund) -> Change:
            detail = {"booking": booking.id, "refund": failed.id, "amount_minor": failed.amount_minor}
            return self._change(editor, "retry_refund", event, detail)

        return await self._refunds.retry(booking.id, refund_id, note)

    async def reseat(
        self, editor: Editor, event: Event, booking: Booking, leave: Sequence[str], to: Sequence[str]
    ) -> Booking:
        """Move the booking from the seats `leave` to the free seats `to`, each to one of the same price."""
        if max(len(leave), len(to)) > MAX_SEATS:
            raise ReseatRefused(f"at most {MAX_SEATS} seats can be moved at once", param="to")
        plan = await self._plan_of(event.plan_hash)
        old, new = seat_indexes(plan, leave, "leave"), seat_indexes(plan, to, "to")
        detail = {"booking": booking.id, "leave": list(leave), "to": list(to)}
        change = self._change(editor, "reseat", event, detail)
        return await self._reseater.move(event, plan, booking, old, new, change)

    async def transfer(
        self, editor: Editor, event: Event, booking: Booking, seat: str, email: str, locale: str
    ) -> Transfer:
        """Send the ticket of a seat to somebody else for whoever has it now. It changes hands when they accept.

        `TransferRefused` where the event does not allow it, or the ticket is used, void or on its way to somebody else.
        """
        (index,) = seat_indexes(await self._plan_of(event.plan_hash), [seat], "seat")
        held_by = [
            one.id
            for one in await self._ledger.transfers.transfers_of(booking.id)
            if one.seat_index == index and one.state is TransferState.ACCEPTED
        ]
        sent = await self._transfers.send(booking, index, email, locale, held_by[-1] if held_by else "")
        change = self._change(editor, "transfer_ticket", event, {"booking": booking.id, "leave": [seat]})
        await self._ledger.organiser.note(change)
        return sent

    async def cancel_unpaid(self, editor: Editor, event: Event, booking: Booking) -> None:
        """Cancel a booking that is not paid yet. `MoveRefused` for any other."""
        if booking.state not in (BookingState.HELD, BookingState.PAYING):
            raise MoveRefused(booking.id, booking.state, Move.CANCEL)
        became = await self._refunds.cancel_booking(booking.id)
        if became == "failed":
            raise Refused("the booking could not be cancelled; try again", booking=booking.id)
        change = self._change(editor, "cancel_booking", event, {"booking": booking.id, "became": became})
        await self._ledger.organiser.note(change)

    async def resend_tickets(self, editor: Editor, event: Event, booking: Booking) -> bool:
        """Send the tickets by e-mail again. False when the booking has no tickets or no address."""
        if booking.state is not BookingState.CONFIRMED or not await self._notifier.resend_confirmation(booking):
            return False
        await self._ledger.organiser.note(self._change(editor, "resend", event, {"booking": booking.id}))
        return True

    async def change_email(self, editor: Editor, event: Event, booking: Booking, email: str) -> bool:
        """Correct the buyer's address, and send the tickets there. Returns whether anything changed.

        `EmailChangeRefused` for buyers with an account, and for those who bought from other organisers too.
        """
        if not is_email(email):
            raise InvalidInput("this is not an e-mail address; one is like ada@example.org", param="email")
        change = self._change(editor, "change_email", event, {"booking": booking.id})
        if not await self._ledger.organiser.change_email(booking, checked_email(email), change):
            return False
        if booking.state is BookingState.CONFIRMED:
            await self._notifier.resend_confirmation(booking)
        return True

    def _change(self, editor: Editor, act: str, event: Event, detail: dict[str, Any]) -> Change:
        return Change(editor, act, event.id, self._clock(), detail)


def seat_indexes(plan: Plan, seats: Sequence[str], param: str) -> list[int]:
    """The indexes of seats by their public ids. `UnknownSeats` names the parameter they came in."""
    try:
        return plan.indexes(seats)
    except UnknownSeats as error:
        error.param = param
        raise
