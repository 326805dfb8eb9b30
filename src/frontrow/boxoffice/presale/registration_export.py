"""The registrations of a presale as a CSV table."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from frontrow.boxoffice.organiser.model.csv_cells import to_csv
from frontrow.shared.local_time import time_text

COLUMNS: Final = ("registration", "email", "language", "state", "confirmed_at", "code")


def registrations_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The rows of `Presales.export` as a file that spreadsheets open."""
    table = [(*(row[name] for name in COLUMNS[:4]), time_text(row["confirmed_at_us"]), row["code"]) for row in rows]
    return to_csv(COLUMNS, table).encode("utf-8-sig")
