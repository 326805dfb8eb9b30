"""What the API's bodies are made of: money, times, ids and the lines of a price as HTTP shows them."""

from typing import Annotated

import msgspec

Time = Annotated[str, msgspec.Meta(examples=["2026-11-15T19:30:00Z"], extra_json_schema={"format": "date-time"})]


class MoneyView(msgspec.Struct, frozen=True):
    """An amount in the currency's smallest unit."""

    amount_minor: Annotated[int, msgspec.Meta(examples=[12300])]
    currency: Annotated[str, msgspec.Meta(examples=["EUR"])]


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
