"""Plans from CSV, a line a seat; every mistake is named by line and column, up to twenty at once.

Columns: section, row, seat (required); tier, x, y, step_free, companion, restricted_view, gap_after, capacity. A line
with a capacity and neither row nor seat is a general-admission area. Without x and y the seats are laid out as a grid
below each other. Lines of one row must stand together, in the order of its seats.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from frontrow.boxoffice.model.plan_shapes import AreaShape
from frontrow.boxoffice.model.seat_labels import check_label
from frontrow.boxoffice.model.venues import MAX_SEATS, Plan, Row, Seat, SeatFlag, Section, area
from frontrow.boxoffice.plans.plan_reader import BadPlan
from frontrow.core.errors import InvalidInput

REQUIRED = ("section", "row", "seat")
FLAGS = {
    "step_free": SeatFlag.STEP_FREE,
    "companion": SeatFlag.COMPANION,
    "restricted_view": SeatFlag.RESTRICTED_VIEW,
    "gap_after": SeatFlag.GAP_AFTER,
}
COLUMNS = (*REQUIRED, "tier", "x", "y", *FLAGS, "capacity")
YES, NO = {"1", "yes", "true", "y", "x"}, {"", "0", "no", "false", "n"}
MAX_ERRORS = 20
PITCH, ROW_STEP = 10.0, 12.0
Cells = Mapping[str, str]


class BadTable(BadPlan):
    code = "bad_table"


@dataclass(slots=True)
class _Reader:
    """What has been read so far. Insertion order of the dicts is the order of the plan."""

    sections: dict[str, dict[str, list[Seat]]] = field(default_factory=dict)
    areas: dict[str, Section] = field(default_factory=dict)
    seen: dict[tuple[str, str, str], int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    placed: set[bool] = field(default_factory=set)  # whether lines have positions; must be one answer
    last_row: tuple[str, str] = ("", "")

    def wrong(self, line: int, column: str, message: str) -> None:
        self.errors.append(f"line {line}, column {column}: {message}")


def from_csv(text: str, name: str) -> Plan:
    """The plan that a CSV text describes, or BadTable listing its mistakes."""
    lines = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    reader = _Reader()
    try:
        header = [cell.strip().lower() for cell in next(lines, [])]
        _check_header(header)
        _read(reader, header, lines)
    except csv.Error as error:
        raise BadTable(f"line {lines.line_num}: {error}", param="csv") from None
    if reader.errors:
        raise BadTable("; ".join(reader.errors[:MAX_ERRORS]), param="csv", errors=reader.errors[:MAX_ERRORS])
    return _plan(reader, name)


def _check_header(header: list[str]) -> None:
    missing = [column for column in REQUIRED if column not in header]
    unknown = [column for column in header if column not in COLUMNS]
    if missing or unknown or len(set(header)) != len(header):
        problem = f"missing {', '.join(missing)}" if missing else f"unknown or repeated {', '.join(unknown or header)}"
        raise BadTable(f"line 1: {problem}; the columns are {', '.join(COLUMNS)}", param="csv")


def _read(reader: _Reader, header: list[str], lines: Iterable[list[str]]) -> None:
    for number, cells in enumerate(lines, 2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            reader.wrong(number, "all", f"{len(cells)} cells where the header has {len(header)}")
        else:
            _line(reader, number, {column: cell.strip() for column, cell in zip(header, cells, strict=True)})
        if len(reader.errors) >= MAX_ERRORS:
            return
        if len(reader.seen) > MAX_SEATS:
            raise BadTable(f"line {number}: more than {MAX_SEATS:,} seats", param="csv")


def _line(reader: _Reader, line: int, cells: Cells) -> None:
    before = len(reader.errors)
    is_area = bool(cells.get("capacity"))
    for column in REQUIRED[:1] if is_area else REQUIRED:
        try:
            check_label(cells[column], column)
        except InvalidInput as error:
            reader.wrong(line, column, error.message)
    x, y = (_number(reader, line, column, cells.get(column, "")) for column in ("x", "y"))
    flags = sum(flag for column, flag in FLAGS.items() if _yes(reader, line, column, cells.get(column, "")))
    tier = cells.get("tier") or ("standing" if is_area else "standard")
    if is_area:
        _area(reader, line, cells, tier, x, y)
    elif len(reader.errors) == before:
        _seat(
            reader, line, cells, Seat(cells["seat"], x or 0.0, y or 0.0, tier, flags), x is not None and y is not None
        )


def _seat(reader: _Reader, line: int, cells: Cells, seat: Seat, placed: bool) -> None:
    section, row = cells["section"], cells["row"]
    first = reader.seen.setdefault((section, row, seat.number), line)
    rows = reader.sections.setdefault(section, {})
    if first != line:
        reader.wrong(line, "seat", f"{section}-{row}-{seat.number} is already on line {first}")
    elif row in rows and reader.last_row != (section, row):
        reader.wrong(line, "row", f"row {section}-{row} began earlier; put its lines together")
    elif section in reader.areas:
        reader.wrong(line, "section", f"{section} is an area already")
    reader.placed.add(placed)
    if len(reader.placed) > 1:
        reader.wrong(line, "x", "give x and y on every line or on none")
        reader.placed = {placed}
    reader.last_row = (section, row)
    rows.setdefault(row, []).append(seat)


def _area(reader: _Reader, line: int, cells: Cells, tier: str, x: float | None, y: float | None) -> None:
    section, capacity = cells["section"], cells["capacity"]
    if cells["row"] or cells["seat"]:
        reader.wrong(line, "capacity", "an area has neither row nor seat; leave those empty")
    elif section in reader.areas or section in reader.sections:
        reader.wrong(line, "section", f"{section} occurs twice")
    elif not (capacity.isascii() and capacity.isdigit() and 0 < int(capacity[:9]) <= MAX_SEATS):
        reader.wrong(line, "capacity", f"{capacity!r} must be a whole number from 1 to {MAX_SEATS:,}")
    else:
        shape = AreaShape(x or 0.0, y or 0.0, 100.0, 100.0)
        reader.areas[section] = area(section, int(capacity), tier=tier, shape=shape)


def _number(reader: _Reader, line: int, column: str, text: str) -> float | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        reader.wrong(line, column, f"{text[:40]!r} is no number")
        return None
    return round(number, 2)


def _yes(reader: _Reader, line: int, column: str, text: str) -> bool:
    if text.lower() not in YES | NO:
        reader.wrong(line, column, f"{text[:40]!r} must be yes or no")
    return text.lower() in YES


def _plan(reader: _Reader, name: str) -> Plan:
    sections = [
        Section(section, tuple(Row(row, tuple(seats), number) for number, (row, seats) in enumerate(rows.items())))
        for section, rows in reader.sections.items()
    ]
    if reader.placed == {False}:
        sections = _laid_out(sections)
    sections += reader.areas.values()
    ranked = tuple(Section(s.id, s.rows, s.name, s.kind, rank, s.shape) for rank, s in enumerate(sections))
    seats = [seat for section in ranked for row in section.rows for seat in row.seats]
    if not seats:
        raise BadTable("line 2: the table has no seats", param="csv")
    width, height = max(seat.x for seat in seats) + 50, max(seat.y for seat in seats) + 50
    return Plan(name, ranked, max(width, 200.0), max(height, 200.0))


def _laid_out(sections: list[Section]) -> list[Section]:
    """Every row on a line of its own, a gap between sections."""
    placed, y = [], 50.0
    for section in sections:
        rows = []
        for row in section.rows:
            seats = tuple(Seat(s.number, 50 + PITCH * i, round(y, 2), s.tier, s.flags) for i, s in enumerate(row.seats))
            rows.append(Row(row.id, seats, row.rank))
            y += ROW_STEP
        placed.append(Section(section.id, tuple(rows)))
        y += 2 * ROW_STEP
    return placed
