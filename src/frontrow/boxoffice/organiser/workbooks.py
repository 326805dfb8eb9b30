"""Workbooks (XLSX) for spreadsheets, written row by row: a long table needs no more memory than a short one.

Text is always text: no cell becomes a formula, a number or a link because of what a fan typed. Amounts are numbers with
the digits of their currency, times are real times in the venue's zone.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from frontrow.core.errors import InvalidInput

MAX_ROWS: Final = 200_000  # beyond that a spreadsheet is no longer a pleasure, and CSV has no limit
WIDTH: Final = 18
OPTIONS: Final = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_numbers": False,
    "strings_to_urls": False,
}


class WorkbookFile:
    """A workbook that is being written to `path`. Sheets are written one after the other."""

    def __init__(self, path: Path, time_zone: str) -> None:
        import xlsxwriter  # not at the start of a server: few organisers download workbooks

        self._book = xlsxwriter.Workbook(str(path), OPTIONS)
        self._zone = ZoneInfo(time_zone)
        self._bold = self._book.add_format({"bold": True})
        self._time = self._book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        self._amounts = {
            digits: self._book.add_format({"num_format": f"#,##0{'.' if digits else ''}{'0' * digits}"})
            for digits in (0, 2, 3)
        }
        self._sheet: Any = None
        self._row = 0

    def begin_sheet(self, name: str, header: Sequence[str]) -> None:
        """A new sheet; the ones before it are done."""
        self._sheet, self._row = self._book.add_worksheet(name[:31]), 1
        self._sheet.freeze_panes(1, 0)
        self._sheet.set_column(0, len(header) - 1, WIDTH)
        for column, text in enumerate(header):
            self._sheet.write_string(0, column, text, self._bold)

    def add_rows(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            if self._row > MAX_ROWS:
                text = f"this table has more than {MAX_ROWS:,} rows; download it as CSV instead"
                raise InvalidInput(text, param="format")
            for column, value in enumerate(row):
                self._write(column, value)
            self._row += 1

    def _write(self, column: int, value: Any) -> None:
        match value:
            case datetime():
                local = value.astimezone(self._zone).replace(tzinfo=None)
                self._sheet.write_datetime(self._row, column, local, self._time)
            case Decimal():
                digits = -int(value.as_tuple().exponent)
                self._sheet.write_number(self._row, column, float(value), self._amounts[digits])
            case int() | float():
                self._sheet.write_number(self._row, column, value)
            case _:
                self._sheet.write_string(self._row, column, str(value))

    def close(self) -> None:
        self._book.close()
