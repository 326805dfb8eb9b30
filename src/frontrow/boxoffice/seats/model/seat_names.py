"""What people call a seat, in each language: one name on every page, mail and ticket.

The words are here, and not with the other texts of a language, because the order of section, row and number belongs to
the language too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from frontrow.boxoffice.seats.model.seat_labels import AREA_ROW


def seat_parts(seat_id: str) -> tuple[str, str, str]:
    """Section, row and number of a public seat id."""
    section, _, rest = seat_id.partition("-")
    row, _, number = rest.rpartition("-")
    return section, row, number


class NamePatterns(NamedTuple):
    """How a language names a seat, and a place to stand."""

    seat: str
    standing: str


SEAT_NAMES: Final[Mapping[str, NamePatterns]] = {
    "en": NamePatterns("{section}, Row {row}, Seat {seat}", "{section}, standing"),
    "de": NamePatterns("{section}, Reihe {row}, Platz {seat}", "{section}, Stehplatz"),
    "fr": NamePatterns("{section}, rang {row}, place {seat}", "{section}, debout"),
    "es": NamePatterns("{section}, fila {row}, asiento {seat}", "{section}, de pie"),
    "pt": NamePatterns("{section}, fila {row}, lugar {seat}", "{section}, em pé"),
    "ja": NamePatterns("{section} {row}列 {seat}番", "{section}、スタンディング"),
    "ar": NamePatterns("{section}، الصف {row}، المقعد {seat}", "{section}، وقوفًا"),
}
_ENGLISH_SEAT: Final = re.compile(r"(?P<section>.+), Row (?P<row>.+), Seat (?P<seat>.+)")
_ENGLISH_STANDING: Final = re.compile(r"(?P<section>.+), standing")
ISOLATED: Final = frozenset({"ar"})  # names keep their own order inside a text that is read from right to left


def seat_text(named: tuple[str, str, str], language: str = "en") -> str:
    """The one name of a seat, wherever people read it: `Stalls, Row J, Seat 20`, or `Pit, standing`."""
    section, row, number = named
    patterns = SEAT_NAMES.get(language, SEAT_NAMES["en"])
    if language in ISOLATED:
        section, row, number = (f"\u2068{part}\u2069" if part else "" for part in (section, row, number))
    if named[1] == AREA_ROW:
        return patterns.standing.format(section=section)
    return patterns.seat.format(section=section, row=row, seat=number) if named[1] else (section or number)


def name_in(text: str, language: str) -> str:
    """The English name of a seat in another language, for texts that are written once and read in any language, such
    as the lines of an invoice. A text that is no such name is left as it is."""
    seat, standing = _ENGLISH_SEAT.fullmatch(text), _ENGLISH_STANDING.fullmatch(text)
    if seat:
        return seat_text((seat["section"], seat["row"], seat["seat"]), language)
    return seat_text((standing["section"], AREA_ROW, ""), language) if standing else text


@dataclass(frozen=True, slots=True)
class SeatLabels:
    """How people call the seats of a plan. Sections and rows without a name of their own are called by their ids."""

    sections: Mapping[str, str] = field(default_factory=dict)  # id -> name
    rows: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (section id, row id) -> name

    def parts(self, seat_id: str) -> tuple[str, str, str]:
        """Section, row and number of a seat, by their names."""
        section, row, number = seat_parts(seat_id)
        return self.sections.get(section, section), self.rows.get((section, row), row), number

    def text(self, seat_id: str, language: str = "en") -> str:
        """The name of a seat."""
        return seat_text(self.parts(seat_id), language)


def seat_name(seats: Sequence[str] | Mapping[int, str], index: int) -> str:
    """The name of a seat, or its number when it has no name here."""
    try:
        return seats[index]
    except (IndexError, KeyError):
        return f"seat {index}"
