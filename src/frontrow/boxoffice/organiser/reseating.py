"""Moves a booking to other free seats of equal price (B13).

The claim store reserves the new seats, the ledger decides, the seat map follows. Whatever fails on the way, the booking
has its old seats or its new ones, never both and never none.
"""

import contextlib
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.claims import ClaimRefused, SeatClaim
from frontrow.boxoffice.holds.model.holds import SeatsTaken
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.holds.ports.seat_listener import SeatListener
from frontrow.boxoffice.organiser.model.reseating import Reseat, ReseatRefused
from frontrow.boxoffice.organiser.ports.organiser_book import OrganiserBook
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.boxoffice.tickets.ports.tickets import TicketIssuer
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError, NotFound, Refused

CLAIM_US: Final = 30 * US_PER_S  # long enough for the ledger to decide


class Reseater:
    """Moves bookings to other seats."""

    def __init__(
        self, book: OrganiserBook, claims: SeatClaims, issuer: TicketIssuer, seats: SeatListener, clock: Clock
    ) -> None:
        self._book, self._claims, self._issuer, self._seats, self._clock = book, claims, issuer, seats, clock

    async def move(
        self, event: Event, plan: Plan, booking: Booking, leave: Sequence[int], come: Sequence[int], change: Change
    ) -> Booking:
        """Move the booking from the seats `leave` to the seats `come`, each to one of the same price."""
        pairs = pair_seats(event, plan, leave, come)
        seats = tuple(sorted(come))
        tickets = self._issuer.issue(replace(booking, seats=seats), rotating=event.rotating_codes)
        now_us = self._clock()
        await self._claim(booking, seats, now_us)
        try:
            moved = await self._book.reseat(Reseat(booking.id, booking.fence, pairs, tickets, now_us), change)
        except Refused:
            with contextlib.suppress(FrontrowError):  # otherwise the claim expires
                await self._claims.release(event.id, seats, booking.id)
            raise
        with contextlib.suppress(FrontrowError):  # recovery updates the claim store later
            await self._seats.sold(moved)
            await self._seats.freed(event.id, sorted(leave), booking.id)
        return moved

    async def _claim(self, booking: Booking, seats: tuple[int, ...], now_us: int) -> None:
        claim = SeatClaim(booking.event_id, seats, booking.fan, booking.id, now_us + CLAIM_US)
        try:
            answer = await self._claims.claim(claim, now_us)
        except NotFound:  # an event that is not on sale has no claims; the ledger decides alone
            return
        if isinstance(answer, ClaimRefused):
            raise SeatsTaken(booking.event_id, [taken.seat for taken in answer.taken])


def pair_seats(event: Event, plan: Plan, leave: Sequence[int], come: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Pairs of old and new seats of equal price, or `ReseatRefused` when they do not match."""
    if not leave or len(set(leave)) != len(leave) or len(set(come)) != len(come) or len(leave) != len(come):
        raise ReseatRefused("name as many different new seats as seats to leave", param="to")
    if set(leave) & set(come):
        raise ReseatRefused("a seat cannot be left and taken at once", param="to")
    withheld = sorted(seat for seat in come if seat in event.withheld)
    if withheld:
        raise ReseatRefused(f"{plan.seat_id(withheld[0])} is withheld; release it first", param="to")

    def price(seat: int) -> tuple[int, int]:
        return event.tier(plan.seats[seat].tier).price.minor, seat

    pairs = tuple(zip(sorted(leave, key=price), sorted(come, key=price), strict=True))
    for old, new in pairs:
        if price(old)[0] != price(new)[0]:
            prices = f"{plan.seat_id(new)} costs a different price than {plan.seat_id(old)}"
            raise ReseatRefused(f"{prices}; refund the booking and sell it again", param="to")
    return pairs
