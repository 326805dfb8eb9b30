"""Small edits of a plan, each giving a new plan: add, rename, move and remove sections, and mark seats. Pure.

New sections are grids below the existing ones. Rows on arcs are placed relative to the middle of the plan, so they
become single points before a plan grows. Nothing else moves.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from frontrow.boxoffice.seats.formats.plan_document import row_label
from frontrow.boxoffice.seats.model.plan_shapes import ArcShape, AreaShape, GridShape, row_points
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, SeatFlag, Section, SectionKind, area, check_size
from frontrow.core.errors import InvalidInput

PITCH, ROW_STEP, MARGIN = 10.0, 12.0, 40.0
MAX_ROWS, MAX_IN_ROW, MAX_CAPACITY = 200, 500, 100_000
MAX_MOVE: Final = 5_000
MARKS: Final = {
    "step_free": SeatFlag.STEP_FREE,
    "companion": SeatFlag.COMPANION,
    "restricted": SeatFlag.RESTRICTED_VIEW,
}


def add_rows(plan: Plan, section_id: str, name: str, rows: int, in_row: int, tier: str) -> Plan:
    """Add a section of `rows` rows with `in_row` seats each."""
    if not (1 <= rows <= MAX_ROWS and 1 <= in_row <= MAX_IN_ROW):
        raise InvalidInput(f"1 to {MAX_ROWS} rows of 1 to {MAX_IN_ROW} seats", param="rows")
    check_size(plan.size + rows * in_row)
    shape = GridShape(MARGIN, _y_below(plan), PITCH, ROW_STEP)
    new_rows = tuple(_make_row(shape, at, in_row, tier) for at in range(rows))
    return _add_section(plan, Section(section_id, new_rows, name, rank=last_rank(plan) + 1, shape=shape))


def add_area(plan: Plan, section_id: str, name: str, capacity: int, tier: str) -> Plan:
    """Add a general-admission area for `capacity` people."""
    if not 1 <= capacity <= MAX_CAPACITY:
        raise InvalidInput(f"an area holds 1 to {MAX_CAPACITY:,} people", param="capacity")
    check_size(plan.size + capacity)
    side = round(max(60.0, min(400.0, (capacity * 20.0) ** 0.5)), 1)
    box = AreaShape(MARGIN, _y_below(plan), side * 1.6, side)
    section = area(section_id, capacity, tier=tier, shape=box, name=name)
    return _add_section(plan, replace(section, rank=last_rank(plan) + 1))


def rename_section(plan: Plan, section_id: str, name: str, tier: str) -> Plan:
    """Change the displayed name (tickets keep the id), and the price tier of all its seats if one is given."""
    section = _find_section(plan, section_id)
    changed = replace(section, name="" if name == section.id else name)
    if tier:
        rows = tuple(replace(row, seats=tuple(replace(seat, tier=tier) for seat in row.seats)) for row in section.rows)
        changed = replace(changed, rows=rows)
    return _replace_section(plan, changed)


def mark_seats(plan: Plan, seats: Collection[str], flag: str, *, on: bool) -> Plan:
    """Mark seats as step-free, companion or restricted view, or remove the mark."""
    if flag not in MARKS:
        raise InvalidInput(f"a mark is one of {', '.join(MARKS)}", param="mark")
    wanted, bit = frozenset(plan.indexes(list(seats))), int(MARKS[flag])
    sections = []
    for base, section in zip(plan.bases, plan.sections, strict=True):
        if any(base <= seat < base + section.size for seat in wanted):
            section, _ = _mark_in_section(section, base, wanted, bit, on)
        sections.append(section)
    return replace(plan, sections=tuple(sections))


def _mark_in_section(section: Section, index: int, wanted: Collection[int], bit: int, on: bool) -> tuple[Section, int]:
    rows = []
    for row in section.rows:
        seats = []
        for seat in row.seats:
            flags = seat.flags | bit if on else seat.flags & ~bit
            seats.append(replace(seat, flags=flags) if index in wanted else seat)
            index += 1
        rows.append(replace(row, seats=tuple(seats)))
    return replace(section, rows=tuple(rows)), index


def move_section(plan: Plan, section_id: str, right: float, down: float) -> Plan:
    """Move a section, but not beyond the left or top edge. The plan grows if needed."""
    if max(abs(right), abs(down)) > MAX_MOVE:
        raise InvalidInput(f"move by at most {MAX_MOVE:,}", param="distance")
    section = _find_section(plan, section_id)
    left, top, _, _ = _bounds(section)
    dx, dy = round(max(right, -left), 2), round(max(down, -top), 2)
    shape = section.shape
    if isinstance(shape, GridShape | AreaShape):
        shape = replace(shape, x=round(shape.x + dx, 2), y=round(shape.y + dy, 2))
    rows = tuple(
        replace(row, seats=tuple(replace(s, x=round(s.x + dx, 2), y=round(s.y + dy, 2)) for s in row.seats))
        for row in section.rows
    )
    moved = replace(section, rows=rows, shape=None if isinstance(shape, ArcShape) else shape)
    return grow_plan(_replace_section(plan, moved))


def remove_section(plan: Plan, section_id: str) -> Plan:
    """Remove a section. The last one cannot be removed."""
    _find_section(plan, section_id)
    if len(plan.sections) == 1:
        raise InvalidInput("a plan has at least one section", param="section", reason="last_section")
    return replace(plan, sections=tuple(one for one in plan.sections if one.id != section_id))


def _find_section(plan: Plan, section_id: str) -> Section:
    return plan.sections[plan.section_number(section_id)]


def _make_row(shape: GridShape, at: int, count: int, tier: str) -> Row:
    points = row_points(shape, at, count, 0, 0)
    return Row(row_label(at), tuple(Seat(str(n), x, y, tier) for n, (x, y) in enumerate(points, 1)), at)


def last_rank(plan: Plan) -> int:
    """The rank of the section that is offered last."""
    return max(section.rank for section in plan.sections)


def _y_below(plan: Plan) -> float:
    """The y at which the next section begins: below everything else."""
    lowest = max([_bounds(section)[3] for section in plan.sections] + [item.y + item.height for item in plan.decor])
    return round(lowest + MARGIN, 2)


def _bounds(section: Section) -> tuple[float, float, float, float]:
    """Left, top, right, bottom."""
    if isinstance(section.shape, AreaShape):
        box = section.shape
        return box.x, box.y, box.x + box.width, box.y + box.height
    seats = [seat for row in section.rows for seat in row.seats]
    xs, ys = [seat.x for seat in seats], [seat.y for seat in seats]
    return min(xs), min(ys), max(xs), max(ys)


def _add_section(plan: Plan, section: Section) -> Plan:
    if any(one.id == section.id for one in plan.sections):
        raise InvalidInput(f"there is already a section {section.id}", param="section", reason="section_taken")
    return grow_plan(replace(plan, sections=(*plan.sections, section)))


def _replace_section(plan: Plan, section: Section) -> Plan:
    return replace(plan, sections=tuple(section if one.id == section.id else one for one in plan.sections))


def grow_plan(plan: Plan) -> Plan:
    """The plan, enlarged to fit all of its sections."""
    boxes = [_bounds(section) for section in plan.sections]
    width = max(plan.width, max(box[2] for box in boxes) + MARGIN)
    height = max(plan.height, max(box[3] for box in boxes) + MARGIN)
    if (width, height) == (plan.width, plan.height):
        return plan
    unmoved = tuple(
        replace(one, shape=None) if one.kind is SectionKind.SEATED and isinstance(one.shape, ArcShape) else one
        for one in plan.sections
    )
    return replace(plan, sections=unmoved, width=width, height=height)
