"""Seat ranges as text, one per line: a section (`101`), a row (`101-A`), a seat (`101-A-4`), seats (`101-A-4…9`).

Parsing reports the line that is wrong. Formatting uses the fewest lines. Each is the exact inverse of the other.
"""

import re
from collections.abc import Collection
from typing import Final

from frontrow.boxoffice.seats.model.venues import Plan, Row, Section
from frontrow.core.errors import InvalidInput

MAX_LINES: Final = 5_000
MAX_TIMES_OVER: Final = 3  # that the lines together may name all seats
_RANGE: Final = re.compile(r"(.+?)(?:…|\.\.\.?)(.+)")


def parse_seat_ranges(plan: Plan, text: str) -> list[str]:
    """The ids of all seats that the lines name, each once, in plan order."""
    lines = [line.strip() for line in text.splitlines()]
    if len(lines) > MAX_LINES:
        raise InvalidInput(f"at most {MAX_LINES:,} lines", param="withheld", reason="withheld_lines")
    sections = {section.id: section for section in plan.sections}
    found: set[str] = set()
    read = 0
    for number, line in enumerate(lines, 1):
        if line:
            named = _parse_line(sections, number, line)
            found.update(named)
            read += len(named)
        if read > MAX_TIMES_OVER * plan.size:
            raise InvalidInput(
                f"line {number}: the lines before name every seat {MAX_TIMES_OVER} times",
                param="withheld",
                reason="withheld_lines",
            )
    return [seat_id for seat_id in plan.seat_ids if seat_id in found]


def _parse_line(sections: dict[str, Section], number: int, line: str) -> list[str]:
    section_id, _, rest = line.partition("-")
    row_id, _, seats = rest.partition("-")
    section = sections.get(section_id)
    if section is None:
        raise InvalidInput(f"line {number}: there is no section {section_id[:40]}", param="withheld", line=number)
    rows = [row for row in section.rows if row.id == row_id] if row_id else list(section.rows)
    if not rows:
        raise InvalidInput(
            f"line {number}: section {section_id} has no row {row_id[:40]}", param="withheld", line=number
        )
    if not seats:
        return [f"{section.id}-{row.id}-{seat.number}" for row in rows for seat in row.seats]
    return [f"{section.id}-{row_id}-{label}" for label in _labels_in_range(rows[0], number, line, seats)]


def _labels_in_range(row: Row, number: int, line: str, text: str) -> list[str]:
    labels = [seat.number for seat in row.seats]
    parts = None if text in labels else _RANGE.fullmatch(text)  # a label may contain dots
    first, last = (parts[1].strip(), parts[2].strip()) if parts else (text, text)
    for label in (first, last):
        if label not in labels:
            raise InvalidInput(
                f"line {number}: {line[:60]}: there is no seat {label[:40]} in this row", param="withheld", line=number
            )
    begin, end = labels.index(first), labels.index(last)
    if end < begin:
        raise InvalidInput(
            f"line {number}: {line[:60]}: seat {last} comes before seat {first}", param="withheld", line=number
        )
    return labels[begin : end + 1]


def format_seat_ranges(plan: Plan, seats: Collection[int]) -> str:
    """The seats in the fewest lines."""
    lines: list[str] = []
    for base, section in zip(plan.bases, plan.sections, strict=True):
        if section.size and all(index in seats for index in range(base, base + section.size)):
            lines.append(section.id)
            continue
        for row in section.rows:
            lines += _format_row(section, row, [base + at in seats for at in range(len(row.seats))])
            base += len(row.seats)
    return "\n".join(lines)


def _format_row(section: Section, row: Row, chosen: list[bool]) -> list[str]:
    head = f"{section.id}-{row.id}"
    if chosen and all(chosen):
        return [head]
    lines, at = [], 0
    while at < len(chosen):  # every turn moves on
        if not chosen[at]:
            at += 1
            continue
        end = at
        while end + 1 < len(chosen) and chosen[end + 1]:
            end += 1
        first, last = row.seats[at].number, row.seats[end].number
        lines.append(f"{head}-{first}" if at == end else f"{head}-{first}…{last}")
        at = end + 1
    return lines
