"""A venue and its immutable Plan: sections, rows, seats with their geometry, and general-admission areas.

Every seat has a public id `<section>-<row>-<number>` and an integer index 0…n-1 in plan order. Claims, ledger and feed
use the index; people, files and errors use the id. Labels contain letters, digits and dots only, so ids and Redis keys
built from them are unambiguous. An Area of N places is a section with one row `GA` of N seats, so the same code serves
both.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntFlag, StrEnum
from functools import cached_property
from typing import TypeVar, cast

from frontrow.boxoffice.seats.model.plan_shapes import AreaShape, Decor, Shape
from frontrow.boxoffice.seats.model.seat_labels import AREA_ROW, check_label
from frontrow.boxoffice.seats.model.seat_names import SeatLabels
from frontrow.core.errors import InvalidInput, NotFound

Derived = TypeVar("Derived")

MAX_SEATS = 1_000_000
MAX_COORDINATE = 10_000_000
MAX_TIERS = 32  # times 8 combinations of flags: the kind of a seat fits in a byte
MAX_SEATS_NAMED = 20  # per error


class SeatFlag(IntFlag):
    """Properties of a seat. GAP_AFTER: an aisle follows, so the next seat of the row is not a neighbour."""

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
    """One seat. `tier` is the key of its price tier; `ref` is its id in the system it was imported from, or empty."""

    number: str
    x: float = 0.0
    y: float = 0.0
    tier: str = "standard"
    flags: int = 0
    ref: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Seats side by side, in order. A smaller `rank` is a better row (0 is the best)."""

    id: str
    seats: tuple[Seat, ...]
    rank: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Rows from front to back. A `shape` places the seats; without one, each seat has its own x and y."""

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
    """The immutable seating of a venue. It checks itself when it is built."""

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

    def derive(self, make: "Callable[[Plan], Derived]") -> Derived:
        """The result of `make(plan)`, made once: all events with this plan share it, so it must not be changed."""
        made = self._derived.get(make)
        if made is None:
            made = self._derived[make] = make(self)
        return cast(Derived, made)

    @cached_property
    def _derived(self) -> "dict[Callable[[Plan], object], object]":
        return {}

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
    def labels(self) -> SeatLabels:
        """How people call its seats."""
        return SeatLabels(
            {section.id: section.name for section in self.sections if section.name},
            {
                (section.id, row.id): row.name
                for section in self.sections
                for row in section.rows
                if row.name and section.kind is SectionKind.SEATED
            },
        )

    @cached_property
    def seats(self) -> tuple[Seat, ...]:
        """Every seat, by index."""
        return tuple(seat for section in self.sections for row in section.rows for seat in row.seats)

    @cached_property
    def index_of(self) -> dict[str, int]:
        """The index of every seat, by id."""
        return {seat_id: index for index, seat_id in enumerate(self.seat_ids)}

    @cached_property
    def _section_number(self) -> dict[str, int]:
        return {section.id: number for number, section in enumerate(self.sections)}

    @cached_property
    def tiers(self) -> tuple[str, ...]:
        """The keys of the price tiers of its seats, in order of first use."""
        return tuple(dict.fromkeys(seat.tier for seat in self.seats))

    @cached_property
    def kinds(self) -> tuple[tuple[str, int], ...]:
        """Each distinct (tier, flags without GAP_AFTER) of its seats."""
        return tuple(dict.fromkeys((seat.tier, seat.flags & KIND_FLAGS) for seat in self.seats))

    @cached_property
    def seat_kinds(self) -> bytes:
        """For every seat, the position of its kind in `kinds`. A filter over all seats is one bytes.translate."""
        number = {kind: position for position, kind in enumerate(self.kinds)}
        return bytes(number[seat.tier, seat.flags & KIND_FLAGS] for seat in self.seats)

    @cached_property
    def section_order(self) -> tuple[int, ...]:
        """Section positions, best rank first."""
        return tuple(sorted(range(len(self.sections)), key=lambda number: (self.sections[number].rank, number)))

    def indexes(self, seat_ids: Sequence[str]) -> list[int]:
        """The index of each id; UnknownSeats names all that do not exist."""
        index_of = self.index_of
        missing = [seat_id for seat_id in seat_ids if seat_id not in index_of]
        if missing:
            raise UnknownSeats(
                f"{self.name} has no seat {', '.join(missing[:MAX_SEATS_NAMED])}",
                param="seats",
                seats=missing[:MAX_SEATS_NAMED],
            )
        return [index_of[seat_id] for seat_id in seat_ids]

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
            raise NotFound(
                f"{self.name} has no section {section_id!r}", param="section", reason="plan_outdated"
            ) from None

    def section_at(self, index: int) -> int:
        """The position of the section of the seat at `index`."""
        return bisect_right(self.bases, self.check_index(index)) - 1

    def section_range(self, section: int) -> range:
        """The seat indexes of the section at that position."""
        return range(self.bases[section], self.bases[section] + self.sections[section].size)


@dataclass(frozen=True, slots=True)
class Venue:
    """A venue with a plan. `time_zone` is an IANA name."""

    id: str
    name: str
    plan_hash: str
    city: str = ""
    country: str = ""
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class OwnVenue:
    """An organiser's venue; `changed_at_us` is its version."""

    venue: Venue
    changed_at_us: int
    seat_count: int

    @property
    def tag(self) -> str:
        return f"v{self.changed_at_us:x}"


class VenueNotFound(NotFound):
    code = "venue_not_found"


def area(
    section_id: str, capacity: int, *, tier: str = "standing", shape: AreaShape | None = None, **more: str
) -> Section:
    """A general-admission section of `capacity` places numbered from 1."""
    if capacity < 1:
        raise InvalidInput(f"area {section_id} needs a capacity of 1 or more, not {capacity}", param="capacity")
    check_size(capacity)
    shape = shape or AreaShape(0.0, 0.0, 100.0, 100.0)
    middle_x, middle_y = round(shape.x + shape.width / 2, 2), round(shape.y + shape.height / 2, 2)
    seats = tuple(Seat(str(number), middle_x, middle_y, tier) for number in range(1, capacity + 1))
    return Section(section_id, (Row(AREA_ROW, seats),), more.get("name", ""), SectionKind.AREA, 0, shape)


def check_size(seats: int) -> None:
    """Refuse a number of seats that no plan has. Whoever makes a plan sums up and asks here before making any seat."""
    if not 1 <= seats <= MAX_SEATS:
        raise InvalidInput(f"a plan has 1 to {MAX_SEATS:,} seats, not {seats:,}", param="seats", reason="plan_seats")


def _check_plan(plan: Plan) -> None:
    check_size(plan.size)
    if len(plan.tiers) > MAX_TIERS:
        raise InvalidInput(f"a plan has at most {MAX_TIERS} price tiers, not {len(plan.tiers)}", param="tiers")
    if not all(-MAX_COORDINATE <= seat.x <= MAX_COORDINATE >= abs(seat.y) for seat in plan.seats):
        raise InvalidInput(f"every seat's x and y must be within ±{MAX_COORDINATE:,}", param="position")
    for what in _find_repeated(plan):
        raise InvalidInput(
            f"{what} occurs twice in plan {plan.name!r}; rename one", param="plan", reason="section_taken"
        )
    for section in plan.sections:
        if (section.kind is SectionKind.AREA) != isinstance(section.shape, AreaShape) or not section.rows:
            raise InvalidInput(
                f"section {section.id}: every section has rows; areas, and only areas, have an AreaShape"
            )
        if section.kind is SectionKind.AREA and len(section.rows) != 1:
            raise InvalidInput(f"area {section.id} must have exactly one row", param="section")


def _find_repeated(plan: Plan) -> Iterator[str]:
    """The labels that occur twice where they must be unique. Also checks every label."""
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
