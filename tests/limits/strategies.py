"""Quotas and sequences of operations for property tests."""

from hypothesis import strategies as st

from frontrow.limits import Quota
from frontrow.limits.quota import ALGORITHMS
from frontrow.limits.stores.protocol import CHARGE, CHECK, PEEK, REFUND, RESET
from tests.limits.backends import S

quotas = st.builds(
    lambda limit, period_us, algorithm, burst: Quota(
        limit, period_us, algorithm, burst if algorithm in ("token_bucket", "leaky_bucket", "leaky_queue") else 0
    ),
    st.integers(1, 12) | st.sampled_from([7, 97, 1000, 1_234_567]),
    st.sampled_from([1, 100_000, 1_500_000, *(seconds * S for seconds in (1, 2, 7, 10, 60, 3600, 86_400))]),
    st.sampled_from([a for a in ALGORITHMS if a != "sliding_log"]),
    st.integers(0, 9),
) | st.builds(
    lambda limit, period_s: Quota(limit, period_s * S, "sliding_log"), st.integers(1, 12), st.sampled_from([1, 7, 60])
)
steps_us = st.one_of(
    st.integers(0, 3 * S),
    st.sampled_from([0, 0, 1, S, 10 * S, 60 * S]),
    st.integers(-5 * S, 0),
    st.sampled_from([-3600 * S, 86_400 * S, -86_400 * S, 27 * 86_400 * S, 31 * 86_400 * S, -40 * 86_400 * S]),
)
operations = st.tuples(
    st.sampled_from([CHECK, CHECK, CHECK, PEEK, REFUND, CHARGE, RESET]), st.integers(1, 4), steps_us, st.integers(0, 1)
)
