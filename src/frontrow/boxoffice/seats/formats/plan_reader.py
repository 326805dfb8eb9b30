"""Reads a plan document back into a Plan. An invalid document is refused with an error that says where."""

import json
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from frontrow.boxoffice.seats.formats.plan_document import FORMAT, default_rows
from frontrow.boxoffice.seats.model.plan_shapes import ArcShape, AreaShape, Decor, GridShape, Shape, row_points
from frontrow.boxoffice.seats.model.venues import MAX_SEATS, Plan, Row, Seat, Section, SectionKind
from frontrow.core.errors import InvalidInput

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
Point = tuple[float, float]


class BadPlan(InvalidInput):
    code = "bad_plan"


def decode_plan(body: bytes) -> Plan:
    """The plan of a stored document."""
    if len(body) > MAX_DOCUMENT_BYTES:
        raise BadPlan(f"a plan document has at most {MAX_DOCUMENT_BYTES:,} bytes, not {len(body):,}", param="plan")
    try:
        document = json.loads(body)
    except ValueError as error:
        raise BadPlan(f"the plan document is not valid JSON: {error}", param="plan") from None
    return plan_from_document(document)


def plan_from_document(document: Any) -> Plan:
    """The plan of a document written by `to_document`."""
    if not isinstance(document, dict) or document.get("v") != FORMAT:
        raise BadPlan(f"this is not a plan document: its 'v' must be {FORMAT!r}", param="v")
    try:
        tiers = [str(tier["key"]) for tier in document["tiers"]]
        details: Sequence[Mapping[str, Any]] = document["detail"]
        width, height = float(document["w"]), float(document["h"])
        _check_counts(document["sections"])
        sections = tuple(
            _read_section(entry, detail, position, tiers, width, height)
            for position, (entry, detail) in enumerate(zip(document["sections"], details, strict=True))
        )
        decor = tuple(Decor(d["t"], d["x"], d["y"], d["w"], d["h"], d["label"]) for d in document["decor"])
        plan = Plan(str(document["name"]), sections, width, height, decor)
    except InvalidInput:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise BadPlan(f"the plan document is damaged: {type(error).__name__} {error}", param="plan") from None
    if plan.size != document["seats"]:
        raise BadPlan(f"the document says {document['seats']} seats but has {plan.size}", param="seats")
    return plan


def _check_counts(sections: Sequence[Sequence[Any]]) -> None:
    """Sum up the seats and rows of all sections before any of them is made."""
    seats = rows = 0
    for entry in sections:
        counts: list[int] = entry[-1]
        if not counts or any(type(count) is not int or count < 0 for count in counts):
            raise BadPlan(f"section {str(entry[0])[:40]}: rows have 0 seats or more", param="sections")
        seats, rows = seats + sum(counts), rows + len(counts)
    if seats > MAX_SEATS or rows > MAX_SEATS:
        raise BadPlan(f"a plan has at most {MAX_SEATS:,} seats, not {max(seats, rows):,}", param="seats")


def _read_section(
    entry: Sequence[Any], detail: Mapping[str, Any], position: int, tiers: Sequence[str], width: float, height: float
) -> Section:
    counts: list[int] = entry[-1]
    shape = _read_shape(entry)
    kind = SectionKind.AREA if isinstance(shape, AreaShape) else SectionKind.SEATED
    ids = detail.get("rows") or default_rows(kind, len(counts))
    names = detail.get("row_names") or [""] * len(counts)
    ranks = detail.get("row_ranks") or range(len(counts))
    numbers = detail.get("numbers", {})
    seats = _read_seats(entry, detail, shape, counts, tiers, width, height)
    rows, at = [], 0
    for number, count in enumerate(counts):
        labels = numbers.get(str(number)) or [str(label) for label in range(1, count + 1)]
        cells = zip(labels, seats[at : at + count], strict=True)
        row_seats = tuple(Seat(label, *cell) for label, cell in cells)
        rows.append(Row(ids[number], row_seats, ranks[number], names[number]))
        at += count
    return Section(entry[0], tuple(rows), detail.get("name", ""), kind, detail.get("rank", position), shape)


def _read_seats(
    entry: Sequence[Any],
    detail: Mapping[str, Any],
    shape: Shape | None,
    counts: Sequence[int],
    tiers: Sequence[str],
    width: float,
    height: float,
) -> list[tuple[float, float, str, int, str]]:
    """Position, tier, flags and ref of every seat of a section."""
    total = sum(counts)
    points = _read_points(entry, shape, counts, width, height)
    seat_tiers = [tiers[t] for t in _expand_runs(detail.get("tiers") or [[total, entry[1]]], total)]
    flags = _expand_runs(detail.get("flags") or [[total, 0]], total)
    refs = detail.get("refs") or [""] * total
    return [(x, y, t, f, r) for (x, y), t, f, r in zip(points, seat_tiers, flags, refs, strict=True)]


def _read_points(
    entry: Sequence[Any], shape: Shape | None, counts: Sequence[int], width: float, height: float
) -> list[Point]:
    if isinstance(shape, AreaShape):
        middle = round(shape.x + shape.width / 2, 2), round(shape.y + shape.height / 2, 2)
        return [middle] * sum(counts)
    if shape is not None:
        return [point for row, n in enumerate(counts) for point in row_points(shape, row, n, width, height)]
    steps, points, x, y = entry[3], [], 0, 0
    for dx, dy in zip(steps[::2], steps[1::2], strict=True):
        x, y = x + dx, y + dy
        points.append((x / 100, y / 100))
    return points


def _read_shape(entry: Sequence[Any]) -> Shape | None:
    match entry[2]:
        case "a":
            return ArcShape(*map(float, entry[3:8]))
        case "g":
            return GridShape(*map(float, entry[3:7]))
        case "ga":
            return AreaShape(*map(float, entry[3:7]))
        case "x":
            return None
        case other:
            raise BadPlan(f"section {entry[0]}: kind {other!r} is not one of a, g, x, ga", param="sections")


def _expand_runs(runs: Sequence[Sequence[int]], total: int) -> list[int]:
    """Run lengths expanded to one value per seat."""
    if any(type(length) is not int or length < 0 for length, _ in runs) or sum(length for length, _ in runs) != total:
        raise BadPlan(f"run lengths do not add up to {total}", param="detail")
    return list(chain.from_iterable(repeat(value, length) for length, value in runs))
