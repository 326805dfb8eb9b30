"""Tables for spreadsheets: RFC 4180, and no cell that a spreadsheet would run."""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from frontrow.shared.money import DIGITS

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|")


def safe_cell(value: Any) -> Any:
    """What a spreadsheet shows as text and never runs: a cell that begins like a formula gets a quote before it. Times
    are written in UTC."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return "'" + value
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return value


def amount_cell(minor: int, currency: str) -> Decimal:
    """An amount in units of its currency: 14000 cents are 140.00."""
    return Decimal(minor).scaleb(-DIGITS.get(currency, 2))


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as RFC 4180 wants it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([safe_cell(value) for value in row])
    return out.getvalue()
