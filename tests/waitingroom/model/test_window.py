"""W2, W3: the state that the window gives a place, and how lo follows."""

from hypothesis import given
from hypothesis import strategies as st

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
