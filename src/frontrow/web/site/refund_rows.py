"""The lines of a refund as the dialogs of fans and organisers show them, and the add-ons that people choose for one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.pricing.model.prices import LineKind
from frontrow.boxoffice.refunds.model.refund_lines import (
    RefundChoice,
    RefundLine,
    RefundLineKind,
    add_ons_gone,
    covers_choice,
    decode_refund_lines,
    kept_lines,
)
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
WITHHELD_EARLIER: Final = N_("Deducted earlier for the group price")
MAX_NUMBER: Final = 10_000  # of a booking's refunds
EXTRA: Final = "extra."  # before the key of an add-on in the names of the form's fields


class RefundRow(msgspec.Struct, frozen=True):
    """One row of the dialog. `text` is translated by the page; a row with a `name` has none."""

    name: str
    text: str
    quantity: int
    amount_minor: int
    places: list[tuple[str, str, str]] = []


class KeptAddOn(msgspec.Struct, frozen=True):
    """An add-on that the booking still has. `field` is the name of its field in forms."""

    key: str
    name: str
    quantity: int
    unit_minor: int

    @property
    def field(self) -> str:
        return EXTRA + self.key


async def refund_rows(platform: Platform, event_id: str, lines: Sequence[RefundLine]) -> list[RefundRow]:
    """The rows of these lines."""
    found = []
    for line in lines:
        text = WITHHELD.get(line.kind, "")
        if line.kind is RefundLineKind.GROUP_PRICE and line.amount_minor > 0:
            text = WITHHELD_EARLIER
        places = await seat_places(platform, event_id, await platform.booking_views.seat_ids(event_id, line.seats))
        found.append(RefundRow("" if text else line.name, text, line.quantity, line.amount_minor, places))
    return found


async def kept_add_ons(platform: Platform, booking: Booking) -> list[KeptAddOn]:
    """The add-ons that the booking still has."""
    refunds = await platform.ledger.payments.refunds_of(booking.id)
    gone = add_ons_gone([decode_refund_lines(one.lines) for one in refunds])
    lines = [line for line in kept_lines(booking, gone) if line.kind is LineKind.ADD_ON]
    return [KeptAddOn(line.key, line.name, line.quantity, line.unit_minor) for line in lines]


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
