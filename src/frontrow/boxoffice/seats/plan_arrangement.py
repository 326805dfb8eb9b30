"""An arrangement: where the rows and areas of a plan are now, as the editor in the browser saves it. Pure.

It lists every section that stays, by the id it had (`of`), and of each only what changed: labels, the rows that stay,
the positions of their seats in hundredths of a unit. What is listed a second time is a copy, without imported ids.
Tiers, flags, names and ranks stay with their seats. Nothing changed gives the same plan, to the byte.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from frontrow.boxoffice.seats.formats.plan_reader import BadPlan
from frontrow.boxoffice.seats.model.plan_shapes import AreaShape, GridShape, Shape, row_points
from frontrow.boxoffice.seats.model.venues import MAX_SEATS, Plan, Row, Seat, Section, SectionKind
from frontrow.boxoffice.seats.plan_editing import grow_plan, last_rank

NEAREST: Final = 5.0  # seats are drawn 7.4 wide
SAME_MOVE: Final = 0.05
MAX_NAMED, MAX_FOUND = 20, 200
Point = tuple[float, float]


class RowPlacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A row: the id it had, its id now if that is another, and its seats if they moved (x, y, x, y …)."""

    of: str
    id: str = ""
    points: list[int] | None = None


class SectionPlacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A section: the id it had, its id now, its rows if they changed; of an area its box (x, y, width, height)."""

    of: str
    id: str = ""
    rows: list[RowPlacement] | None = None
    box: tuple[int, int, int, int] | None = None


class Arrangement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All sections that stay."""

    sections: list[SectionPlacement]


def read_arrangement(text: str) -> Arrangement:
    """The arrangement that a text describes."""
    try:
        return msgspec.json.decode(text, type=Arrangement)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise BadPlan(f"this is not an arrangement of a plan: {error}", param="placed") from None


def arrange_plan(plan: Plan, arrangement: Arrangement) -> Plan:
    """The plan as arranged. Seats that now lie on others are refused by name."""
    sources = _find_sources(plan, arrangement)
    sections: list[Section] = []
    seen: set[str] = set()
    for source, placement in zip(sources, arrangement.sections, strict=True):
        placed = _place_section(source, placement, is_copy=placement.of in seen)
        if placement.of in seen:
            placed = replace(placed, rank=last_rank(plan) + 1 + len(sections))
        seen.add(placement.of)
        sections.append(placed)
    if [id(one) for one in sections] == [id(one) for one in plan.sections]:
        return plan
    arranged = grow_plan(replace(plan, sections=tuple(sections)))
    _check_overlaps(sources, arrangement, arranged)
    return arranged


def _find_sources(plan: Plan, arrangement: Arrangement) -> list[Section]:
    """The section that each placement was. Refuses too many copies before they are made."""
    by_id = {section.id: section for section in plan.sections}
    sources, size = [], 0
    for placement in arrangement.sections:
        source = by_id.get(placement.of)
        if source is None:
            raise BadPlan(
                f"the plan has no section {placement.of[:40]!r} any more", param="section", reason="plan_outdated"
            )
        rows = {row.id: len(row.seats) for row in source.rows}
        chosen = rows if placement.rows is None else [row.of for row in placement.rows]
        size += sum(rows.get(label, 0) for label in chosen)
        if size > MAX_SEATS:
            raise BadPlan(f"a plan has at most {MAX_SEATS:,} seats", param="seats", reason="plan_seats")
        sources.append(source)
    if not sources:
        raise BadPlan("a plan has at least one section", param="sections", reason="last_section")
    return sources


def _place_section(source: Section, placement: SectionPlacement, *, is_copy: bool) -> Section:
    section_id = placement.id or source.id
    if not is_copy and section_id == source.id and placement.rows is None and placement.box is None:
        return source
    rows = source.rows
    if placement.rows is not None and source.kind is SectionKind.SEATED:
        rows = tuple(_place_rows(source, placement.rows))
        if not rows:
            raise BadPlan(f"section {section_id} has no rows", param="section")
    shape: Shape | None = source.shape
    if placement.box is not None and isinstance(shape, AreaShape):
        shape, rows = _place_area(source, placement.box)
    elif placement.rows is not None:
        shape = _moved_grid(source, rows)
    name = source.name if section_id == source.id else ""
    placed = replace(source, id=section_id, rows=rows, shape=shape, name=name)
    return _without_refs(placed) if is_copy else placed


def _place_rows(section: Section, placements: Sequence[RowPlacement]) -> Iterator[Row]:
    seen: set[str] = set()
    by_id = {row.id: row for row in section.rows}
    rank = max(row.rank for row in section.rows)
    for placement in placements:
        source = by_id.get(placement.of)
        if source is None:
            raise BadPlan(
                f"section {section.id} has no row {placement.of[:40]!r} any more", param="row", reason="plan_outdated"
            )
        row = (
            source
            if placement.points is None
            else replace(source, seats=_place_seats(section, source, placement.points))
        )
        if placement.id and placement.id != source.id:
            row = replace(row, id=placement.id, name="")
        if placement.of in seen:
            rank += 1
            row = replace(row, rank=rank, seats=tuple(replace(seat, ref="") for seat in row.seats))
        seen.add(placement.of)
        yield row


def _place_seats(section: Section, row: Row, points: Sequence[int]) -> tuple[Seat, ...]:
    if len(points) != 2 * len(row.seats):
        raise BadPlan(f"row {section.id}-{row.id} has {len(row.seats)} seats, not {len(points) / 2:g}", param="points")
    pairs = zip(points[::2], points[1::2], strict=True)
    return tuple(replace(seat, x=x / 100, y=y / 100) for seat, (x, y) in zip(row.seats, pairs, strict=True))


def _place_area(source: Section, box: tuple[int, int, int, int]) -> tuple[Shape, tuple[Row, ...]]:
    x, y, width, height = (value / 100 for value in box)
    if width < 1 or height < 1:
        raise BadPlan(f"area {source.id} needs a width and a height", param="box")
    middle_x, middle_y = round(x + width / 2, 2), round(y + height / 2, 2)
    seats = tuple(replace(seat, x=middle_x, y=middle_y) for seat in source.rows[0].seats)
    return AreaShape(x, y, width, height), (replace(source.rows[0], seats=seats),)


def _moved_grid(source: Section, rows: Sequence[Row]) -> Shape | None:
    """The shape that gives exactly these positions: the one it had, or its grid elsewhere; None for single points."""
    if [[(s.x, s.y) for s in row.seats] for row in rows] == [[(s.x, s.y) for s in row.seats] for row in source.rows]:
        return source.shape
    if not isinstance(source.shape, GridShape) or not rows[0].seats:
        return None
    first = rows[0].seats[0]
    grid = replace(source.shape, x=first.x, y=first.y)
    same = (
        [(s.x, s.y) for s in row.seats] == row_points(grid, at, len(row.seats), 0, 0) for at, row in enumerate(rows)
    )
    return grid if all(same) else None


def _without_refs(section: Section) -> Section:
    rows = tuple(replace(row, seats=tuple(replace(seat, ref="") for seat in row.seats)) for row in section.rows)
    return replace(section, rows=rows)


def _check_overlaps(sources: Sequence[Section], arrangement: Arrangement, arranged: Plan) -> None:
    """Refuse seats that were moved onto others. Seats that moved together, or not at all, may lie as they lay."""
    pairs = find_overlaps(sources, arrangement, arranged)
    if pairs:
        rows = _overlapping_rows(pairs)
        said, overlaps = _describe_overlaps(rows), [(*found[0], len(found) - 1) for found in rows[:MAX_NAMED]]
        seats = [seat for pair in pairs for seat in pair]
        raise BadPlan("; ".join(said), param="seats", errors=said, overlaps=overlaps, seats=seats)


def _overlapping_rows(pairs: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """The pairs of seats, by their pair of rows."""
    rows: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for one, other in pairs:
        rows.setdefault((one.rpartition("-")[0], other.rpartition("-")[0]), []).append((one, other))
    return list(rows.values())


def _describe_overlaps(rows: Sequence[Sequence[tuple[str, str]]]) -> list[str]:
    """One line per pair of rows, with its first two seats."""
    said = []
    for found in rows:
        more = f", and {len(found) - 1} more of these rows" if len(found) > 1 else ""
        said.append(f"{found[0][0]} and {found[0][1]} overlap{more}")
    return said[:MAX_NAMED]


def find_overlaps(sources: Sequence[Section], arrangement: Arrangement, arranged: Plan) -> list[tuple[str, str]]:
    """Pairs of seats, by id, that came nearer to each other than `NEAREST`; at most two hundred."""
    cells: dict[tuple[int, int], dict[Point, int]] = {}
    found: list[tuple[str, str]] = []
    for index, move in enumerate(_moves(sources, arrangement, arranged)):
        if move is None:
            continue
        seat = arranged.seats[index]
        column, line = int(seat.x // NEAREST), int(seat.y // NEAREST)
        near = (
            other
            for cell in ((column + across, line + down) for across in (-1, 0, 1) for down in (-1, 0, 1))
            for other_move, other in cells.get(cell, {}).items()
            if max(abs(other_move[0] - move[0]), abs(other_move[1] - move[1])) > SAME_MOVE
        )
        for other in near:
            it = arranged.seats[other]
            if (it.x - seat.x) ** 2 + (it.y - seat.y) ** 2 < NEAREST**2:
                found.append((arranged.seat_ids[other], arranged.seat_ids[index]))
                break
        if len(found) >= MAX_FOUND:
            break
        cells.setdefault((column, line), {}).setdefault(move, index)  # one per move is enough to find a pair
    return found


def _moves(sources: Sequence[Section], arrangement: Arrangement, arranged: Plan) -> Iterator[Point | None]:
    """How far each seat moved from where it, or what it is a copy of, was; None for a place in an area."""
    for source, placement, section in zip(sources, arrangement.sections, arranged.sections, strict=True):
        if source.kind is SectionKind.AREA:
            yield from [None] * section.size
            continue
        labels = [row.of for row in placement.rows] if placement.rows is not None else [row.id for row in source.rows]
        rows = {row.id: row for row in source.rows}
        for label, row in zip(labels, section.rows, strict=True):
            for was, seat in zip(rows[label].seats, row.seats, strict=True):
                yield round(seat.x - was.x, 2), round(seat.y - was.y, 2)
