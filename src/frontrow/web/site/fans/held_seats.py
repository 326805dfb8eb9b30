"""A fan who holds seats and asks for more, without scripts: nothing is dropped before the fan has answered.

The page asks once, with the whole request in its form. The answer is in the field `basket`: `add` holds the new seats
besides those that are held, `replace` holds them instead.
"""

from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.holds.events_on_sale import Sale
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import NoSuchSeats
from frontrow.boxoffice.holds.model.requested_seats import Wish
from frontrow.boxoffice.seats.model.best_seats import best_available
from frontrow.web.site.routes import Form

ADD: Final = "add"
REPLACE: Final = "replace"
ANSWERS: Final = (ADD, REPLACE)
FIELDS: Final = ("section", "count", "max_price_minor", "step_free", "standing", "apart_ok")
MAX_FIELD_CHARS: Final = 40


def asked_again(form: Form) -> list[str]:
    """The request besides its seats, as `name=value`, to be sent again with the answer."""
    given = ((name, form.one(name, MAX_FIELD_CHARS)) for name in FIELDS)
    return [f"{name}={value}" for name, value in given if value]


def seats_with(sale: Sale, held: Booking, wanted: Sequence[str], wish: Wish | None) -> list[str]:
    """The seats that are held, and with them those that are wanted or the best for the wish."""
    names = sale.plan.seat_ids
    own = [names[seat] for seat in held.seats]
    if wish is None:
        return [*own, *(name for name in wanted if name not in own)]
    choice = best_available(sale.layouts, sale.seats.states, sale.section_masks(wish), wish.count, wish.worst)
    if choice is None:
        raise NoSuchSeats("no seats match this wish beside those that are held", param="best")
    return [*own, *(names[seat] for seat in choice.seats)]
