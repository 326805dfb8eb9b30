"""The lines of a refund as the dialogs of fans and organisers show them, and the add-ons that people choose for one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.pricing.model.prices import LineKind, decode_lines
from frontrow.boxoffice.refunds.model.refund_lines import (
    RefundChoice,
    RefundLine,
    RefundLineKind,
    add_on_names,
    covers_choice,
    decode_refund_lines,
)
from frontrow.boxoffice.refunds.model.refund_rules import RefundSum
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.model.ticket_returns import OWED_STATES, ReturnState
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import seat_places
from frontrow.web.site.languages import N_
from frontrow.web.site.routes import Form

# what a line without a name of its own says: withheld, and given back that was withheld earlier
WITHHELD: Final = {
    RefundLineKind.GROUP_PRICE: N_("The remaining seats no longer get the group price"),
    RefundLineKind.REFUNDED_BEFORE: N_("Already refunded in another way"),
    RefundLineKind.SEAT_FEES_KEPT: N_("Fees per ticket are not refunded"),
    RefundLineKind.BOOKING_FEES_KEPT: N_("Fees per booking are not refunded"),
    RefundLineKind.SHARE_KEPT: N_("Only a part is refunded this close to the event"),
    RefundLineKind.REFUND_FEE: N_("Refund fee"),
}
WITH_LAST: Final = N_("Refunded with the last ticket")
USED: Final = N_("Already used")
WITHHELD_EARLIER: Final = N_("Deducted earlier for the group price")
# what became of a refund
RETURNED: Final = {
    RefundState.ASKED: N_("Refund requested on {when}"),
    RefundState.PENDING: N_("Refund requested on {when}"),
    RefundState.DONE: N_("Refunded on {when}"),
    RefundState.FAILED: N_("The refund takes longer. You do not have to do anything."),
    RefundState.MOOT: N_("Returned on {when}. Nothing had been charged."),
}
FOR_RESALE: Final = N_("Offered for resale. Refunded once it is sold.")
SOLD_AGAIN: Final = N_("Sold to someone else. The refund is on its way.")
MAX_NUMBER: Final = 10_000  # of a booking's refunds
EXTRA: Final = "extra."  # before the key of an add-on in the names of the form's fields


class RefundRow(msgspec.Struct, frozen=True):
    """One row of the dialog: a seat, an add-on, a fee, or what is withheld. `text` is translated by the page; a row
    with a `name` has none. `paid_minor` None: it is withheld, and nothing was paid for it. `back_minor` None: it stays
    paid; `why` says why."""

    name: str
    text: str
    quantity: int
    paid_minor: int | None
    back_minor: int | None
    place: tuple[str, str, str] | None = None
    why: str = ""


class ReturnedRow(msgspec.Struct, frozen=True):
    """What was returned by one refund, or for resale, and where its money is. `text` is translated by the page and may
    name the day `at_us`."""

    places: list[tuple[str, str, str]]
    add_ons: tuple[str, ...]
    amount_minor: int
    text: str
    at_us: int


class KeptAddOn(msgspec.Struct, frozen=True):
    """An add-on that can be refunded. `field` is the name of its field in forms."""

    key: str
    name: str
    quantity: int
    unit_minor: int

    @property
    def field(self) -> str:
        return EXTRA + self.key


async def refund_rows(
    platform: Platform, event_id: str, lines: Sequence[RefundLine], of: RefundSum | None = None
) -> list[RefundRow]:
    """The rows of these lines, a row per seat, and of what stays paid. What is withheld comes last."""
    given, withheld = list[RefundRow](), list[RefundRow]()
    for line in lines:
        text = WITHHELD.get(line.kind, "")
        if line.kind is RefundLineKind.GROUP_PRICE and line.amount_minor > 0:
            text = WITHHELD_EARLIER
        if text:
            withheld.append(RefundRow("", text, line.quantity, None, line.amount_minor))
        elif line.seats:
            names = await platform.booking_views.seat_ids(event_id, line.seats)
            each = line.amount_minor // len(line.seats)  # a line has seats of one price
            places = await seat_places(platform, event_id, names)
            given += [RefundRow(line.name, "", 1, each, each, place) for place in places]
        else:
            given.append(RefundRow(line.name, "", line.quantity, line.amount_minor, line.amount_minor))
    stay = list[RefundRow]()
    if of is not None:
        stay = [RefundRow(name, "", 1, amount, None, why=WITH_LAST) for name, amount in of.fees_left]
        stay += [RefundRow(name, "", count, amount, None, why=USED) for name, count, amount in of.used]
    return [*given, *stay, *withheld]


async def returned_rows(platform: Platform, booking: Booking) -> list[ReturnedRow]:
    """What went back of a booking, the earliest first: refunds, then seats that wait to be resold."""
    found = []
    for refund in await platform.ledger.payments.refunds_of(booking.id):
        text = RETURNED[refund.state]
        names = await platform.booking_views.seat_ids(booking.event_id, refund.seats)
        places = await seat_places(platform, booking.event_id, names)
        extras = add_on_names(decode_refund_lines(refund.lines))
        done = refund.state is RefundState.DONE
        at_us = refund.changed_at_us if done else refund.created_at_us
        found.append(ReturnedRow(places, extras, refund.amount_minor, text, at_us))
    for given in await platform.ledger.returns.returns_of(booking.id):
        if given.state in OWED_STATES:
            names = await platform.booking_views.seat_ids(booking.event_id, (given.seat_index,))
            places = await seat_places(platform, booking.event_id, names)
            text = SOLD_AGAIN if given.state is ReturnState.RESOLD else FOR_RESALE
            found.append(ReturnedRow(places, (), given.price_minor, text, 0))
    return found


async def kept_add_ons(platform: Platform, booking: Booking) -> list[KeptAddOn]:
    """The add-ons that can be refunded: the booking still has them, and they were not used."""
    units = {line.key: line.unit_minor for line in decode_lines(booking.price_lines) if line.kind is LineKind.ADD_ON}
    found = await platform.box_office.gates.find_add_ons(booking)
    return [KeptAddOn(one.key, one.name, one.left, units[one.key]) for one in found if one.left]


def chosen_add_ons(kept: Sequence[KeptAddOn], field: Callable[[str], str]) -> dict[str, int]:
    """How many of which add-on a form or an address chooses. What is no number, or too many, is all there are."""
    chosen: dict[str, int] = {}
    for one in kept:
        text = field(one.field).strip()[:4]
        if text.isascii() and text.isdigit() and int(text):
            chosen[one.key] = min(int(text), one.quantity)
    return chosen


async def find_sent(platform: Platform, booking: Booking, form: Form) -> bool | None:
    """Whether the refund of this form was made before: with its number, for what it asks. None: no refund has its
    number. False: another refund has it, so the dialog is out of date."""
    number = form.number("number", 0, MAX_NUMBER, 0)
    refunds = await platform.ledger.payments.refunds_of(booking.id)
    earlier = next((one for one in refunds if one.number == number), None)
    if earlier is None:
        return None
    names = await platform.booking_views.all_seat_ids(booking.event_id)
    indexes = {name: seat for seat, name in enumerate(names)}
    seats = tuple(indexes.get(name, -1) for name in form.all("seat"))
    extras = {name.removeprefix(EXTRA): text for name, text in form.first().items() if name.startswith(EXTRA)}
    counts = {key: int(text) for key, text in extras.items() if text.isascii() and text.isdigit() and int(text[:4])}
    return covers_choice(earlier.seats, decode_refund_lines(earlier.lines), RefundChoice(seats, counts))


def extra_fields(chosen: Mapping[str, int]) -> dict[str, int]:
    """The fields of a form that carries the choice on."""
    return {EXTRA + key: count for key, count in chosen.items()}
