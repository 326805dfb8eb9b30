"""Plans as documents, generated, drawn, and on the command line (B1, B13, N1)."""

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from frontrow.boxoffice.seats.event_map import map_bytes
from frontrow.boxoffice.seats.formats.plan_document import digest, plan_bytes, plan_hash, row_label
from frontrow.boxoffice.seats.formats.plan_generator import KINDS, PITCH, generate
from frontrow.boxoffice.seats.formats.plan_reader import BadPlan, decode_plan
from frontrow.boxoffice.seats.model.map_format import Snapshot, write_snapshot
from frontrow.boxoffice.seats.model.plan_shapes import AreaShape, Decor, GridShape, row_points
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, SeatFlag, Section, SectionKind, area
from frontrow.boxoffice.seats.plan_svg import to_svg
from frontrow.cli.event import app, read_plan
from frontrow.core.errors import InvalidInput
from tests.boxoffice.plan_samples import an_event, small_plan

labels = st.text("ABCxyz0189ÄЖ.", min_size=1, max_size=5).filter(
    lambda text: text.strip(".") == text and ".." not in text
)
coordinates = st.integers(-50_000, 900_000).map(lambda number: number / 100)
tier_keys = st.sampled_from(["a", "b", "c d"])


@st.composite
def sections(draw: st.DrawFn, label: str) -> Section:
    kind = draw(st.sampled_from(["points", "grid", "area"]))
    if kind == "area":
        return area(label, draw(st.integers(1, 9)), tier=draw(tier_keys), shape=AreaShape(1.5, 2.5, 30.0, 40.25))
    shape = GridShape(3.0, 4.0, 9.0, 10.5) if kind == "grid" else None
    rows = []
    for number, row_id in enumerate(draw(st.lists(labels, min_size=1, max_size=3, unique=True))):
        numbers = draw(st.lists(labels, min_size=1, max_size=6, unique=True))
        points = (
            row_points(shape, number, len(numbers), 0, 0)
            if shape
            else [(draw(coordinates), draw(coordinates)) for _ in numbers]
        )
        seats = tuple(
            Seat(seat, x, y, draw(tier_keys), draw(st.integers(0, 15)), draw(st.sampled_from(["", "guid-1"])))
            for seat, (x, y) in zip(numbers, points, strict=True)
        )
        rows.append(Row(row_id, seats, draw(st.integers(0, 5)), draw(st.sampled_from(["", "Row one"]))))
    return Section(
        label, tuple(rows), draw(st.sampled_from(["", "Balcony, left"])), rank=draw(st.integers(0, 3)), shape=shape
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    ids = draw(st.lists(labels, min_size=1, max_size=3, unique=True))
    decor = (Decor("rect", 1.0, 2.0, 3.0, 4.0, "STAGE"),) if draw(st.booleans()) else ()
    return Plan("Hall", tuple(draw(sections(label)) for label in ids), 500.0, 400.5, decor)


@given(plans())
def test_a_plan_comes_back_from_its_document_unchanged(plan: Plan) -> None:
    body = plan_bytes(plan)
    assert decode_plan(body) == plan
    assert plan_bytes(decode_plan(body)) == body


def test_the_hash_names_the_content() -> None:
    assert plan_hash(small_plan()) == plan_hash(small_plan()) == digest(plan_bytes(small_plan()))
    assert plan_hash(small_plan()) != plan_hash(small_plan(seats=9))


def test_the_map_of_an_event_has_prices_and_no_foreign_ids() -> None:
    """B1: geometry document with price tiers; the same bytes for every viewer."""
    plan = Plan("Hall", (Section("S", (Row("A", (Seat("1", tier="front", ref="secret"),)),)),))
    body = map_bytes(plan, an_event())
    assert b"secret" in plan_bytes(plan)
    assert b"secret" not in body
    assert json.loads(body)["tiers"] == [{"id": 0, "key": "front", "name": "Front", "price": 5000, "cur": "EUR"}]
    assert body == map_bytes(plan, an_event())


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("v"),
        lambda d: d.pop("tiers"),
        lambda d: d.update(seats=99),
        lambda d: d["sections"].pop(),
        lambda d: d["sections"][0].__setitem__(2, "q"),
        lambda d: d["sections"][0].__setitem__(1, 77),
        lambda d: d["sections"][0][-1].__setitem__(0, -4),
        lambda d: d["sections"][0][-1].__setitem__(0, 10**9),
        lambda d: d["detail"][0].update(flags=[[3, 1]]),
        lambda d: d["detail"][0].update(rows=["A", "A", "B"]),
        lambda d: d.update(w="wide"),
        lambda d: d.update(detail=None),
    ],
)
def test_a_damaged_document_is_refused(damage: object) -> None:
    document = json.loads(plan_bytes(small_plan()))
    damage(document)  # type: ignore[operator]
    with pytest.raises(InvalidInput):
        decode_plan(json.dumps(document).encode())


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b"\xff\xfe", b'{"v":"fsmap/2"}'])
def test_what_is_no_document_is_refused(body: bytes) -> None:
    with pytest.raises(BadPlan):
        decode_plan(body)


def test_rows_are_named_like_spreadsheet_columns() -> None:
    assert [row_label(n) for n in (0, 25, 26, 51, 52, 701, 702)] == ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]


@pytest.mark.parametrize("kind", list(KINDS))
@given(seats=st.integers(20, 3000))
@settings(max_examples=8)
def test_a_generated_venue_has_exactly_the_asked_seats(kind: str, seats: int) -> None:
    plan = generate(kind, seats)
    assert plan.size == seats
    assert len(set(plan.seat_ids)) == seats
    assert decode_plan(plan_bytes(plan)) == plan
    assert all(0 <= seat.x <= plan.width and 0 <= seat.y <= plan.height for seat in plan.seats)


@pytest.mark.parametrize(("kind", "seats"), [("arena", 400), ("arena", 1_500), ("arena", 12_000), ("stadium", 50_000)])
def test_no_row_of_a_template_has_gaps(kind: str, seats: int) -> None:
    """Before: one last row of the outer ring kept a third of its seats, two or three times as far apart."""
    for section in generate(kind, seats).sections:
        for row in section.rows if section.kind is SectionKind.SEATED else ():
            apart = [math.dist((a.x, a.y), (b.x, b.y)) for a, b in itertools.pairwise(row.seats)]
            assert max(apart, default=PITCH) < 1.4 * PITCH, (section.id, row.id)


def test_a_stadium_of_50_000_seats_is_one_small_document() -> None:
    """N1: 50,000 seats; the document stays small enough for every viewer."""
    plan = generate("stadium", 50_000)
    assert plan.size == 50_000
    assert len(plan_bytes(plan)) < 30_000
    flags = [seat.flags for seat in plan.seats]
    assert all(
        sum(1 for f in flags if f & flag) > 50
        for flag in (SeatFlag.STEP_FREE, SeatFlag.COMPANION, SeatFlag.RESTRICTED_VIEW)
    )


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("seats", [20, 100, 300, 400, 800, 1_500, 2_000])
def test_generated_seats_do_not_overlap(kind: str, seats: int) -> None:
    """Chairs of a small arena's floor stood in its first ring, and the rings of a small stadium in each other."""
    plan = generate(kind, seats)
    cells: dict[tuple[int, int], list[Seat]] = {}
    for number, section in enumerate(plan.sections):
        for seat in [plan.seats[i] for i in plan.section_range(number)] if section.kind == "seated" else ():
            cells.setdefault((int(seat.x // 9), int(seat.y // 9)), []).append(seat)
    for (x, y), here in cells.items():
        around = [seat for dx in (-1, 0, 1) for dy in (-1, 0, 1) for seat in cells.get((x + dx, y + dy), ())]
        for seat in here:
            assert sum(math.hypot(seat.x - other.x, seat.y - other.y) < 6.5 for other in around) == 1, "itself alone"


@pytest.mark.parametrize(("kind", "seats"), [("circus", 500), ("arena", 19), ("arena", 200_001), ("arena", -1)])
def test_impossible_venues_are_refused(kind: str, seats: int) -> None:
    with pytest.raises(InvalidInput):
        generate(kind, seats)


def dots(svg: str) -> dict[str, int]:
    tree = ElementTree.fromstring(svg)
    paths = tree.findall("{http://www.w3.org/2000/svg}path")
    return {path.attrib["stroke"]: path.attrib["d"].count("M") for path in paths}


def test_the_picture_has_a_dot_for_every_seat_by_tier_or_state() -> None:
    plan = small_plan()
    assert sorted(dots(to_svg(plan)).values()) == [6, 30]  # the area is a box
    states = bytes([0] * 10 + [1] * 12 + [2] * 13 + [3])
    assert sorted(dots(to_svg(plan, states + bytes(20))).values()) == [1, 10, 12, 13]
    assert ElementTree.fromstring(to_svg(plan))[0].text == "Small Hall, 56 seats"


def test_names_cannot_break_out_of_the_picture() -> None:
    plan = Plan("<script>&", small_plan().sections, decor=(Decor("rect", 0, 0, 9, 9, "<b>"),))
    assert "<script>" not in to_svg(plan)
    ElementTree.fromstring(to_svg(plan))


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_plans_travel_through_the_command_line(tmp_path: Path) -> None:
    plan_file, pretix_file, back_file, svg_file = (tmp_path / name for name in ("p.json", "x.json", "b.json", "p.svg"))
    assert "1,000 seats" in run("plan", "generate", "arena", "--seats", "1000", "-o", plan_file)
    run("plan", "export", plan_file, "-o", pretix_file)
    assert "1,000 seats" in run("plan", "import", pretix_file, "-o", back_file)
    assert read_plan(back_file)[0].seat_ids == read_plan(plan_file)[0].seat_ids
    run("plan", "show", plan_file, "-o", svg_file)
    assert sum(dots(svg_file.read_text()).values()) == 900
    (tmp_path / "s.bin").write_bytes(write_snapshot(Snapshot(bytes([2]) * 1000, 1, 1)))
    run("plan", "show", plan_file, "-o", svg_file, "--states", tmp_path / "s.bin")
    assert list(dots(svg_file.read_text()).values()) == [900]
    assert json.loads(run("plan", "show", plan_file, "--summary"))["tiers"]["pit"] == 100
    assert json.loads(run("plan", "export", plan_file, "--format", "frontrow"))["v"] == "fsmap/1"


def test_the_command_line_says_what_is_wrong(tmp_path: Path) -> None:
    for name, body in (("a.json", '{"zones": 1}'), ("b.json", "{"), ("c.csv", "section,row\n"), ("d.json", "[NaN]")):
        (tmp_path / name).write_text(body)
        result = CliRunner().invoke(app, ["plan", "import", str(tmp_path / name)])
        assert result.exit_code == 1
        assert "error: " in result.output
    (tmp_path / "e.json").write_bytes(b"\xff\xff")
    assert CliRunner().invoke(app, ["plan", "show", str(tmp_path / "e.json")]).exit_code == 1
    assert CliRunner().invoke(app, ["plan", "generate", "arena", "--seats", "5"]).exit_code == 1


def test_the_command_line_works_without_the_libraries_for_pretix(tmp_path: Path) -> None:
    """Somebody who wants only the limiter's commands has no msgspec; the group must load all the same."""
    (tmp_path / "x.json").write_text('{"zones": []}')
    program = (
        "import sys; sys.modules['msgspec'] = None; from frontrow.cli.event import app; "
        f"app(['plan', 'import', {str(tmp_path / 'x.json')!r}])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "pip install 'frontrow[boxoffice]'" in ended.stderr
