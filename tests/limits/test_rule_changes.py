"""What a live change of a rule does to counts in Redis: carried over, or begun afresh, never misread."""

import struct
from typing import Any

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from frontrow.limits import Decision, Limiter, Quota, Rule
from frontrow.limits.algorithms import SPECIFICATION, State, carry_over, peek_verdict, return_units
from frontrow.limits.quota import ALGORITHMS
from frontrow.limits.stats import Stats
from frontrow.limits.stores.protocol import CHECK, PEEK, REFUND, QuotaSlot, StoreRequest, combine_verdicts
from frontrow.limits.stores.redis import RedisStore
from frontrow.limits.stores.redis_script import state_of
from tests.limits.backends import T0_US, S

MINUTE_US = 60 * S


def check_under(url: str, text: str, times: int = 1, at_us: int = T0_US, **more: Any) -> Decision:
    """The last of `times` checks of one fan, by a server whose rule `api` has this quota."""
    quota = Quota.parse(text, algorithm=more.pop("algorithm", "sliding_counter"), burst=more.pop("burst", None))
    with Limiter([Rule("api", quota)], store=url, deadline_s=5.0, **more) as limiter:
        for _ in range(times):
            decision = limiter.check("fan", now_us=at_us)
    assert 0 <= decision.remaining <= decision.limit
    assert decision.retry_after_us <= quota.life_us
    return decision


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_tighter_limit_counts_what_was_used(redis_url: str, algorithm: str) -> None:
    """L13: 50 of 100 used, then 10 per minute: used up, for as long as ten used units would be, and no longer."""
    check_under(redis_url, "100/minute", 50, algorithm=algorithm)
    tightened = check_under(redis_url, "10/minute", algorithm=algorithm)
    assert (tightened.allowed, tightened.remaining) == (False, 0)
    again = check_under(redis_url, "10/minute", at_us=T0_US + tightened.retry_after_us, algorithm=algorithm)
    assert again.allowed


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_looser_limit_frees_at_once_and_keeps_what_was_used(redis_url: str, algorithm: str) -> None:
    assert not check_under(redis_url, "10/minute", 11, algorithm=algorithm).allowed
    assert check_under(redis_url, "100/minute", algorithm=algorithm).remaining == 89


def test_a_bucket_keeps_its_units_under_another_burst(redis_url: str) -> None:
    check_under(redis_url, "10/minute", 6, algorithm="token_bucket", burst=20)
    assert check_under(redis_url, "10/minute", algorithm="token_bucket", burst=8).remaining == 1
    assert check_under(redis_url, "10/minute", algorithm="leaky_bucket", burst=8).remaining == 0, (
        "buckets share a state"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("10000/minute", "sliding_counter"), ("10/hour", "sliding_counter")),
        (("10/day", "token_bucket"), ("10/minute", "token_bucket")),
        (("10/minute", "token_bucket"), ("10/minute", "fixed_window")),
        (("10/minute", "sliding_log"), ("10/minute", "token_bucket")),
        (("10/minute", "fixed_window"), ("10/minute", "sliding_log")),
    ],
)
def test_another_algorithm_or_period_begins_afresh(
    redis_url: str, before: tuple[str, str], after: tuple[str, str]
) -> None:
    """Servers of both configurations go on by their own counts, in turn, as in a rolling deployment."""
    for used in range(1, 6):
        for text, algorithm in (before, after):
            decision = check_under(redis_url, text, algorithm=algorithm)
            assert decision.remaining == decision.limit - used


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_two_servers_in_turn_share_what_was_used(redis_url: str, algorithm: str) -> None:
    """A rolling deployment from 100 to 10 per minute: together never more than 100, and nobody is locked out."""
    loose, tight = (
        Limiter([Rule("api", Quota.parse(text, algorithm=algorithm))], store=redis_url, deadline_s=5.0)
        for text in ("100/minute", "10/minute")
    )
    with loose, tight:
        turns = [(loose.check("fan", now_us=T0_US + n), tight.check("fan", now_us=T0_US + n)) for n in range(100)]
        later = tight.check("fan", now_us=T0_US + 3 * MINUTE_US)
    assert [sum(decision.allowed for decision in server) for server in zip(*turns, strict=True)] == [95, 5]
    assert all(decision.remaining >= 0 for turn in turns for decision in turn)
    assert later.allowed


def test_states_of_version_0_1_are_left_alone(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.set("frl:api:fan", struct.pack("<2d", T0_US, 1e15))
        for algorithm in ALGORITHMS:
            assert check_under(redis_url, "10/minute", algorithm=algorithm).remaining in (9, 8, 7)
        assert client.get("frl:api:fan") == struct.pack("<2d", T0_US, 1e15)


def test_a_state_that_is_none_begins_afresh(redis_url: str) -> None:
    check_under(redis_url, "10/minute", 5)
    with redis.Redis.from_url(redis_url) as client:
        [key] = client.keys()
        client.set(key, "not a state")
    assert check_under(redis_url, "10/minute").remaining == 9


# -- random histories ------------------------------------------------------------------------------------------------

quotas = st.builds(
    lambda limit, period_s, algorithm, burst: Quota(
        limit, period_s * S, algorithm, burst if algorithm in ("token_bucket", "leaky_bucket", "leaky_queue") else 0
    ),
    st.integers(1, 12) | st.sampled_from([7, 97, 1000]),
    st.sampled_from([7, 60]),
    st.sampled_from(ALGORITHMS),
    st.integers(0, 20),
)
operations = st.tuples(
    st.integers(0, 3),
    st.sampled_from([CHECK, CHECK, CHECK, PEEK, REFUND]),
    st.integers(1, 9),
    st.integers(0, 3 * S) | st.sampled_from([0, 0, 1, 10 * S, 60 * S, -S, -3600 * S]),
)


class Specified:
    """One key's states as specified: one per kind and period, with the quota it was written under."""

    def __init__(self) -> None:
        self.states: dict[tuple[str, int], tuple[Quota, State]] = {}

    def decide(self, slot: QuotaSlot, op: int, cost: int, now_us: int) -> Decision:
        quota, home = slot.quota, (state_of(slot.quota), slot.quota.period_us)
        state = carry_over(quota, *self.states[home]) if home in self.states else None
        if op == CHECK:
            verdict, after = SPECIFICATION[quota.algorithm](quota, state, now_us, cost)
        else:
            after = return_units(quota, state, now_us, cost) if op == REFUND else None
            verdict = peek_verdict(quota, state if op == PEEK else after, now_us, cost if op == PEEK else 1)
        if after is not None:
            self.states[home] = (quota, after)
        return combine_verdicts([slot], [verdict]).decision


@settings(max_examples=150)
@given(changes=st.lists(quotas, min_size=2, max_size=4), history=st.lists(operations, max_size=30))
def test_specification_and_script_agree_while_the_quota_changes(
    every_redis_url: str, changes: list[Quota], history: list[tuple[int, int, int, int]]
) -> None:
    """Servers with different quotas for one rule, in any order: the script does what the specification says."""
    slots = [QuotaSlot(Rule("api", quota), "", quota) for quota in changes]
    store, specified = RedisStore(every_redis_url, slots, Stats([]), deadline_s=5.0), Specified()
    now_us = latest_us = T0_US
    with redis.Redis.from_url(every_redis_url) as client:
        client.flushdb()
    try:
        for which, op, cost, step_us in history:
            now_us += step_us
            latest_us = max(latest_us, now_us)
            at = which % len(slots)
            quota = slots[at].quota
            cost = min(cost, quota.capacity)
            decision = store.decide(StoreRequest((at,), ("fan",), cost, now_us, op)).decision
            assert decision == specified.decide(slots[at], op, cost, now_us)
            assert 0 <= decision.remaining <= quota.capacity
            assert decision.retry_after_us <= quota.life_us
            if not decision.allowed and op != REFUND and now_us == latest_us:  # time that went back stands still
                then_us = now_us + decision.retry_after_us
                assert store.decide(StoreRequest((at,), ("fan",), cost, then_us, PEEK)).decision.allowed
    finally:
        store.close()
