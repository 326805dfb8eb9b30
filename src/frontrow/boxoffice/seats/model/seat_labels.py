"""Labels of sections, rows and seats. They have letters, digits and dots only, so ids made of them are unambiguous.

People read the names that the organiser gave to sections and rows instead, on every page and ticket (`SeatLabels`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from frontrow.core.errors import InvalidInput

MAX_LABEL_CHARS = 32
AREA_ROW = "GA"  # the one row of an area: general admission, a count and no seats
_NOT_LABEL = re.compile(r"[\W_]+")


def label_from(text: str) -> str:
    """The nearest label to a free text: each run of other characters becomes one dot."""
    return _NOT_LABEL.sub(".", text).strip(".")[:MAX_LABEL_CHARS]


def check_label(text: str, what: str) -> str:
    """`text` if it is a label; otherwise an error that suggests one."""
    if not text or len(text) > MAX_LABEL_CHARS or not text.replace(".", "a").isalnum():
        hint = f"; use {label_from(text)!r}" if label_from(text) else ""
        raise InvalidInput(
            f"{what} {text[:60]!r} must be 1 to {MAX_LABEL_CHARS} letters, digits or dots{hint}", param=what
        )
    return text


def seat_parts(seat_id: str) -> tuple[str, str, str]:
    """Section, row and number of a public seat id."""
    section, _, rest = seat_id.partition("-")
    row, _, number = rest.rpartition("-")
    return section, row, number


def seat_text(named: tuple[str, str, str]) -> str:
    """A seat in a list: `Balcony · A · 7`, or `Pit · 7` for a place to stand."""
    return " · ".join(part for part in named if part not in ("", AREA_ROW))


@dataclass(frozen=True, slots=True)
class SeatLabels:
    """How people call the seats of a plan. Sections and rows without a name of their own are called by their ids."""

    sections: Mapping[str, str] = field(default_factory=dict)  # id -> name
    rows: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (section id, row id) -> name

    def parts(self, seat_id: str) -> tuple[str, str, str]:
        """Section, row and number of a seat, by their names."""
        section, row, number = seat_parts(seat_id)
        return self.sections.get(section, section), self.rows.get((section, row), row), number

    def text(self, seat_id: str) -> str:
        """A seat in a list."""
        return seat_text(self.parts(seat_id))


def seat_name(seats: Sequence[str] | Mapping[int, str], index: int) -> str:
    """The name of a seat, or its number when it has no name here."""
    try:
        return seats[index]
    except (IndexError, KeyError):
        return f"seat {index}"
