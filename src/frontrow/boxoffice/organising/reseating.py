"""Moving a booking to other free seats of equal price (B13): the claim store keeps them, the ledger decides, the map
follows. Whatever fails on the way, the booking has its old seats or its new ones, never both and never none."""

import contextlib
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from frontrow.boxoffice.checkout.payment_driver import Seats
from frontrow.boxoffice.model.bookings import Booking
from frontrow.boxoffice.model.claims import ClaimRefused, SeatClaim
from frontrow.boxoffice.model.event_changes import Change, ReseatRefused
from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.model.holds import SeatsTaken
from frontrow.boxoffice.model.reseating import Reseat
from frontrow.boxoffice.model.venues import Plan
from frontrow.boxoffice.ports.ledger import TicketIssuer
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError, NotFound, Refused

CLAIM_US: Final = 30 * US_PER_S  # for the moment between the claim store and the ledger


class ReseatBook(Protocol):
    async def reseat(self, ask: Reseat, change: Change) -> Booking: ...


class Reseating:
    """Moves bookings."""

    def __init__(self, book: ReseatBook, claims: SeatClaims, issuer: TicketIssuer, seats: Seats, clock: Clock) -> None:
        self._book, self._claims, self._issuer, self._seats, self._clock = book, claims, issuer, seats, clock

    async def move(
        self, event: Event, plan: Plan, booking: Booking, leave: Sequence[int], come: Sequence[int], change: Change
    ) -> Booking:
        """The booking on `come` instead of `leave`, each for the price of the one it stands for."""
        pairs = paired(event, plan, leave, come)
        seats = tuple(sorted(come))
        tickets = self._issuer.issue(replace(booking, seats=seats), rotating=event.rotating_codes)
        now_us = self._clock()
        await self._claim(booking, seats, now_us)
        try:
            moved = await self._book.reseat(Reseat(booking.id, booking.fence, pairs, tickets, now_us), change)
        except Refused:
            with contextlib.suppress(FrontrowError):  # else the claim ends by itself
                await self._claims.release(event.id, seats, booking.id)
            raise
        with contextlib.suppress(FrontrowError):  # recovery makes the claim store agree
            await self._seats.sold(moved)
            await self._seats.freed(event.id, sorted(leave), booking.id)
        return moved

    async def _claim(self, booking: Booking, seats: tuple[int, ...], now_us: int) -> None:
        wish = SeatClaim(booking.event_id, seats, booking.fan, booking.id, now_us + CLAIM_US)
        try:
            answer = await self._claims.claim(wish, now_us)
        except NotFound:  # an event that is sold nowhere any more has no claims; the ledger decides alone
            return
        if isinstance(answer, ClaimRefused):
            raise SeatsTaken(booking.event_id, [taken.seat for taken in answer.taken])


def paired(event: Event, plan: Plan, leave: Sequence[int], come: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Old and new seats of equal price, side by side; ReseatRefused when they do not match."""
    if not leave or len(set(leave)) != len(leave) or len(set(come)) != len(come) or len(leave) != len(come):
        raise ReseatRefused("name as many different new seats as seats to leave", param="to")
    if set(leave) & set(come):
        raise ReseatRefused("a seat cannot be left and taken at once", param="to")
    kept = sorted(seat for seat in come if seat in event.withheld)
    if kept:
        raise ReseatRefused(f"{plan.seat_id(kept[0])} is withheld; release it first", param="to")

    def price(seat: int) -> tuple[int, int]:
        return event.tier(plan.seats[seat].tier).price.minor, seat

    pairs = tuple(zip(sorted(leave, key=price), sorted(come, key=price), strict=True))
    for old, new in pairs:
        if price(old)[0] != price(new)[0]:
            raise ReseatRefused(
                f"{plan.seat_id(new)} does not cost what {plan.seat_id(old)} costs; refund and sell anew", param="to"
            )
    return pairs
