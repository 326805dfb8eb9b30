"""What the API's bodies are made of: money, times and ids as HTTP shows them."""

import functools
from datetime import UTC, datetime
from typing import Annotated

import msgspec

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
