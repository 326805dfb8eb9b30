"""Best available: chooses the best n seats of a section, with integer arithmetic over one byte per seat.

The choice runs inside the atomic step of the claim store, so this file specifies a Lua twin: no floats, no recursion,
and the first of equal choices wins. The inputs per section are `states` (a byte per seat, 0 is free), `mask` (not 0:
the wish allows the seat) and `runs`: unbroken stretches of a row as (offset, length, row, column2), best row first.
column2 is twice the column of the first seat of the run; 0 is the middle of the row.

Grades are tried in this order over all sections: TOGETHER (side by side, no single free seat left), SAME_ROW (side by
side), ADJACENT_ROWS (two overlapping stretches in neighbouring rows), APART (anywhere, if the wish allows it).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from frontrow.boxoffice.seats.model.venues import Plan, SeatFlag, Section, SectionKind

States = bytes | bytearray
ODD_SIDE = 2  # in half columns: just enough to move a choice by one column


class Grade(IntEnum):
    """How good a choice is; smaller is better."""

    TOGETHER = 1
    SAME_ROW = 2
    ADJACENT_ROWS = 3
    APART = 4


class Run(NamedTuple):
    """Seats of one row with no aisle between them; `offset` counts from the section's first seat."""

    offset: int
    length: int
    row: int
    column2: int


@dataclass(frozen=True, slots=True)
class SectionLayout:
    """The first index and the runs of a section, best first."""

    id: str
    base: int
    size: int
    is_area: bool
    runs: tuple[Run, ...]


class Choice(NamedTuple):
    """The chosen seats as plan indexes, and the grade of the choice."""

    grade: Grade
    section: int
    seats: tuple[int, ...]


def layouts(plan: Plan) -> tuple[SectionLayout, ...]:
    """The layout of every section of `plan`, in plan order, built once per plan."""
    return plan.derive(_make_layouts)


def _make_layouts(plan: Plan) -> tuple[SectionLayout, ...]:
    return tuple(
        SectionLayout(section.id, base, section.size, section.kind is SectionKind.AREA, _runs(section))
        for base, section in zip(plan.bases, plan.sections, strict=True)
    )


def choose_seats(layout: SectionLayout, states: States, mask: States, count: int, grade: Grade) -> list[int]:
    """The best `count` seats of exactly this grade, as sorted offsets in the section; empty when there are none."""
    if count < 1 or count > layout.size:
        return []
    if layout.is_area:  # all places are alike
        return _first_fitting(layout.runs, states, mask, count) if grade == Grade.TOGETHER else []
    if grade == Grade.TOGETHER:
        return _side_by_side(layout.runs, states, mask, count, lonely_ok=False)
    if grade == Grade.SAME_ROW:
        return _side_by_side(layout.runs, states, mask, count, lonely_ok=True)
    if grade == Grade.ADJACENT_ROWS:
        return _in_two_rows(layout.runs, states, mask, count)
    return _first_fitting(layout.runs, states, mask, count)


def best_available(
    sections: Sequence[SectionLayout],
    states: States,
    masks: Sequence[tuple[int, States]],
    count: int,
    worst: Grade = Grade.ADJACENT_ROWS,
) -> Choice | None:
    """The best choice from the sections of `masks` (section number and mask, best first). `states` is by index."""
    for grade in Grade:
        if grade > worst:
            break
        for number, mask in masks:
            base, end = sections[number].base, sections[number].base + sections[number].size
            if states.count(0, base, end) < count:  # a shortcut
                continue
            offsets = choose_seats(sections[number], states[base:end], mask, count, grade)
            if offsets:
                return Choice(grade, number, tuple(base + offset for offset in offsets))
    return None


def find_lonely_seats(layout: SectionLayout, states: States, picked: Sequence[int]) -> list[int]:
    """Offsets of the seats that a hand-picked choice would leave as single free seats, although that is avoidable.

    The rule for each stretch of g free seats of which k are picked: with k = g or k = g - 1 no choice could be better,
    so all are allowed. Otherwise no seat may be left with both neighbours taken. A seat that was already alone does not
    count.
    """
    if layout.is_area:
        return []
    chosen = set(picked)
    lonely: list[int] = []
    for run in layout.runs:
        for start, end in _free_stretches(states, run):
            taken = sum(1 for at in range(start, end) if at in chosen)
            if 0 < taken < end - start - 1:
                lonely += [
                    at
                    for at in range(start, end)
                    if at not in chosen and (at == start or at - 1 in chosen) and (at == end - 1 or at + 1 in chosen)
                ]
    return sorted(lonely)


def lonely_rule_applies(until_percent: int, taken: int, size: int) -> bool:
    """Whether the no-lonely-seat rule applies with `taken` of `size` seats gone. It ends when few seats are left."""
    return taken * 100 < until_percent * size


def _runs(section: Section) -> tuple[Run, ...]:
    """The rows of the section, split at aisles: best rank first; within a row, nearest to the middle first."""
    ordered: list[tuple[tuple[int, int, int, int], Run]] = []
    offset = 0
    for row_number, row in enumerate(section.rows):
        start, size = 0, len(row.seats)
        for position, seat in enumerate(row.seats):
            if position == size - 1 or seat.flags & SeatFlag.GAP_AFTER:
                length = position - start + 1
                column2 = 2 * start - (size - 1)
                run = Run(offset + start, length, row_number, column2)
                ordered.append(((row.rank, row_number, abs(column2 + length - 1), start), run))
                start = position + 1
        offset += size
    return tuple(run for _, run in sorted(ordered))


def _side_by_side(runs: Sequence[Run], states: States, mask: States, count: int, *, lonely_ok: bool) -> list[int]:
    """The cheapest `count` neighbours in the first run that has any.

    A choice in a stretch of free seats leaves `left` and `right` seats free. Its cost is the distance from the middle
    of the row in half columns, plus ODD_SIDE for each side with an odd number left, so that pairs can fill the row.
    """
    wanted = bytes(count)
    for run in runs:
        if states.find(wanted, run.offset, run.offset + run.length) < 0:  # a shortcut: no stretch is long enough
            continue
        best, best_cost = -1, -1
        for begin, end in _free_stretches(states, run):
            fitting = 0
            for at in range(begin, end):
                fitting = fitting + 1 if mask[at] != 0 else 0
                start = at - count + 1
                left, right = start - begin, end - 1 - at
                if fitting < count or (not lonely_ok and (left == 1 or right == 1)):
                    continue
                cost = abs(run.column2 + 2 * (start - run.offset) + count - 1) + ODD_SIDE * (left % 2 + right % 2)
                if best < 0 or cost < best_cost:
                    best, best_cost = start, cost
        if best >= 0:
            return list(range(best, best + count))
    return []


def _in_two_rows(runs: Sequence[Run], states: States, mask: States, count: int) -> list[int]:
    """The larger part in one row and the rest in the row in front or behind, the most even split first."""
    for larger in range((count + 1) // 2, count):
        smaller = count - larger
        for run in runs:
            starts = _starts(run, states, mask, larger)
            if not starts:
                continue
            for other in runs:
                if other.row - run.row == 1 or run.row - other.row == 1:
                    pair = _nearest_pair(run, starts, larger, other, _starts(other, states, mask, smaller), smaller)
                    if pair:
                        return pair
    return []


def _nearest_pair(run: Run, starts: list[int], larger: int, other: Run, others: list[int], smaller: int) -> list[int]:
    """The two stretches whose middles are nearest to each other and to the middle of the row. They must overlap."""
    best: list[int] = []
    best_cost = -1
    for start in starts:
        middle2 = run.column2 + 2 * (start - run.offset) + larger - 1
        for other_start in others:
            other_middle2 = other.column2 + 2 * (other_start - other.offset) + smaller - 1
            apart2 = abs(middle2 - other_middle2)
            cost = apart2 + abs(middle2)
            if apart2 < larger + smaller and (best_cost < 0 or cost < best_cost):
                best_cost = cost
                best = [start, other_start]
    if not best:
        return []
    first, second = range(best[0], best[0] + larger), range(best[1], best[1] + smaller)
    return [*first, *second] if best[0] < best[1] else [*second, *first]


def _starts(run: Run, states: States, mask: States, count: int) -> list[int]:
    """Every offset in the run at which `count` fitting seats begin."""
    found, fitting = [], 0
    for at in range(run.offset, run.offset + run.length):
        fitting = fitting + 1 if states[at] == 0 and mask[at] != 0 else 0
        if fitting >= count:
            found.append(at - count + 1)
    return found


def _first_fitting(runs: Sequence[Run], states: States, mask: States, count: int) -> list[int]:
    """The first `count` fitting seats, best run first."""
    found: list[int] = []
    for run in runs:
        for at in range(run.offset, run.offset + run.length):
            if states[at] == 0 and mask[at] != 0:
                found.append(at)
                if len(found) == count:
                    return sorted(found)
    return []


def _free_stretches(states: States, run: Run) -> Iterator[tuple[int, int]]:
    """Each maximal stretch [start, end) of free seats in the run."""
    start = -1
    for at in range(run.offset, run.offset + run.length + 1):
        free = at < run.offset + run.length and states[at] == 0
        if free and start < 0:
            start = at
        elif not free and start >= 0:
            yield start, at
            start = -1
