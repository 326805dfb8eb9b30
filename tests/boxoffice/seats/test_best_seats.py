"""Best available (B4): against an independent, exhaustive search, and the no-lonely-seat rule with its relaxation."""

from hypothesis import given
from hypothesis import strategies as st

from frontrow.boxoffice.holds.model.requested_seats import Wish, masks_for
from frontrow.boxoffice.seats.model.best_seats import (
    Grade,
    SectionLayout,
    best_available,
    choose_seats,
    find_lonely_seats,
    layouts,
    lonely_rule_applies,
)
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, SeatFlag, Section
from tests.boxoffice.plan_samples import an_event, small_plan

Case = tuple[SectionLayout, bytes, bytes]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A section of up to 4 rows with aisles and ranks, its states and a mask."""
    rows = []
    for number in range(draw(st.integers(1, 4))):
        flags = draw(st.lists(st.sampled_from([0, 0, 0, int(SeatFlag.GAP_AFTER)]), min_size=1, max_size=9))
        seats = tuple(Seat(str(i), flags=flag) for i, flag in enumerate(flags))
        rows.append(Row(f"r{number}", seats, rank=draw(st.integers(0, 2))))
    layout = layouts(Plan("p", (Section("s", tuple(rows)),)))[0]
    states = bytes(draw(st.lists(st.sampled_from([0, 0, 0, 1, 2, 3]), min_size=layout.size, max_size=layout.size)))
    mask = bytes(draw(st.lists(st.sampled_from([1, 1, 1, 0]), min_size=layout.size, max_size=layout.size)))
    return layout, states, mask


def lonely(layout: SectionLayout, states: bytes) -> set[int]:
    """The free seats without a free neighbour."""
    found = set()
    for run in layout.runs:
        inside = {at: states[at] == 0 for at in range(run.offset, run.offset + run.length)}
        found |= {at for at in inside if inside[at] and not inside.get(at - 1) and not inside.get(at + 1)}
    return found


def taken(states: bytes, seats: list[int]) -> bytes:
    return bytes(1 if at in seats else state for at, state in enumerate(states))


def windows(layout: SectionLayout, states: bytes, mask: bytes, count: int) -> list[tuple[int, list[int]]]:
    """Every stretch of `count` fitting neighbours, as (position of its run in the order of preference, seats)."""
    return [
        (position, list(range(start, start + count)))
        for position, run in enumerate(layout.runs)
        for start in range(run.offset, run.offset + run.length - count + 1)
        if all(states[at] == 0 and mask[at] for at in range(start, start + count))
    ]


def cost(layout: SectionLayout, states: bytes, position: int, seats: list[int]) -> int:
    """Half columns from the middle of the row, and two more for each side left with an odd number of free seats."""
    run = layout.runs[position]
    columns2 = [run.column2 + 2 * (at - run.offset) for at in (seats[0], seats[-1])]
    row = "".join("." if states[at] == 0 else "x" for at in range(run.offset, run.offset + run.length))
    before, after = row[: seats[0] - run.offset], row[seats[-1] - run.offset + 1 :]
    sides = len(before) - len(before.rstrip(".")), len(after) - len(after.lstrip("."))
    return abs(sum(columns2)) // 2 + 2 * sum(side % 2 for side in sides)


@given(cases(), st.integers(1, 5))
def test_together_is_the_best_window_that_makes_no_seat_lonely(case: Case, count: int) -> None:
    """B4: same row and no lonely seat left."""
    layout, states, mask = case
    good = [
        (position, cost(layout, states, position, seats), seats)
        for position, seats in windows(layout, states, mask, count)
        if lonely(layout, taken(states, seats)) <= lonely(layout, states)
    ]
    assert choose_seats(layout, states, mask, count, Grade.TOGETHER) == (min(good)[2] if good else [])


@given(cases(), st.integers(1, 5))
def test_same_row_is_the_best_window_of_all(case: Case, count: int) -> None:
    """B4: then same row."""
    layout, states, mask = case
    ranked = [(p, cost(layout, states, p, seats), seats) for p, seats in windows(layout, states, mask, count)]
    assert choose_seats(layout, states, mask, count, Grade.SAME_ROW) == (min(ranked)[2] if ranked else [])


def overlap(layout: SectionLayout, a: tuple[int, list[int]], b: tuple[int, list[int]]) -> bool:
    """Whether two windows are in neighbouring rows and share a stretch of column."""
    run_a, run_b = layout.runs[a[0]], layout.runs[b[0]]
    if abs(run_a.row - run_b.row) != 1:
        return False
    left_a, left_b = (run.column2 + 2 * (w[1][0] - run.offset) - 1 for run, w in ((run_a, a), (run_b, b)))
    return left_a < left_b + 2 * len(b[1]) and left_b < left_a + 2 * len(a[1])


@given(cases(), st.integers(1, 5))
def test_adjacent_rows_are_found_when_they_exist_with_the_evenest_split(case: Case, count: int) -> None:
    """B4: then adjacent rows."""
    layout, states, mask = case
    found = choose_seats(layout, states, mask, count, Grade.ADJACENT_ROWS)
    possible = {
        larger: [
            sorted(a[1] + b[1])
            for a in windows(layout, states, mask, larger)
            for b in windows(layout, states, mask, count - larger)
            if overlap(layout, a, b)
        ]
        for larger in range((count + 1) // 2, count)
    }
    evenest = next((choices for choices in possible.values() if choices), [])
    assert (found in evenest) if evenest else found == []


@given(cases(), st.integers(1, 6))
def test_apart_takes_any_fitting_seats(case: Case, count: int) -> None:
    layout, states, mask = case
    fitting = [at for at in range(layout.size) if states[at] == 0 and mask[at]]
    found = choose_seats(layout, states, mask, count, Grade.APART)
    assert len(found) == (count if len(fitting) >= count else 0)
    assert set(found) <= set(fitting)


@given(cases(), st.data())
def test_the_lonely_rule_forbids_only_what_could_have_been_avoided(case: Case, data: st.DataObject) -> None:
    """The relaxation: a stretch of g free seats may be left with one when g - 1 of it are taken."""
    layout, states, _ = case
    free = [at for at in range(layout.size) if states[at] == 0]
    picked = data.draw(st.lists(st.sampled_from(free), unique=True, min_size=1)) if free else []
    new = lonely(layout, taken(states, picked)) - lonely(layout, states)
    blamed = set(find_lonely_seats(layout, states, picked))
    assert blamed <= new
    for at in new - blamed:  # forgiven: its whole stretch but this seat was picked
        neighbours = [at - 1, at + 1]
        stretch = {at}
        for step, start in ((-1, neighbours[0]), (1, neighbours[1])):
            run = next(r for r in layout.runs if r.offset <= at < r.offset + r.length)
            while run.offset <= start < run.offset + run.length and states[start] == 0:
                stretch.add(start)
                start += step
        assert stretch - set(picked) == {at}


def test_the_lonely_rule_in_pictures() -> None:
    layout = layouts(Plan("p", (Section("s", (Row("A", tuple(Seat(str(i)) for i in range(8))),)),)))[0]
    empty = bytes(8)
    assert find_lonely_seats(layout, empty, [1, 2]) == [0]
    assert find_lonely_seats(layout, empty, [0, 1]) == []
    assert find_lonely_seats(layout, empty, [2, 3, 5, 6]) == [4, 7]
    assert find_lonely_seats(layout, empty, [0, 1, 2, 3, 4, 5, 6]) == []  # seven of eight: one must stay alone
    assert find_lonely_seats(layout, bytes([0, 0, 0, 1, 0, 0, 0, 0]), [1]) == [0, 2]
    assert find_lonely_seats(layout, bytes([0, 0, 0, 1, 0, 0, 0, 0]), [0, 1]) == []  # two of three
    assert find_lonely_seats(layout, bytes([1, 0, 1, 0, 0, 0, 0, 0]), [3, 4]) == []  # seat 1 was alone before


def test_the_lonely_rule_ends_near_the_end() -> None:
    assert lonely_rule_applies(90, 899, 1000)
    assert not lonely_rule_applies(90, 900, 1000)
    assert not lonely_rule_applies(0, 0, 1000)


def test_an_aisle_separates_neighbours() -> None:
    plan = small_plan(rows=1, aisle_after=5)
    layout = layouts(plan)[0]
    assert [run[:2] for run in layout.runs] == [(0, 5), (5, 5)]
    assert choose_seats(layout, bytes(10), bytes([1]) * 10, 6, Grade.SAME_ROW) == []
    assert choose_seats(layout, bytes(10), bytes([1]) * 10, 5, Grade.TOGETHER) == [0, 1, 2, 3, 4]


def test_an_area_gives_its_first_free_places() -> None:
    layout = layouts(small_plan())[2]
    states = bytes([1, 0, 2, 0, 0]) + bytes(15)
    assert choose_seats(layout, states, bytes([1]) * 20, 3, Grade.TOGETHER) == [1, 3, 4]
    assert choose_seats(layout, states, bytes([1]) * 20, 3, Grade.APART) == []


def found(wish: Wish, states: bytes | None = None, **event: object) -> list[str]:
    plan = small_plan()
    masks = masks_for(plan, layouts(plan), an_event(**event), wish)
    choice = best_available(layouts(plan), states or bytes(plan.size), masks, wish.count, wish.worst)
    return [plan.seat_id(index) for index in choice.seats] if choice else []


def test_wishes_choose_price_section_access_and_standing() -> None:
    """B4: price range, section, accessibility wishes."""
    assert found(Wish(2)) == ["S-A-5", "S-A-6"]
    assert found(Wish(2, max_price_minor=4000)) == []  # the cheap seats have a restricted view
    assert found(Wish(2, max_price_minor=4000, restricted_view_ok=True)) == ["B-A-3", "B-A-4"]
    assert found(Wish(2, min_price_minor=2500, max_price_minor=4000, standing=True)) == ["F-GA-1", "F-GA-2"]
    assert found(Wish(1, sections=("F",))) == ["F-GA-1"]
    assert found(Wish(1, step_free=True)) == ["S-A-1"]
    assert found(Wish(2, step_free=True)) == ["S-A-1", "S-A-2"]
    assert found(Wish(3, step_free=True)) == []
    assert found(Wish(9, sections=("S",))) == [f"S-B-{i}" for i in range(1, 10)]  # row A keeps its companion seat


def test_withheld_seats_are_never_chosen() -> None:
    withheld = frozenset(range(10))
    states = bytes(3 if index in withheld else 0 for index in range(56))
    assert found(Wish(2), states, withheld=withheld) == ["S-B-5", "S-B-6"]
    assert found(Wish(2), withheld=withheld) == ["S-B-5", "S-B-6"]  # the mask alone suffices


def test_a_better_grade_in_a_worse_section_wins() -> None:
    plan = small_plan(rows=1)
    states = bytearray(bytes([1]) * 3 + bytes(3) + bytes([1]) * 4 + bytes(6) + bytes(20))
    masks = [(0, bytes([1]) * 10), (1, bytes([1]) * 6)]
    assert best_available(layouts(plan), states, masks, 2) == (Grade.TOGETHER, 1, (12, 13))
    states[10:16] = bytes([2]) * 6
    assert best_available(layouts(plan), states, masks, 2) == (Grade.SAME_ROW, 0, (4, 5))


def test_a_crowd_asking_for_the_best_two_never_collides_and_leaves_nobody_alone() -> None:
    """Fan after fan as in the atomic step: only free seats, all served side by side, no lonely seat at any time."""
    plan = Plan("p", (Section("s", tuple(Row(f"r{r}", tuple(Seat(str(i)) for i in range(20))) for r in range(10))),))
    layout, states, mask = layouts(plan)[0], bytearray(plan.size), bytes([1]) * plan.size
    served = dict.fromkeys(Grade, 0)
    while choice := best_available([layout], states, [(0, mask)], 2, Grade.APART):
        assert all(states[index] == 0 for index in choice.seats)
        for index in choice.seats:
            states[index] = 1
        served[choice.grade] += 1
        assert not lonely(layout, bytes(states))
    assert served[Grade.TOGETHER] == 100
