"""W3: the estimated wait, and when a page asks again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.waitingroom.model.poll_interval import POLL_POLICY, poll_after_s
from frontrow.waitingroom.model.wait_estimate import Reason, estimate, published


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=60), st.integers(1, 10_000))
def test_a_shown_wait_never_rises_without_a_stated_reason(measured: list[int], ahead: int) -> None:
    shown, last_high = 0, None
    for rate in measured:
        shown, reason = published(shown, rate)
        wait = estimate(ahead, shown, reason)
        if last_high is not None and reason is Reason.NONE and wait.high_s is not None:
            assert wait.high_s <= last_high
        last_high = wait.high_s
        ahead = max(0, ahead - 1)


def test_an_estimate_has_a_band_and_says_when_nobody_can_know() -> None:
    wait = estimate(999, 10_000, Reason.NONE)
    assert (wait.low_s, wait.high_s) == (75, 125)
    assert estimate(5, 0, Reason.NONE).high_s is None
    assert estimate(5, 1000, Reason.PAUSED).high_s is None
    assert estimate(5, 1000, Reason.PAUSED).reason is Reason.PAUSED


@pytest.mark.parametrize(
    ("high_s", "poll_s"), [(None, 30), (0, 5), (20, 5), (23, 5), (24, 6), (1_199, 299), (1_200, 300), (10**6, 300)]
)
def test_a_page_asks_after_a_quarter_of_the_wait_within_bounds(high_s: int | None, poll_s: int) -> None:
    assert poll_after_s(high_s) == poll_s
    assert POLL_POLICY == (5, 300, 4), "pages and mirrors read these from the now-serving document"
