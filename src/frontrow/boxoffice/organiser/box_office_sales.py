"""Sells and gives away tickets at the box office, without a waiting room and without the payment provider.

Ticket types, add-ons, codes and shared limits are those of the checkout, counted together with the fans' bookings. Only
what protects a sale from single fans does not apply: the cap per person and the bounds per booking.

The claim store reserves the seats, the ledger decides, and one transaction confirms the booking with its payment, its
tickets and the note of who sold it. A sale that dies on the way leaves a hold that ends by itself.
"""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.events.model.events import Event, EventStatus, NotOnSale
from frontrow.boxoffice.holds.model.bookings import ACTIVE_STATES, Booking, BookingState, MoveRefused
from frontrow.boxoffice.holds.model.claims import ClaimRefused, SeatClaim
from frontrow.boxoffice.holds.model.holds import IdempotencyMismatch, NewHold, SeatsTaken
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.holds.ports.seat_listener import SeatListener
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.organiser.bookings import seat_indexes
from frontrow.boxoffice.organiser.model.box_office_sales import (
    MAX_SEATS_PER_SALE,
    SALE_HOLD_S,
    BoxOfficeTotal,
    BoxOfficeWish,
    PaidBy,
    buyer_id,
)
from frontrow.boxoffice.organiser.ports.ledger import OrganiserLedger
from frontrow.boxoffice.payments.model.payments import EXTERNAL, Payment, PaymentState
from frontrow.boxoffice.payments.payment_log import log_sale
from frontrow.boxoffice.people.model.email_addresses import checked_email, is_email
from frontrow.boxoffice.people.model.person_names import clean_name
from frontrow.boxoffice.pricing.model.booking_choices import (
    BookingChoice,
    ChosenPrice,
    Reprice,
    Use,
    choice_of,
    free_of_charge,
    price_choice,
)
from frontrow.boxoffice.pricing.model.prices import decode_lines, encode_lines
from frontrow.boxoffice.pricing.model.sale_options import fold_code
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.boxoffice.tickets.ports.tickets import TicketIssuer
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError, InvalidInput, NotFound, Refused
from frontrow.shared.ids import Ids, check_id

SELLS = frozenset({EventStatus.ON_SALE, EventStatus.SOLD_OUT})
NOTHING_ELSE = BoxOfficeWish()


class BoxOfficeSales:
    """Sells seats for staff. The caller has checked whose event it is."""

    def __init__(
        self,
        ledger: OrganiserLedger,
        claims: SeatClaims,
        issuer: TicketIssuer,
        seats: SeatListener,
        plan_of: Callable[[str], Awaitable[Plan]],
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._ledger, self._claims, self._issuer, self._seats = ledger, claims, issuer, seats
        self._plan_of, self._clock, self._ids = plan_of, clock, ids

    def new_booking_id(self) -> str:
        """The id of a sale that is about to be made: whoever sends it twice sells once."""
        return self._ids.new("bkg")

    async def sell(
        self,
        editor: Editor,
        event: Event,
        seat_ids: Sequence[str],
        paid_by: PaidBy,
        *,
        name: str = "",
        email: str = "",
        booking_id: str = "",
        wish: BoxOfficeWish = NOTHING_ELSE,
    ) -> Booking:
        """Sell these seats, also withheld ones. Free tickets need a name and an address; they are mailed.

        The same `booking_id` again is the same sale. With something else to sell it raises `IdempotencyMismatch`.
        """
        booking_id = check_id(booking_id, "bkg") if booking_id else self.new_booking_id()
        earlier = await self._ledger.booking(booking_id)
        if earlier is not None and earlier.state is BookingState.CONFIRMED and earlier.sold_by == editor.id:
            await self._check_repeated(earlier, event, seat_ids, paid_by, wish)
            return earlier  # sent twice
        buyer = _buyer(buyer_id(event.id, booking_id), name, email, paid_by)
        if event.status not in SELLS:
            raise NotOnSale(f"{event.name} is {event.status.value.replace('_', ' ')}", reason=event.status.value)
        if not 1 <= len(seat_ids) <= MAX_SEATS_PER_SALE:
            raise InvalidInput(f"sell 1 to {MAX_SEATS_PER_SALE} seats at once, not {len(seat_ids)}", param="seats")
        seats, price = await self.price(event, seat_ids, wish, paid_by)
        if earlier is not None and earlier.sold_by == editor.id and earlier.live(self._clock()):  # was interrupted
            if earlier.price_lines != encode_lines(price.quote.lines):
                raise IdempotencyMismatch(booking_id)
            if earlier.state is BookingState.PAYING:  # what it uses is counted already
                price = ChosenPrice(price.quote, ())
        try:
            return await self._sell(editor, event, buyer, seats, price, paid_by, booking_id)
        except Refused:
            made = await self._ledger.booking(booking_id)
            if made is None or made.state is not BookingState.CONFIRMED or made.sold_by != editor.id:
                raise
            await self._check_repeated(made, event, seat_ids, paid_by, wish)
            return made  # sent twice at the same time

    async def _check_repeated(
        self, earlier: Booking, event: Event, seat_ids: Sequence[str], paid_by: PaidBy, wish: BoxOfficeWish
    ) -> None:
        """Raise `IdempotencyMismatch` unless this sale is the one that was made under the same booking id."""
        payments = await self._ledger.payments.payments_of(earlier.id)
        if earlier.event_id != event.id or (payments and payments[0].method != paid_by.value):
            raise IdempotencyMismatch(earlier.id)
        plan = await self._plan_of(event.plan_hash)
        seats = tuple(sorted(seat_indexes(plan, list(dict.fromkeys(seat_ids)), "seats")))
        made = choice_of(event, decode_lines(earlier.price_lines))
        first = event.ticket_types[0].key if event.ticket_types else ""
        types = {seat: wish.types.get(plan.seat_id(seat), first) for seat in seats}
        same_types = all(made.types.get(seat, key) == key for seat, key in types.items())
        add_ons = {key: count for key, count in wish.add_ons.items() if count}
        same_options = same_types and add_ons == dict(made.add_ons) and fold_code(wish.code) == made.code
        if seats != earlier.seats or not same_options:
            raise IdempotencyMismatch(earlier.id)
        if not payments and paid_by is not PaidBy.FREE:  # these tickets were given away, unless they cost nothing
            _, price = await self.price(event, seat_ids, wish, paid_by)
            if price.quote.total_minor:
                raise IdempotencyMismatch(earlier.id)

    async def price(
        self, event: Event, seat_ids: Sequence[str], wish: BoxOfficeWish, paid_by: PaidBy
    ) -> tuple[tuple[int, ...], ChosenPrice]:
        """These seats in the plan's order, and what they cost with this wish."""
        plan = await self._plan_of(event.plan_hash)
        seats = tuple(sorted(seat_indexes(plan, list(dict.fromkeys(seat_ids)), "seats")))
        indexes = {plan.seat_id(seat): seat for seat in seats}
        foreign = sorted(wish.types.keys() - indexes.keys())
        if foreign:
            raise InvalidInput(f"{foreign[0][:100]} is not among the seats to sell", param="types")
        types = {indexes[seat_id]: key for seat_id, key in wish.types.items()}
        choice = BookingChoice(types, wish.add_ons, fold_code(wish.code))
        if choice.code and paid_by is PaidBy.FREE:
            raise InvalidInput("free tickets need no code", param="code")
        chosen = price_choice(event, plan, seats, choice, self._clock(), by_staff=True)
        if paid_by is PaidBy.FREE:
            return seats, ChosenPrice(free_of_charge(chosen.quote), chosen.uses)
        return seats, chosen

    async def _sell(
        self,
        editor: Editor,
        event: Event,
        buyer: Contact,
        seats: tuple[int, ...],
        price: ChosenPrice,
        paid_by: PaidBy,
        booking_id: str,
    ) -> Booking:
        now_us = self._clock()
        until_us = now_us + SALE_HOLD_S * US_PER_S
        quote = price.quote
        hold = NewHold(
            booking_id,
            event.id,
            buyer.fan,
            seats,
            now_us,
            until_us,
            amount_minor=quote.total_minor,
            currency=event.currency,
            prices_minor=quote.seat_totals_minor,
            price_lines=encode_lines(quote.lines),
            sold_by=editor.id,
        )
        await self._claim(SeatClaim(event.id, seats, buyer.fan, booking_id, until_us), now_us)
        try:
            placed = await self._ledger.place_hold(hold)
            if price.uses:
                await self._count(hold, placed.fence, price.uses)
            if buyer.email or buyer.name:
                await self._ledger.messages.keep_buyer(buyer, event.id, now_us)
            sold = await self._confirm(editor, event, placed.booking_id, placed.fence, paid_by)
            log_sale(sold)
        except Refused:
            with contextlib.suppress(FrontrowError):  # otherwise the claim expires
                made = await self._ledger.booking(booking_id)
                if made is None or made.state not in ACTIVE_STATES:  # else the same sale, sent twice, has these seats
                    await self._claims.release(event.id, seats, booking_id)
            raise
        with contextlib.suppress(FrontrowError):  # recovery makes the claim store agree
            await self._seats.sold(sold)
        return sold

    async def _count(self, hold: NewHold, fence: int, uses: tuple[Use, ...]) -> None:
        """Count what the sale uses. If something is used up, its seats are free at once."""
        now_us = self._clock()
        ask = Reprice(hold.booking_id, fence, now_us, hold.seats, (), hold.amount_minor, hold.price_lines, uses)
        try:
            await self._ledger.reprice(ask)
        except Refused as error:
            if isinstance(error, MoveRefused) and error.state is BookingState.PAYING:
                return  # the same sale, sent twice, has counted it
            await self._ledger.release_hold(hold.booking_id, fence, now_us)
            raise

    async def _confirm(self, editor: Editor, event: Event, booking_id: str, fence: int, paid_by: PaidBy) -> Booking:
        """Sell the held seats and note who did it, in one transaction."""
        now_us = self._clock()
        booking = await self._ledger.begin_payment(booking_id, fence, now_us)
        tickets = self._issuer.issue(booking, rotating=event.rotating_codes)
        amount_minor = booking.amount_minor
        payment = Payment(
            f"pay_{booking_id.removeprefix('bkg_')}_1",
            booking_id,
            1,
            EXTERNAL,
            amount_minor,
            booking.currency,
            PaymentState.CAPTURED,
            method=paid_by.value,
            created_at_us=now_us,
            changed_at_us=now_us,
        )
        detail = {
            "booking": booking_id,
            "paid_by": paid_by.value,
            "amount_minor": amount_minor,
            "seats": len(booking.seats),
        }
        act = "give_tickets" if paid_by is PaidBy.FREE else "desk_sale"
        return await self._ledger.organiser.sell_noted(
            booking_id,
            fence,
            payment if amount_minor else None,
            tickets,
            now_us=now_us,
            change=Change(editor, act, event.id, now_us, detail),
        )

    async def _claim(self, claim: SeatClaim, now_us: int) -> None:
        try:
            answer = await self._claims.claim(claim, now_us)
        except NotFound:  # an event that is not on sale here has no claims; the ledger decides alone
            return
        if isinstance(answer, ClaimRefused):
            raise SeatsTaken(claim.event_id, [taken.seat for taken in answer.taken])

    async def totals(self, event: Event, day: date | None) -> tuple[date, list[BoxOfficeTotal]]:
        """A day in the venue's time (None: today), and what each member of the team took on it, by way of payment."""
        venue = await self._ledger.catalogue.venue(event.venue_id)
        zone = ZoneInfo(venue.time_zone if venue else "UTC")
        day = day or datetime.fromtimestamp(self._clock() / US_PER_S, zone).date()
        begins = datetime(day.year, day.month, day.day, tzinfo=zone)
        after = day + timedelta(days=1)
        ends = datetime(after.year, after.month, after.day, tzinfo=zone)
        from_us, before_us = (int(moment.timestamp()) * US_PER_S for moment in (begins, ends))
        return day, await self._ledger.organiser.box_office_totals(event.id, from_us, before_us)


def _buyer(fan: str, name: str, email: str, paid_by: PaidBy) -> Contact:
    """The buyer, or an error that says what is missing."""
    name = clean_name(name)
    if email and not is_email(email):
        raise InvalidInput("this is not an e-mail address; one is like ada@example.org", param="email")
    if paid_by is PaidBy.FREE and not (name and email):
        raise InvalidInput("free tickets need the guest's name and e-mail address", param="email" if name else "name")
    return Contact(fan, checked_email(email) if email else "", name=name)
