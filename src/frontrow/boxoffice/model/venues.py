"""A venue and its immutable Plan: sections, rows, seats with their geometry, and general-admission areas.

Every seat has a public id `<section>-<row>-<number>` and an integer index 0…n-1 in plan order. Claims, ledger and feed
speak of the index; people, files and errors of the id. Labels hold letters, digits and dots only, so neither an id nor
a Redis key made of them can be read two ways. An Area of N places is a section with one row `GA` of N seats, so one
machinery serves both.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntFlag, StrEnum
from functools import cached_property

from frontrow.boxoffice.model.plan_shapes import AreaShape, Decor, Shape
from frontrow.boxoffice.model.seat_labels import check_label
from frontrow.core.errors import InvalidInput, NotFound

MAX_SEATS = 1_000_000
MAX_COORDINATE = 10_000_000
MAX_TIERS = 32  # times 8 combinations of flags: a seat's kind fits a byte
AREA_ROW = "GA"
SHOWN = 20  # an error names at most so many seats


class SeatFlag(IntFlag):
    """What a seat is like. GAP_AFTER: an aisle follows, so the next seat of the row is no neighbour."""

    NONE = 0
    STEP_FREE = 1
    COMPANION = 2
    RESTRICTED_VIEW = 4
    GAP_AFTER = 8


KIND_FLAGS = int(SeatFlag.STEP_FREE | SeatFlag.COMPANION | SeatFlag.RESTRICTED_VIEW)


class SectionKind(StrEnum):
    SEATED = "seated"
    AREA = "area"


class UnknownSeats(NotFound):
    code = "unknown_seats"
    http_status = 422


@dataclass(frozen=True, slots=True)
class Seat:
    """One seat. `tier` is the key of its price tier, `ref` its id in the system the plan came from (or empty)."""

    number: str
    x: float = 0.0
    y: float = 0.0
    tier: str = "standard"
    flags: int = 0
    ref: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Seats side by side, in the order of their neighbourhood. A smaller `rank` is a better row (0 is the best)."""

    id: str
    seats: tuple[Seat, ...]
    rank: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Rows front to back. With a `shape` the seats lie where it says; without one each seat's x and y count."""

    id: str
    rows: tuple[Row, ...]
    name: str = ""
    kind: SectionKind = SectionKind.SEATED
    rank: int = 0
    shape: Shape | None = None

    @property
    def size(self) -> int:
        return sum(len(row.seats) for row in self.rows)


@dataclass(frozen=True)
class Plan:
    """The immutable seating of a venue. Build it whole; it checks itself and never changes."""

    name: str
    sections: tuple[Section, ...]
    width: float = 1000.0
    height: float = 1000.0
    decor: tuple[Decor, ...] = ()
    bases: tuple[int, ...] = field(init=False, repr=False, compare=False)  # index of each section's first seat
    size: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bases, base = [], 0
        for section in self.sections:
            bases.append(base)
            base += section.size
        object.__setattr__(self, "bases", tuple(bases))
        object.__setattr__(self, "size", base)
        _check_plan(self)

    @cached_property
    def seat_ids(self) -> tuple[str, ...]:
        """The id of every seat, by index."""
        return tuple(
            f"{section.id}-{row.id}-{seat.number}"
            for section in self.sections
            for row in section.rows
            for seat in row.seats
        )

    @cached_property
    def seats(self) -> tuple[Seat, ...]:
        """Every seat, by index."""
        return tuple(seat for section in self.sections for row in section.rows for seat in row.seats)

    @cached_property
    def row_starts(self) -> tuple[tuple[int, ...], ...]:
        """For each section the indexes of its rows' first seats."""
        starts = []
        for base, section in zip(self.bases, self.sections, strict=True):
            of_section = []
            for row in section.rows:
                of_section.append(base)
                base += len(row.seats)
            starts.append(tuple(of_section))
        return tuple(starts)

    @cached_property
    def _index_of(self) -> dict[str, int]:
        return {seat_id: index for index, seat_id in enumerate(self.seat_ids)}

    @cached_property
    def _section_number(self) -> dict[str, int]:
        return {section.id: number for number, section in enumerate(self.sections)}

    @cached_property
    def tiers(self) -> tuple[str, ...]:
        """The keys of the price tiers its seats belong to, in order of first use."""
        return tuple(dict.fromkeys(seat.tier for seat in self.seats))

    @cached_property
    def kinds(self) -> tuple[tuple[str, int], ...]:
        """Each different (tier, flags without GAP_AFTER) of its seats."""
        return tuple(dict.fromkeys((seat.tier, seat.flags & KIND_FLAGS) for seat in self.seats))

    @cached_property
    def seat_kinds(self) -> bytes:
        """For every seat the position of its kind in `kinds`: filters over all seats become one bytes.translate."""
        number = {kind: position for position, kind in enumerate(self.kinds)}
        return bytes(number[seat.tier, seat.flags & KIND_FLAGS] for seat in self.seats)

    @cached_property
    def section_order(self) -> tuple[int, ...]:
        """Section positions, best rank first."""
        return tuple(sorted(range(len(self.sections)), key=lambda number: (self.sections[number].rank, number)))

    def indexes(self, seat_ids: Sequence[str]) -> list[int]:
        """The index of each id; UnknownSeats names all that do not exist."""
        known = self._index_of
        missing = [seat_id for seat_id in seat_ids if seat_id not in known]
        if missing:
            raise UnknownSeats(
                f"{self.name} has no seat {', '.join(missing[:SHOWN])}", param="seats", seats=missing[:SHOWN]
            )
        return [known[seat_id] for seat_id in seat_ids]

    def seat_id(self, index: int) -> str:
        """The id of the seat at `index`."""
        self.check_index(index)
        return self.seat_ids[index]

    def check_index(self, index: int) -> int:
        """`index` if the plan has such a seat."""
        if not 0 <= index < self.size:
            raise UnknownSeats(f"{self.name} has seats 0 to {self.size - 1}, not {index}", param="seats", seats=[index])
        return index

    def section_number(self, section_id: str) -> int:
        """The position of a section in the plan, by its id."""
        try:
            return self._section_number[section_id]
        except KeyError:
            raise NotFound(f"{self.name} has no section {section_id!r}", param="section") from None

    def section_at(self, index: int) -> int:
        """The position of the section that the seat at `index` is in."""
        return bisect_right(self.bases, self.check_index(index)) - 1

    def row_at(self, index: int) -> tuple[int, int, int]:
        """Of the seat at `index`: its section's, its row's and its own position (in plan, section, row)."""
        section = self.section_at(index)
        starts = self.row_starts[section]
        row = bisect_right(starts, index) - 1
        return section, row, index - starts[row]

    def section_range(self, section: int) -> range:
        """The seat indexes of the section at that position."""
        return range(self.bases[section], self.bases[section] + self.sections[section].size)


@dataclass(frozen=True, slots=True)
class Venue:
    """A house with a plan. `time_zone` is an IANA name."""

    id: str
    name: str
    plan_hash: str
    city: str = ""
    country: str = ""
    time_zone: str = "UTC"


def area(
    section_id: str, capacity: int, *, tier: str = "standing", shape: AreaShape | None = None, **more: str
) -> Section:
    """A general-admission section of `capacity` places numbered from 1."""
    if capacity < 1:
        raise InvalidInput(f"area {section_id} needs a capacity of 1 or more, not {capacity}", param="capacity")
    shape = shape or AreaShape(0.0, 0.0, 100.0, 100.0)
    middle_x, middle_y = round(shape.x + shape.width / 2, 2), round(shape.y + shape.height / 2, 2)
    seats = tuple(Seat(str(number), middle_x, middle_y, tier) for number in range(1, capacity + 1))
    return Section(section_id, (Row(AREA_ROW, seats),), more.get("name", ""), SectionKind.AREA, 0, shape)


def _check_plan(plan: Plan) -> None:
    if not 1 <= plan.size <= MAX_SEATS:
        raise InvalidInput(f"a plan has 1 to {MAX_SEATS:,} seats, not {plan.size:,}", param="seats")
    if len(plan.tiers) > MAX_TIERS:
        raise InvalidInput(f"a plan has at most {MAX_TIERS} price tiers, not {len(plan.tiers)}", param="tiers")
    if not all(-MAX_COORDINATE <= seat.x <= MAX_COORDINATE >= abs(seat.y) for seat in plan.seats):
        raise InvalidInput(f"every seat's x and y must be within ±{MAX_COORDINATE:,}", param="position")
    for what in _repeated(plan):
        raise InvalidInput(f"{what} occurs twice in plan {plan.name!r}; rename one", param="plan")
    for section in plan.sections:
        if (section.kind is SectionKind.AREA) != isinstance(section.shape, AreaShape) or not section.rows:
            raise InvalidInput(f"section {section.id}: an area has an AreaShape, only areas do, and all have rows")
        if section.kind is SectionKind.AREA and len(section.rows) != 1:
            raise InvalidInput(f"area {section.id} must have exactly one row", param="section")


def _repeated(plan: Plan) -> Iterator[str]:
    """What occurs twice where it must be unique; checks every label on the way."""
    sections: set[str] = set()
    for section in plan.sections:
        if check_label(section.id, "section") in sections:
            yield f"section {section.id}"
        sections.add(section.id)
        rows: set[str] = set()
        for row in section.rows:
            if check_label(row.id, "row") in rows:
                yield f"row {section.id}-{row.id}"
            rows.add(row.id)
            numbers: set[str] = set()
            for seat in row.seats:
                if check_label(seat.number, "seat") in numbers:
                    yield f"seat {section.id}-{row.id}-{seat.number}"
                numbers.add(seat.number)
