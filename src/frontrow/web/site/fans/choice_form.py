"""The form of the choice at checkout, ready for its template."""

from dataclasses import dataclass
from typing import Final

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.pricing.model.booking_choices import (
    BookingChoice,
    NoneLeft,
    PricedType,
    choice_of,
    offered_types,
    offers_choices,
    priced_types,
)
from frontrow.boxoffice.pricing.model.prices import LineKind, decode_lines
from frontrow.boxoffice.pricing.model.sale_options import AddOn
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.web.site.languages import N_, Words

CODE_ANSWERS: Final = {
    "unknown": N_("This is not a code for this event."),
    "not_yet": N_("This code is not valid yet."),
    "expired": N_("This code has expired."),
    "used_up": N_("This code has been used up."),
    "used_by_you": N_("You have already used this code."),
    "not_for_these_seats": N_("This code is not valid for these seats."),
}
ONLY_LEFT: Final = N_("{name}: only {n} left.")
NONE_LEFT: Final = N_("{name}: none left.")


@dataclass(frozen=True, slots=True)
class SeatChoice:
    """One held seat with its ticket types, for the form."""

    index: int
    parts: tuple[str, str, str]
    tier: str
    chosen: str


@dataclass(frozen=True, slots=True)
class ChoiceForm:
    """Everything the form shows."""

    seats: list[SeatChoice]
    types: list[PricedType]
    add_ons: tuple[AddOn, ...]
    chosen: BookingChoice
    takes_codes: bool
    code: str
    error: str = ""
    code_error: str = ""
    code_works: bool = False
    cheaper: bool = False  # by the code
    unlocked: str = ""  # the names of the ticket types that the code unlocked
    unlocks: bool = False  # whether any code of the event unlocks something


def choice_form(event: Event, plan: Plan, booking: Booking) -> ChoiceForm | None:
    """The form for this booking; None if there is nothing to choose."""
    if not offers_choices(event):
        return None
    lines = decode_lines(booking.price_lines)
    chosen = choice_of(event, lines)
    first = event.ticket_types[0].key if event.ticket_types else ""
    seats = [
        SeatChoice(seat, plan.labels.parts(plan.seat_id(seat)), plan.seats[seat].tier, chosen.types.get(seat, first))
        for seat in booking.seats
    ]
    types = priced_types(event, offered_types(event, chosen.code))
    unlocked = [one.type.name for one in types if one.type.hidden]
    return ChoiceForm(
        seats if types else [],
        types,
        event.add_ons,
        chosen,
        bool(event.discounts),
        chosen.code,
        code_works=bool(chosen.code),
        cheaper=any(line.kind is LineKind.DISCOUNT for line in lines),
        unlocked=", ".join(unlocked),
        unlocks=any(one.unlocks for one in event.discounts),
    )


def say_none_left(words: Words, refused: NoneLeft) -> str:
    """What a fan is told when a stock or a limit is reached."""
    if refused.left:
        return words(ONLY_LEFT, name=refused.name, n=refused.left)
    return words(NONE_LEFT, name=refused.name)
