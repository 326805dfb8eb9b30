"""W2, W3: the state that the window gives a place, and how lo follows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.waitingroom.model.poll_interval import poll_after_s
from frontrow.waitingroom.model.window import (
    RING_SLIDES,
    PlaceState,
    Slide,
    Window,
    lo_by_count,
    lo_by_time,
    push,
)

positions = st.integers(1, 10**9)


@given(positions, positions, positions)
def test_w2_a_place_is_in_exactly_one_state_by_its_position_alone(position: int, a: int, b: int) -> None:
    window = Window(min(a, b), max(a, b))
    state = window.state_of(position)
    assert (state is PlaceState.EXPIRED) == (position <= window.lo)
    assert (state is PlaceState.ACTIVE) == (window.lo < position <= window.hi)
    assert (state is PlaceState.WAITING) == (position > window.hi)


def test_w2_the_edges_belong_to_the_lower_state() -> None:
    window = Window(10, 20)
    assert [window.state_of(p) for p in (10, 11, 20, 21)] == [
        PlaceState.EXPIRED,
        PlaceState.ACTIVE,
        PlaceState.ACTIVE,
        PlaceState.WAITING,
    ]
    assert [window.ahead_of(p) for p in (20, 21, 25)] == [0, 0, 4]


def slides(*his: int, every_us: int = 1_000_000) -> tuple[Slide, ...]:
    return tuple(Slide(n + 1, n * every_us, (hi,), 100) for n, hi in enumerate(his))


def test_w2_by_count_the_last_k_windows_stay_active() -> None:
    ring = slides(100, 200, 300, 400)
    assert lo_by_count(ring, 2, (0,)) == (200,)
    assert lo_by_count(ring[:2], 2, (0,)) == (0,)
    assert lo_by_count(ring, 2, (250,)) == (250,), "lo never goes back"


def test_w2_by_time_a_slide_is_active_until_exactly_its_grace() -> None:
    ring = slides(100, 200, 300)
    grace_us = 10_000_000
    assert lo_by_time(ring, grace_us - 1, grace_us, (0,)) == (0,)
    assert lo_by_time(ring, grace_us, grace_us, (0,)) == (100,)
    assert lo_by_time(ring, grace_us + 1_000_000, grace_us, (0,)) == (200,)


@given(st.lists(st.integers(1, 3_000_000), min_size=1, max_size=400))
def test_the_ring_stays_small_and_never_expires_anybody_before_the_grace(gaps_us: list[int]) -> None:
    """However often it slides, nobody loses grace time, and nobody keeps more than a 32nd (plus one slide) too long."""
    ring: tuple[Slide, ...] = ()
    grace_us, now_us, admitted = 60_000_000, 0, {}
    for number, gap_us in enumerate(gaps_us, 1):
        now_us += gap_us
        admitted[number] = now_us
        ring = push(ring, Slide(number, now_us, (number,), 1), grace_us=grace_us)
        (lo,) = lo_by_time(ring, now_us, grace_us, (0,))
        assert all(admitted[p] + grace_us <= now_us for p in range(1, lo + 1))
        slack_us = grace_us // 32 + 3_000_000
        assert all(admitted[p] + grace_us + slack_us > now_us for p in range(lo + 1, number + 1))
        assert len(ring) <= RING_SLIDES


def test_slides_that_follow_closely_are_merged_into_the_newer_one() -> None:
    """Closer than a 32nd of the grace: one slide with the newer time and edges, the older number and both sizes."""
    grace_us = 32_001
    first, close = Slide(1, 10_000, (10, 4), 14), Slide(2, 10_999, (20, 5), 11)
    ring = push((first,), close, grace_us=grace_us)
    assert ring == (first, close), "with one slide there is nothing to merge into"
    third = Slide(3, 11_500, (30, 6), 11)
    assert push(ring, third, grace_us=grace_us) == (first, Slide(2, 11_500, (30, 6), 22))
    apart = (first, Slide(2, 11_000, (20, 5), 11))
    assert push(apart, third, grace_us=grace_us) == (*apart, third), "exactly a 32nd apart they stay two"
    longer = (Slide(0, 1, (1, 1), 2), *ring)
    assert push(longer, third, grace_us=grace_us) == (*longer[:-1], Slide(2, 11_500, (30, 6), 22))
    assert push(ring, third, grace_us=0) == (*ring, third), "by count nothing is merged"


def test_the_ring_keeps_its_newest_slides() -> None:
    ring: tuple[Slide, ...] = ()
    for number in range(1, RING_SLIDES + 3):
        ring = push(ring, Slide(number, number * 1_000_000, (number,), 1), grace_us=1_000_000)
    assert [slide.number for slide in ring] == list(range(3, RING_SLIDES + 3))


def test_each_lane_has_its_own_lower_edge() -> None:
    ring = (Slide(1, 0, (10, 7), 17), Slide(2, 5, (20, 8), 11), Slide(3, 9, (30, 9), 11), Slide(4, 12, (40, 9), 10))
    assert lo_by_count(ring, 2, (0, 9)) == (20, 9)
    assert lo_by_count(ring, 3, (0, 0)) == (10, 7)
    assert lo_by_time(ring, 105, 100, (15, 0)) == (20, 8)


@pytest.mark.parametrize(
    ("high_s", "poll_s"),
    [(None, 30), (0, 5), (19, 5), (20, 5), (24, 6), (27, 6), (1_000, 250), (1_200, 300), (1_203, 300), (9_999, 300)],
)
def test_a_page_asks_after_a_quarter_of_its_wait_between_five_seconds_and_five_minutes(
    high_s: int | None, poll_s: int
) -> None:
    assert poll_after_s(high_s) == poll_s
