"""Transaction programs of ticket returns (see `holds/booking_transactions.py` for what a program is)."""

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec
from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import (
    MakeMove,
    Program,
    booking_of,
    encode_seats,
    make_moves,
    scanned_seats,
    transferred_seats,
)
from frontrow.boxoffice.adapters.ledger.payments.payment_transactions import lower_uses, refund_of
from frontrow.boxoffice.adapters.ledger.tickets.redemption_transactions import read_used
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.facts.model import Fact, TicketResold, TicketReturned
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound, BookingState, Move, StaleFence
from frontrow.boxoffice.payments.model.payments import ENDED
from frontrow.boxoffice.pricing.model.booking_choices import choice_of, uses_left
from frontrow.boxoffice.pricing.model.prices import decode_lines, has_add_ons
from frontrow.boxoffice.refunds.model.refund_lines import PaidFor, add_ons_gone, decode_refund_lines, paid_for
from frontrow.boxoffice.refunds.model.refund_rules import resale_sum
from frontrow.boxoffice.refunds.model.ticket_returns import NotReturnable, Return, ReturnState, return_id
from frontrow.boxoffice.tickets.model.ticket_transfers import TicketTransferred
from frontrow.boxoffice.tickets.model.tickets import TicketScanned


def return_of(row: Row) -> Return:
    key, booking_id, event_id, fan, fence, seat, price_minor, currency, state, resold = row[:10]
    return Return(key, booking_id, event_id, fan, fence, seat, price_minor, currency, ReturnState(state), resold)


def begin_return(
    booking_id: str, fan: str, fence: int, seats: Sequence[int], now_us: int, facts: list[Fact]
) -> Program[list[Return] | BaseException]:
    """Record the intent to give these seats back. Seats given back before are returned as they are."""
    rows = yield Query("lock_bookings", [(booking_id,)])
    if not rows or rows[0][2] != fan:
        return BookingNotFound(booking_id)
    booking = booking_of(rows[0])
    if booking.fence != fence:
        return StaleFence(booking_id, fence)
    returns = yield from _read_returns(booking_id)
    own = set(booking.seats) if booking.state is BookingState.CONFIRMED else set[int]()
    again = [g for g in returns.values() if g.state is ReturnState.VOID and g.seat_index in own & set(seats)]
    new = sorted(seat for seat in seats if seat not in returns)
    if not set(new) <= own:
        return NotReturnable("only seats that you bought can be given back", booking=booking_id, seats=new)
    if new or again:
        refused = yield from _why_not(booking, {*new, *(g.seat_index for g in again)})
        if refused is not None:
            return refused
    if new:
        paid = yield from _paid_for(booking)
        common = (booking_id, booking.event_id, fan, fence)
        rows = [
            (return_id(booking_id, s), *common, s, booking.currency, now_us, paid.seats[s])
            for s in new
            if s in paid.seats
        ]
        yield Query("add_returns", rows)
    if again:  # seats that could not be given back earlier, because their tickets were scanned
        yield Query("turn_returns", sorted((g.id, "void", "giving", "", now_us) for g in again))
    returns = yield from _read_returns(booking_id)
    return [returns[seat] for seat in sorted(set(seats)) if seat in returns]


def _paid_for(booking: Booking) -> Program[PaidFor]:
    prices = {row[1]: row[2] for row in (yield Query("seat_prices_of", [(booking.id,)]))}
    used = yield from read_used([booking.id] if has_add_ons(booking.price_lines) else [])
    return paid_for(booking, prices, (yield from _add_ons_gone(booking)), used.get(booking.id, Counter()))


def _add_ons_gone(booking: Booking) -> Program[Counter[str]]:
    refunds = [refund_of(row) for row in (yield Query("refunds_of_bookings", [(booking.id,)]))]
    return add_ons_gone([decode_refund_lines(one.lines) for one in refunds])


def _why_not(booking: Booking, seats: set[int]) -> Program[BaseException | None]:
    """Why seats of a sold booking cannot be given back now, if so."""
    inside = (yield from scanned_seats([booking.id])).get(booking.id, set())
    if inside & seats:
        return TicketScanned(booking.id, sorted(inside & seats))
    if (yield from transferred_seats([booking.id])).get(booking.id, set()) & seats:
        return TicketTransferred(booking.id)
    payments = yield Query("payments_of_bookings", [(booking.id,)])
    settled = {"captured"} if booking.amount_minor else {"captured", *ENDED}  # it costs nothing, without its payment
    if payments and payments[-1][6] not in settled:
        return NotReturnable("your payment is not through yet; try again in a few minutes", booking=booking.id)
    return None


def _read_returns(booking_id: str) -> Program[dict[int, Return]]:
    rows = yield Query("returns_of_booking", params=(booking_id,))
    return {row[5]: return_of(row) for row in rows}


def list_returned(booking_id: str, seats: Sequence[int], now_us: int, facts: list[Fact]) -> Program[list[Return]]:
    """Free the seats that are being given back and list them for resale. Returns them with what is owed for them.

    A return is void if the booking has ended, or the ticket was scanned or transferred in the meantime.
    """
    rows = yield Query("lock_bookings", [(booking_id,)])
    returns = yield from _read_returns(booking_id)
    giving = [g for g in returns.values() if g.state is ReturnState.GIVING and g.seat_index in set(seats)]
    if not giving:
        return []
    booking = booking_of(rows[0])
    inside = (yield from scanned_seats([booking_id])).get(booking_id, set())
    inside |= (yield from transferred_seats([booking_id])).get(booking_id, set())
    own = set(booking.seats) - inside if booking.state is BookingState.CONFIRMED else set[int]()
    given = [g for g in giving if g.seat_index in own]
    freed = (yield from _free(booking, given, now_us, facts)) if given else True
    if not freed:  # another writer changed the booking: the next sweep sees how
        return []
    asked = sorted((g.id, "giving", "listed" if g in given else "void", "", now_us) for g in giving)
    turned = {row[0] for row in (yield Query("turn_returns", asked))}
    listed = [g for g in given if g.id in turned]
    if listed:
        returns = yield from _read_returns(booking_id)
        listed = [returns[g.seat_index] for g in listed]
        free = tuple(sorted(g.seat_index for g in listed))
        facts.append(TicketReturned(booking.id, booking.event_id, booking.fan, booking.fence, free, now_us))
    return listed


def _free(booking: Booking, given: Sequence[Return], now_us: int, facts: list[Fact]) -> Program[bool]:
    """Free the seats and revoke their tickets. The booking keeps its other seats, or is cancelled if it has none."""
    seats = sorted(g.seat_index for g in given)
    kept = [seat for seat in booking.seats if seat not in set(seats)]
    prices = _return_prices(booking, (yield from _paid_for(booking)), seats)
    changed = sorted((g.id, prices[g.seat_index]) for g in given if g.price_minor != prices[g.seat_index])
    if changed:
        yield Query("set_return_prices", changed)
    if not kept:
        ask = MakeMove(booking.id, Move.CANCEL, booking.fence, now_us, reason="returned")
        (moved,) = yield from make_moves([ask], facts)
        return not isinstance(moved, BaseException)
    price_minor = sum(prices.values())
    row = (booking.id, booking.fence, len(kept), encode_seats(kept), encode_seats(booking.seats), price_minor, now_us)
    if not (yield Query("shrink_returned", [row])):
        return False
    yield Query("free_some_seats", [(booking.id, seat) for seat in seats])
    yield Query("revoke_tickets", [(booking.id, seat, now_us) for seat in seats])
    yield from _lower_uses(booking, kept)
    return True


def _lower_uses(booking: Booking, kept: Collection[int]) -> Program[None]:
    """What the returned seats used of shared limits is free again: nobody could buy them otherwise."""
    if not (yield Query("uses_of_booking", [(booking.id,)])):
        return
    for _, document in (yield Query("events_by_id", [(booking.event_id,)])):
        event, lines = msgspec.json.decode(document, type=Event), decode_lines(booking.price_lines)
        gone = yield from _add_ons_gone(booking)
        add_ons = {key: count - gone[key] for key, count in choice_of(event, lines).add_ons.items()}
        yield from lower_uses([(booking.id, *use) for use in uses_left(event, lines, kept, add_ons)])


def _return_prices(booking: Booking, paid: PaidFor, seats: Sequence[int]) -> dict[int, int]:
    """What is owed for each of these seats. The last seats of a booking bring back all that is left with them; seats
    that leave a group behind which is too small bring back less (`refunds.model.refund_lines`)."""
    prices = {seat: paid.seats[seat] for seat in seats}
    more = resale_sum(booking, paid, seats).amount_minor - sum(prices.values())
    for seat in seats:
        change = max(more, -prices[seat])
        prices[seat] += change
        more -= change
    return prices


def find_resold(now_us: int, limit: int, facts: list[Fact]) -> Program[list[Return]]:
    """Mark listed seats that were sold again as resold. Returns those that this call found."""
    rows = yield Query("resold_returns", params=(limit,))
    first: dict[str, Row] = {}
    for row in rows:
        if row[0] not in first or row[10] < first[row[0]][10]:
            first[row[0]] = row
    if not first:
        return []
    return (yield from _resold({key: (return_of(row), row[9]) for key, row in first.items()}, now_us, facts))


def resell_moved(
    event_id: str, seats: Sequence[int], booking_id: str, now_us: int, facts: list[Fact]
) -> Program[list[Return]]:
    """Mark returns of seats to which a booking was moved as resold: their price is owed."""
    rows = yield Query("listed_on", [(event_id, seat) for seat in seats])
    listed = {row[0]: (return_of(row), booking_id) for row in rows if row[1] != booking_id}
    return (yield from _resold(listed, now_us, facts)) if listed else []


def _resold(found: dict[str, tuple[Return, str]], now_us: int, facts: list[Fact]) -> Program[list[Return]]:
    """Mark listed returns as resold, each with the booking that has its seat. Returns those that this call marked."""
    asked = sorted((key, "listed", "resold", booking_id, now_us) for key, (_, booking_id) in found.items())
    turned = yield Query("turn_returns", asked)
    resold = [replace(found[row[0]][0], state=ReturnState.RESOLD, resold_booking_id=found[row[0]][1]) for row in turned]
    facts.extend(
        TicketResold(
            r.booking_id,
            r.event_id,
            r.fan,
            r.fence,
            (r.seat_index,),
            now_us,
            return_id=r.id,
            resold_booking_id=r.resold_booking_id,
            amount_minor=r.price_minor,
            currency=r.currency,
        )
        for r in resold
    )
    return resold


def change_state(given_id: str, was: ReturnState, to: ReturnState, now_us: int, facts: list[Fact]) -> Program[bool]:
    return bool((yield Query("turn_returns", [(given_id, was.value, to.value, "", now_us)])))
