"""Generated venues: a stadium, an arena, a theatre or a standing room with exactly the requested number of places.

A venue is a few rings of sections around the middle, with seats one pitch apart. The rings are scaled until they have
enough seats. Then whole rows and single seats are removed from the outermost ring until the number is exact.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from frontrow.boxoffice.seats.formats.plan_document import row_label
from frontrow.boxoffice.seats.model.plan_shapes import ArcShape, AreaShape, Decor, GridShape, row_points
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, SeatFlag, Section, SectionKind, area
from frontrow.core.errors import InvalidInput

PITCH, ROW_STEP, AISLE = 9.0, 10.5, 0.012
MIN_SEATS, MAX_GENERATED = 20, 200_000
MAX_TRIES = 400
MAX_TURNS = 4  # fewer seats are left over than one row has: the first is nearly always enough
LEAST_CHAIRS = 24  # on a floor, if any
SMALL_STADIUM, SMALL_ARENA = 1_500, 300  # below, one ring: the rows of several would overlap
WHEELCHAIR_EVERY = 6  # in the step-free row of the first ring


@dataclass(frozen=True, slots=True)
class Ring:
    """One ring of a venue at scale 1. `skip` is the share of its sections left out behind the stage in the west."""

    prefix: str
    tier: str
    rx: float
    ry: float
    rows: int
    sections: int
    skip: float = 0.0


STADIUM = (
    Ring("1", "lower", 700, 540, 30, 40, 0.05),
    Ring("2", "club", 1050, 890, 14, 44, 0.05),
    Ring("3", "upper", 1230, 1070, 38, 48),
)
ARENA = (Ring("1", "lower", 420, 330, 22, 24, 0.17), Ring("2", "upper", 690, 600, 20, 28, 0.15))


def generate(kind: str, seats: int) -> Plan:
    """A `stadium`, `arena`, `theatre` or `standing` room with exactly `seats` places."""
    if kind not in KINDS:
        raise InvalidInput(f"kind must be one of {', '.join(KINDS)}, not {kind!r}", param="kind")
    if not MIN_SEATS <= seats <= MAX_GENERATED:
        raise InvalidInput(f"seats must be {MIN_SEATS} to {MAX_GENERATED:,}, not {seats:,}", param="seats")
    return KINDS[kind](seats)


def stadium(seats: int) -> Plan:
    """Six blocks of chairs on the pitch and three rings; one ring if it is small."""
    return _bowl("Stadium", seats, STADIUM if seats >= SMALL_STADIUM else STADIUM[:1], floor=seats // 20, pit=0)


def arena(seats: int) -> Plan:
    """A standing pit, chairs on the floor and two rings (one if it is small), with the stage in the west."""
    return _bowl("Arena", seats, ARENA if seats >= SMALL_ARENA else ARENA[:1], floor=seats // 12, pit=seats // 10)


def theatre(seats: int) -> Plan:
    """Stalls, circle and balcony in curved rows with two aisles each; restricted view at the ends of the balcony."""
    shares = [("Stalls", "stalls", seats - seats * 3 // 10 - seats // 5), ("Circle", "circle", seats * 3 // 10)]
    shares.append(("Balcony", "balcony", seats // 5))
    sections, radius = [], 90.0
    for rank, (name, tier, count) in enumerate(shares):
        rows: list[Row] = []
        while count > 0:
            in_row = min(count, int(math.radians(110) * radius / PITCH))
            in_row = count if count - in_row < 4 else in_row  # no last row of a few seats
            rows.append(_fan_row(len(rows), radius, in_row, tier))
            count, radius = count - in_row, radius + ROW_STEP
        sections.append(Section(name, tuple(rows), name, rank=rank))
        radius += 3 * ROW_STEP
    size = math.ceil(radius * 2)
    placed = tuple(_shift(section, size / 2, 60.0) for section in sections)
    return Plan("Theatre", placed, float(size), radius + 80, (Decor("rect", size / 2 - 90, 10, 180, 60, "STAGE"),))


def standing(places: int) -> Plan:
    """One floor without seats in front of a stage: a club, a field, a church."""
    floor = area("Floor", places, tier="standing", shape=AreaShape(30.0, 110.0, 400.0, 240.0))
    return Plan("Standing room", (floor,), 460.0, 380.0, (Decor("rect", 130.0, 20.0, 200.0, 60.0, "STAGE"),))


KINDS: dict[str, Callable[[int], Plan]] = {
    "stadium": stadium,
    "arena": arena,
    "theatre": theatre,
    "standing": standing,
}


def _fan_row(number: int, radius: float, count: int, tier: str) -> Row:
    turn = PITCH / radius
    first = math.pi / 2 + turn * (count - 1) / 2
    seats = []
    for seat in range(count):
        flags = SeatFlag.GAP_AFTER if count > 11 and seat + 1 in (count // 4, count - count // 4) else SeatFlag.NONE
        if number == 0 and tier == "stalls" and (seat < 2 or seat >= count - 2):
            flags |= SeatFlag.STEP_FREE | (SeatFlag.COMPANION if seat in (1, count - 2) else SeatFlag.NONE)
        if tier == "balcony" and (seat < 2 or seat >= count - 2):
            flags |= SeatFlag.RESTRICTED_VIEW
        angle = first - turn * seat
        seats.append(Seat(str(seat + 1), radius * math.cos(angle), radius * math.sin(angle), tier, int(flags)))
    return Row(row_label(number), tuple(seats), number)


def _shift(section: Section, dx: float, dy: float) -> Section:
    rows = tuple(
        replace(row, seats=tuple(replace(s, x=round(s.x + dx, 2), y=round(s.y + dy, 2)) for s in row.seats))
        for row in section.rows
    )
    return replace(section, rows=rows)


def _bowl(name: str, seats: int, rings: tuple[Ring, ...], floor: int, pit: int) -> Plan:
    """Rings around a floor. If `floor` chairs do not fit inside the first ring, the rings get half of them, or all."""
    in_rings = seats - floor - pit
    scale, shapes = _scale_rings(rings, in_rings)
    _remove_excess(shapes, in_rings)
    outer_x = max(shape.rx + len(counts) * shape.step for _, shape, counts in shapes)
    outer_y = max(shape.ry + len(counts) * shape.step for _, shape, counts in shapes)
    width, height = math.ceil(2 * max(outer_x, 150) + 60), math.ceil(2 * max(outer_y, 120) + 60)
    middle_x, middle_y = width / 2, height / 2
    reach = rings[0].rx * scale
    stage_x, stage_y = round(middle_x - reach * 0.9, 1), round(middle_y - reach * 0.27, 1)
    stage = Decor("rect", stage_x, stage_y, round(reach * 0.2, 1), round(reach * 0.54, 1), "STAGE")
    wide = max(4, round(math.sqrt(floor / 6)))  # chairs in a row of a block; narrower if they would not fit
    for columns in range(wide, max(wide - 4, 1), -1):
        sections = _floor_sections(floor, columns, pit, middle_x, middle_y, reach)
        if _fits(sections, (middle_x, middle_y), shapes[0][1]):
            break
    else:
        return _bowl(name, seats, rings, floor // 2 if floor >= 2 * LEAST_CHAIRS else 0, pit)
    for ring, shape, counts in shapes:
        label = f"{ring.prefix}{sum(1 for s in sections if s.id.startswith(ring.prefix)) + 1:02d}"
        is_first, is_side = ring is rings[0], ring.skip > 0 and math.cos((shape.a0 + shape.a1) / 2) < -0.85
        sections.append(_arc_section(label, ring.tier, shape, counts, is_first, is_side, float(width), float(height)))
    focus = (stage.x + stage.width, middle_y)
    ranked = _rank_sections(sections, focus)
    return Plan(name, ranked, float(width), float(height), (stage,))


Shaped = tuple[Ring, ArcShape, list[int]]


def _scale_rings(rings: tuple[Ring, ...], seats: int) -> tuple[float, list[Shaped]]:
    """The smallest tried scale at which the rings have `seats` seats, and their sections."""
    scale = math.sqrt(seats / sum(sum(counts) for *_, counts in _shape_rings(rings, 1.0))) * 0.97
    for _ in range(MAX_TRIES):
        shapes = _shape_rings(rings, scale)
        if sum(sum(counts) for *_, counts in shapes) >= seats:
            return scale, shapes
        scale *= 1.01
    raise InvalidInput(f"no venue of {seats} seats could be generated", param="seats")


def _shape_rings(rings: tuple[Ring, ...], scale: float) -> list[Shaped]:
    shapes: list[Shaped] = []
    for ring in rings:
        sections, rows = max(6, round(ring.sections * scale)), max(2, round(ring.rows * scale))
        for number in range(sections):
            a0 = round(math.tau * number / sections - math.pi + AISLE, 4)
            a1 = round(math.tau * (number + 1) / sections - math.pi - AISLE, 4)
            if abs(number + 0.5 - sections * round((number + 0.5) / sections)) < ring.skip * sections / 2:
                continue  # behind the stage
            shape = ArcShape(a0, a1, round(ring.rx * scale, 1), round(ring.ry * scale, 1), ROW_STEP)
            counts = [max(1, int(_arc_length(shape, row) / PITCH)) for row in range(rows)]
            shapes.append((ring, shape, counts))
    return shapes


def _arc_length(shape: ArcShape, row: int) -> float:
    """The length of a row, by Simpson's rule over five points."""
    rx, ry, turn = shape.rx + row * shape.step, shape.ry + row * shape.step, (shape.a1 - shape.a0) / 4
    angles = [shape.a0 + turn * part for part in range(5)]
    speed = [math.hypot(rx * math.sin(a), ry * math.cos(a)) for a in angles]
    return turn / 3 * (speed[0] + 4 * speed[1] + 2 * speed[2] + 4 * speed[3] + speed[4])


def _remove_excess(shapes: list[Shaped], seats: int) -> None:
    """Remove whole last rows, section by section from the outermost ring inwards, then single seats, at most one per
    row and turn, until `seats` are left. A row's seats are spread over its arc: without many, it would have gaps."""
    excess = sum(sum(counts) for *_, counts in shapes) - seats
    for _ in range(MAX_TRIES):  # a turn removes up to a row per section: two or three are enough
        before = excess
        for _, _, counts in reversed(shapes):
            if len(counts) > 1 and counts[-1] <= excess:
                excess -= counts.pop()
        if excess == before:
            break
    rows = [(counts, row) for _, _, counts in reversed(shapes) for row in reversed(range(len(counts)))]
    for counts, row in rows * MAX_TURNS:
        if excess and counts[row] > 1:
            counts[row] -= 1
            excess -= 1


def _floor_sections(
    chairs: int, columns: int, pit: int, middle_x: float, middle_y: float, reach: float
) -> list[Section]:
    """A standing pit at the stage and up to six blocks of chairs behind it; `reach` is the first ring's radius."""
    sections: list[Section] = []
    left, block = middle_x - reach * 0.3, columns * PITCH + 20
    for number in range(6):
        count = chairs // 6 + (number < chairs % 6)
        x, y = left + (number % 3) * block, middle_y + (10 if number >= 3 else -ROW_STEP * math.ceil(count / columns))
        shape = GridShape(round(x, 1), round(y, 1), PITCH, ROW_STEP)
        counts = [columns] * (count // columns) + ([count % columns] if count % columns else [])
        if counts:
            sections.append(_grid_section("F" + "ABCDEF"[number], "floor", shape, counts))
    if pit:
        corner = round(middle_x - reach * 0.66, 1), round(middle_y - reach * 0.27, 1)
        shape_of_pit = AreaShape(*corner, round(reach * 0.3, 1), round(reach * 0.54, 1))
        sections.append(area("Pit", pit, tier="pit", shape=shape_of_pit))
    return sections


def _fits(floor: list[Section], middle: tuple[float, float], first: ArcShape) -> bool:
    """Whether every chair of the floor is at least a pitch away from the first ring."""
    seated = [section for section in floor if section.kind is SectionKind.SEATED]
    chairs = [seat for section in seated for row in section.rows for seat in row.seats]
    rx, ry = first.rx - PITCH, first.ry - PITCH
    return all(((seat.x - middle[0]) / rx) ** 2 + ((seat.y - middle[1]) / ry) ** 2 < 1 for seat in chairs)


def _grid_section(label: str, tier: str, shape: GridShape, counts: list[int]) -> Section:
    rows = tuple(
        Row(row_label(number), tuple(Seat(str(i), x, y, tier) for i, (x, y) in enumerate(points, 1)), number)
        for number, points in ((n, row_points(shape, n, count, 0, 0)) for n, count in enumerate(counts))
    )
    return Section(label, rows, shape=shape)


def _arc_section(
    label: str, tier: str, shape: ArcShape, counts: list[int], first_ring: bool, side: bool, width: float, height: float
) -> Section:
    rows = []
    for number, count in enumerate(counts):
        step_free = first_ring and number == len(counts) - 1  # the concourse is behind the last row
        flags = [_ring_flags(seat, step_free, side) for seat in range(count)]
        points = row_points(shape, number, count, width, height)
        seats = tuple(Seat(str(i + 1), x, y, tier, flags[i]) for i, (x, y) in enumerate(points))
        rows.append(Row(row_label(number), seats, number))
    return Section(label, tuple(rows), shape=shape)


def _ring_flags(seat: int, step_free: bool, side: bool) -> int:
    flags = SeatFlag.RESTRICTED_VIEW if side else SeatFlag.NONE
    if step_free and seat % WHEELCHAIR_EVERY < 2:
        flags |= SeatFlag.STEP_FREE | (SeatFlag.COMPANION if seat % WHEELCHAIR_EVERY else SeatFlag.NONE)
    return int(flags)


def _rank_sections(sections: list[Section], focus: tuple[float, float]) -> tuple[Section, ...]:
    """The sections ranked by the distance of their middle seat to the stage, nearest first."""

    def distance(section: Section) -> float:
        row = section.rows[len(section.rows) // 2]
        seat = row.seats[len(row.seats) // 2]
        return math.hypot(seat.x - focus[0], seat.y - focus[1])

    order = {section.id: rank for rank, section in enumerate(sorted(sections, key=distance))}
    return tuple(replace(section, rank=order[section.id]) for section in sections)
