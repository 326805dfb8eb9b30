"""Tables for spreadsheets: RFC 4180, and no cell that a spreadsheet would run."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, Final

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|")


def safe_cell(value: Any) -> Any:
    """What a spreadsheet shows as text and never runs: a cell that begins like a formula gets a quote before it."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return "'" + value
    return value


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as RFC 4180 wants it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([safe_cell(value) for value in row])
    return out.getvalue()
