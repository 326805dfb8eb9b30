"""Plans from CSV, one line per seat. Every mistake is reported with line and column, up to twenty at once.

Columns: section, row, seat (required); tier, x, y, step_free, companion, restricted_view, gap_after, capacity. A line
with a capacity and neither row nor seat is a general-admission area. Without x and y the seats are laid out as a grid,
row below row. The lines of a row must be together, in the order of its seats.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from frontrow.boxoffice.seats.formats.plan_reader import BadPlan
from frontrow.boxoffice.seats.model.plan_shapes import AreaShape
from frontrow.boxoffice.seats.model.seat_labels import check_label
from frontrow.boxoffice.seats.model.venues import MAX_SEATS, Plan, Row, Seat, SeatFlag, Section, area
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


class _AreaLine(NamedTuple):
    """An area as its line has it. Its places are made when all lines are read and few enough."""

    capacity: int
    tier: str
    shape: AreaShape


@dataclass(slots=True)
class _Draft:
    """What has been read so far. The insertion order of the dicts is the order of the plan."""

    sections: dict[str, dict[str, list[Seat]]] = field(default_factory=dict)
    areas: dict[str, _AreaLine] = field(default_factory=dict)
    places: int = 0  # in areas
    seen: dict[tuple[str, str, str], int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    lines: list[tuple[int, str]] = field(default_factory=list)  # line and column of each error
    placed: set[bool] = field(default_factory=set)  # whether lines have positions: all or none
    last_row: tuple[str, str] = ("", "")

    def add_error(self, line: int, column: str, message: str) -> None:
        self.errors.append(f"line {line}, column {column}: {message}")
        self.lines.append((line, column))


def from_csv(text: str, name: str) -> Plan:
    """The plan that a CSV text describes; otherwise BadTable with its mistakes."""
    lines = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    draft = _Draft()
    try:
        header = [cell.strip().lower() for cell in next(lines, [])]
        _check_header(header)
        _read_lines(draft, header, lines)
    except csv.Error as error:
        line = lines.line_num
        raise BadTable(f"line {line}: {error}", param="csv", reason="csv_unreadable", line=line) from None
    if draft.errors:
        said, where = draft.errors[:MAX_ERRORS], draft.lines[:MAX_ERRORS]
        raise BadTable("; ".join(said), param="csv", errors=said, lines=where)
    return _build_plan(draft, name)


def _check_header(header: list[str]) -> None:
    missing = [column for column in REQUIRED if column not in header]
    unknown = [column for column in header if column not in COLUMNS]
    if missing or unknown or len(set(header)) != len(header):
        problem = f"missing {', '.join(missing)}" if missing else f"unknown or repeated {', '.join(unknown or header)}"
        raise BadTable(f"line 1: {problem}; the columns are {', '.join(COLUMNS)}", param="csv", reason="csv_columns")


def _read_lines(draft: _Draft, header: list[str], lines: Iterable[list[str]]) -> None:
    for number, cells in enumerate(lines, 2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            draft.add_error(number, "all", f"{len(cells)} cells where the header has {len(header)}")
        else:
            _read_line(draft, number, {column: cell.strip() for column, cell in zip(header, cells, strict=True)})
        if len(draft.errors) >= MAX_ERRORS:
            return
        if len(draft.seen) + draft.places > MAX_SEATS:
            raise BadTable(f"line {number}: more than {MAX_SEATS:,} seats", param="csv", reason="plan_seats")


def _read_line(draft: _Draft, line: int, cells: Cells) -> None:
    before = len(draft.errors)
    is_area = bool(cells.get("capacity"))
    for column in REQUIRED[:1] if is_area else REQUIRED:
        try:
            check_label(cells[column], column)
        except InvalidInput as error:
            draft.add_error(line, column, error.message)
    x, y = (_read_number(draft, line, column, cells.get(column, "")) for column in ("x", "y"))
    flags = sum(flag for column, flag in FLAGS.items() if _read_flag(draft, line, column, cells.get(column, "")))
    tier = cells.get("tier") or ("standing" if is_area else "standard")
    if is_area:
        _add_area(draft, line, cells, tier, x, y)
    elif len(draft.errors) == before:
        _add_seat(
            draft, line, cells, Seat(cells["seat"], x or 0.0, y or 0.0, tier, flags), x is not None and y is not None
        )


def _add_seat(draft: _Draft, line: int, cells: Cells, seat: Seat, placed: bool) -> None:
    section, row = cells["section"], cells["row"]
    first = draft.seen.setdefault((section, row, seat.number), line)
    rows = draft.sections.setdefault(section, {})
    if first != line:
        draft.add_error(line, "seat", f"{section}-{row}-{seat.number} is already on line {first}")
    elif row in rows and draft.last_row != (section, row):
        draft.add_error(line, "row", f"row {section}-{row} began earlier; keep its lines together")
    elif section in draft.areas:
        draft.add_error(line, "section", f"{section} is already an area")
    draft.placed.add(placed)
    if len(draft.placed) > 1:
        draft.add_error(line, "x", "give x and y on every line or on none")
        draft.placed = {placed}
    draft.last_row = (section, row)
    rows.setdefault(row, []).append(seat)


def _add_area(draft: _Draft, line: int, cells: Cells, tier: str, x: float | None, y: float | None) -> None:
    section, capacity = cells["section"], cells["capacity"]
    if cells["row"] or cells["seat"]:
        draft.add_error(line, "capacity", "an area has neither row nor seat; leave those empty")
    elif section in draft.areas or section in draft.sections:
        draft.add_error(line, "section", f"{section} occurs twice")
    elif not (capacity.isascii() and capacity.isdigit() and 0 < int(capacity[:9]) <= MAX_SEATS and len(capacity) < 10):
        draft.add_error(line, "capacity", f"{capacity!r} must be a whole number from 1 to {MAX_SEATS:,}")
    else:
        shape = AreaShape(x or 0.0, y or 0.0, 100.0, 100.0)
        draft.areas[section] = _AreaLine(int(capacity), tier, shape)
        draft.places += int(capacity)


def _read_number(draft: _Draft, line: int, column: str, text: str) -> float | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        draft.add_error(line, column, f"{text[:40]!r} is not a number")
        return None
    return round(number, 2)


def _read_flag(draft: _Draft, line: int, column: str, text: str) -> bool:
    if text.lower() not in YES | NO:
        draft.add_error(line, column, f"{text[:40]!r} must be yes or no")
    return text.lower() in YES


def _build_plan(draft: _Draft, name: str) -> Plan:
    sections = [
        Section(section, tuple(Row(row, tuple(seats), number) for number, (row, seats) in enumerate(rows.items())))
        for section, rows in draft.sections.items()
    ]
    if draft.placed == {False}:
        sections = _lay_out(sections)
    sections += [area(label, one.capacity, tier=one.tier, shape=one.shape) for label, one in draft.areas.items()]
    ranked = tuple(Section(s.id, s.rows, s.name, s.kind, rank, s.shape) for rank, s in enumerate(sections))
    seats = [seat for section in ranked for row in section.rows for seat in row.seats]
    if not seats:
        raise BadTable("line 2: the table has no seats", param="csv", reason="plan_seats")
    width, height = max(seat.x for seat in seats) + 50, max(seat.y for seat in seats) + 50
    return Plan(name, ranked, max(width, 200.0), max(height, 200.0))


def _lay_out(sections: list[Section]) -> list[Section]:
    """Give every row its own line, with a gap between sections."""
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
