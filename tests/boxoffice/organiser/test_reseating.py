"""Which seats a booking may be moved to (B13): free ones of equal price that nobody keeps back."""

import pytest

from frontrow.boxoffice.organiser.model.reseating import ReseatRefused
from frontrow.boxoffice.organiser.reseating import pair_seats
from tests.boxoffice.plan_samples import an_event, small_plan

PLAN = small_plan()
FRONT = [at for at, seat in enumerate(PLAN.seats) if seat.tier == "front"]
BACK = [at for at, seat in enumerate(PLAN.seats) if seat.tier == "back"]


def test_a_booking_moves_to_seats_of_the_same_price() -> None:
    pairs = pair_seats(an_event(), PLAN, [FRONT[1], BACK[0]], [BACK[3], FRONT[5]])
    assert sorted(pairs) == sorted([(FRONT[1], FRONT[5]), (BACK[0], BACK[3])])


def test_nobody_is_moved_to_a_seat_that_is_withheld() -> None:
    event = an_event(withheld=frozenset({FRONT[5]}))
    with pytest.raises(ReseatRefused, match="withheld"):
        pair_seats(event, PLAN, [FRONT[1]], [FRONT[5]])
    assert pair_seats(event, PLAN, [FRONT[1]], [FRONT[6]]) == ((FRONT[1], FRONT[6]),)


@pytest.mark.parametrize(("leave", "come"), [(BACK[0], FRONT[0]), (FRONT[0], BACK[0])], ids=["dearer", "cheaper"])
def test_nobody_is_moved_to_a_seat_of_another_price(leave: int, come: int) -> None:
    with pytest.raises(ReseatRefused, match="different price"):
        pair_seats(an_event(), PLAN, [leave], [come])


@pytest.mark.parametrize(
    ("leave", "come"),
    [([], []), ([1], [2, 3]), ([1, 1], [2, 3]), ([1, 2], [3, 3]), ([1, 2], [2, 3])],
    ids=["none", "more", "one twice", "to one twice", "left and taken"],
)
def test_every_seat_is_left_for_one_other(leave: list[int], come: list[int]) -> None:
    with pytest.raises(ReseatRefused):
        pair_seats(an_event(), PLAN, leave, come)
