"""The lines of a price in a body."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from frontrow.boxoffice.pricing.model.prices import DIFFERENT, PriceLine
from frontrow.boxoffice.seats.model.seat_labels import seat_name
from frontrow.web.http.bodies.json_values import MoneyView


class PriceLineView(msgspec.Struct):
    """One line of a price. The lines that are not `included` add up to the amount; those that are `included` are parts
    of the amounts above them. `unit` is null when the parts differ. Lines without seats are for the whole booking."""

    kind: Annotated[str, msgspec.Meta(examples=["seat"])]
    name: str
    quantity: int
    unit: MoneyView | None
    amount: MoneyView
    seats: list[str]
    included: bool


def line_views(
    lines: Sequence[PriceLine], names: Sequence[str] | Mapping[int, str], currency: str
) -> list[PriceLineView]:
    """The lines with the ids of their seats, which `names` has by index."""
    return [
        PriceLineView(
            line.kind,
            line.name,
            line.quantity,
            None if line.unit_minor == DIFFERENT else MoneyView(line.unit_minor, currency),
            MoneyView(line.amount_minor, currency),
            [seat_name(names, seat) for seat in line.seats],
            line.included,
        )
        for line in lines
    ]
