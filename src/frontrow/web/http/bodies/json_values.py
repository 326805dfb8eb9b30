"""What the API's bodies are made of: money, times, ids and the lines of a price as HTTP shows them."""

import functools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from frontrow.boxoffice.pricing.model.prices import DIFFERENT, PriceLine
from frontrow.boxoffice.seats.model.seat_labels import seat_name
from frontrow.core.clock import US_PER_S

Time = Annotated[str, msgspec.Meta(examples=["2026-11-15T19:30:00Z"], extra_json_schema={"format": "date-time"})]


class MoneyView(msgspec.Struct, frozen=True):
    """An amount in the currency's smallest unit."""

    amount_minor: Annotated[int, msgspec.Meta(examples=[12300])]
    currency: Annotated[str, msgspec.Meta(examples=["EUR"])]


def time_text(at_us: int) -> str:
    """RFC 3339 in UTC, to the microsecond only where there are any."""
    second, rest_us = divmod(at_us, US_PER_S)
    return f"{_second_text(second)}.{rest_us:06d}Z" if rest_us else f"{_second_text(second)}Z"


@functools.lru_cache(1_000)
def _second_text(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).replace(tzinfo=None).isoformat()


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
