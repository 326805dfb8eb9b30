"""W12: lanes share admissions by weight; nobody waits for an empty lane; nobody's position worsens."""

from hypothesis import given
from hypothesis import strategies as st

from frontrow.waitingroom.model.lanes import share

lanes = st.integers(1, 3).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 5000), min_size=n, max_size=n), st.lists(st.integers(1, 1000), min_size=n, max_size=n)
    )
)


@given(st.integers(0, 20_000), lanes)
def test_everything_that_can_be_given_is_given_and_no_lane_gets_more_than_its_people(
    total: int, both: tuple[list[int], list[int]]
) -> None:
    waiting, weights = both
    given_out, credits = share(total, waiting, weights, [0] * len(waiting))
    assert sum(given_out) == min(total, sum(waiting))
    assert all(0 <= got <= people for got, people in zip(given_out, waiting, strict=True))
    assert len(credits) == len(waiting)


@given(lanes, st.integers(1, 7))
def test_even_one_at_a_time_keeps_to_the_weights(both: tuple[list[int], list[int]], portion: int) -> None:
    _, weights = both
    credits, got = (0,) * len(weights), [0] * len(weights)
    for _ in range(200):
        given_out, credits = share(portion, [10**6] * len(weights), weights, credits)
        got = [a + b for a, b in zip(got, given_out, strict=True)]
    for have, weight in zip(got, weights, strict=True):
        assert abs(have - 200 * portion * weight / sum(weights)) <= len(weights)


def test_an_empty_lane_saves_nothing_up_and_holds_nobody_up() -> None:
    assert share(100, [0, 1000], [9, 1], [0, 0])[0] == (0, 100)
    assert share(100, [5, 1000], [9, 1], [0, 0])[0] == (5, 95)
    credits = (0, 0)
    for _ in range(50):
        _, credits = share(10, [0, 1000], [9, 1], credits)
    assert share(10, [1000, 1000], [9, 1], credits)[0] == (9, 1)
