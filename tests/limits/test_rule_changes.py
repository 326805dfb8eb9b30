"""What a live change of a rule does to counts in shared stores: carried over, or begun afresh, never misread."""

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from frontrow.limits import Decision, Limiter, Quota, Rule
from frontrow.limits.algorithms import SPECIFICATION, State, carry_over, peek_verdict, return_units
from frontrow.limits.quota import ALGORITHMS, WINDOWS
from frontrow.limits.stores.protocol import CHECK, PEEK, REFUND, QuotaSlot, StoreRequest, combine_verdicts
from frontrow.limits.stores.state_names import state_of
from tests.limits.backends import T0_US, S
from tests.limits.shared_stores import empty_store, open_shared

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
def test_a_tighter_limit_counts_what_was_used(shared_url: str, algorithm: str) -> None:
    """L13: 50 of 100 used, then 10 per minute: used up, for as long as ten used units would be, and no longer."""
    check_under(shared_url, "100/minute", 50, algorithm=algorithm)
    tightened = check_under(shared_url, "10/minute", algorithm=algorithm)
    assert (tightened.allowed, tightened.remaining) == (False, 0)
    again = check_under(shared_url, "10/minute", at_us=T0_US + tightened.retry_after_us, algorithm=algorithm)
    assert again.allowed


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_looser_limit_frees_at_once_and_keeps_what_was_used(shared_url: str, algorithm: str) -> None:
    assert not check_under(shared_url, "10/minute", 11, algorithm=algorithm).allowed
    assert check_under(shared_url, "100/minute", algorithm=algorithm).remaining == 89


def test_a_bucket_keeps_its_units_under_another_burst(shared_url: str) -> None:
    check_under(shared_url, "10/minute", 6, algorithm="token_bucket", burst=20)
    assert check_under(shared_url, "10/minute", algorithm="token_bucket", burst=8).remaining == 1
    assert check_under(shared_url, "10/minute", algorithm="leaky_bucket", burst=8).remaining == 0, (
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
    shared_url: str, before: tuple[str, str], after: tuple[str, str]
) -> None:
    """Servers of both configurations go on by their own counts, in turn, as in a rolling deployment."""
    for used in range(1, 6):
        for text, algorithm in (before, after):
            decision = check_under(shared_url, text, algorithm=algorithm)
            assert decision.remaining == decision.limit - used


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_two_servers_in_turn_share_what_was_used(shared_url: str, algorithm: str) -> None:
    """A rolling deployment from 100 to 10 per minute: together never more than 100, and nobody is locked out."""
    loose, tight = (
        Limiter([Rule("api", Quota.parse(text, algorithm=algorithm))], store=shared_url, deadline_s=5.0)
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


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_state_of_the_right_size_that_holds_no_numbers_begins_afresh(redis_url: str, algorithm: str) -> None:
    """Something else wrote NaN under a key of a sliding counter: it refused for ever, with a negative rest."""
    with Limiter(f"10/minute {algorithm}", store=redis_url, deadline_s=5.0) as limiter:
        limiter.check("fan", 5)
        with redis.Redis.from_url(redis_url) as client:
            [key] = client.keys()
            client.set(key, b"\xff" * client.strlen(key))
            assert limiter.check("fan").remaining == 9
            assert limiter.check("fan").remaining == 8
            assert client.pttl(key) > 0 or algorithm == "sliding_log"  # a log's first charge sets it


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

    def __init__(self, carry: Callable[[Quota, Quota, State], State] = carry_over) -> None:
        self.states: dict[tuple[str, int], tuple[Quota, State]] = {}
        self._carry = carry

    def decide(self, slot: QuotaSlot, op: int, cost: int, now_us: int) -> Decision:
        quota, home = slot.quota, (state_of(slot.quota), slot.quota.period_us)
        state = self._carry(quota, *self.states[home]) if home in self.states else None
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
def test_specification_and_stores_agree_while_the_quota_changes(
    every_shared_url: str, changes: list[Quota], history: list[tuple[int, int, int, int]]
) -> None:
    """Servers with different quotas for one rule, in any order: every store does what the specification says."""
    slots = [QuotaSlot(Rule("api", quota), "", quota) for quota in changes]
    store, specified = open_shared(every_shared_url, slots), Specified()
    now_us = latest_us = T0_US
    empty_store(every_shared_url)
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


# -- old servers beside new ones -------------------------------------------------------------------------------------

Ask = Callable[[QuotaSlot, int, int], Decision]  # (slot, cost, now_us)


def looser_of(quotas: Sequence[Quota]) -> Quota:
    """The quota that allows whatever one of these allows."""
    [(algorithm, period_us)] = {(quota.algorithm, quota.period_us) for quota in quotas}
    burst = max(quota.capacity for quota in quotas) if quotas[0].is_bucket else 0
    return Quota(max(quota.limit for quota in quotas), period_us, algorithm, burst)


def admitted_beside_each_other(ask: Ask, quotas: Sequence[Quota], history: Sequence[tuple[int, int, int]]) -> int:
    """How many units servers of these quotas admit together. Each admission must be one of the looser quota alone.

    A step of the history is: which server, its cost in quarters of what it may allow at once, and the time since the
    last one in 60ths of the period.
    """
    slots = [QuotaSlot(Rule("api", quota), "", quota) for quota in quotas]
    looser, alone, admitted, now_us = looser_of(quotas), None, 0, T0_US
    for which, quarters, steps in history:
        slot = slots[which % len(slots)]
        cost, now_us = max(1, slot.quota.capacity * quarters // 4), now_us + slot.quota.period_us * steps // 60
        if ask(slot, cost, now_us).allowed:
            verdict, alone = SPECIFICATION[looser.algorithm](looser, alone, now_us, cost)
            assert verdict.allowed, f"{slot.quota} admits {cost} that {looser} alone would not"
            admitted += cost
    return admitted


def ask_specification(specified: Specified) -> Ask:
    return lambda slot, cost, now_us: specified.decide(slot, CHECK, cost, now_us)


@contextmanager
def ask_shared(url: str) -> Iterator[Ask]:
    stores: dict[Quota, Any] = {}

    def ask(slot: QuotaSlot, cost: int, now_us: int) -> Decision:
        if slot.quota not in stores:
            stores[slot.quota] = open_shared(url, [slot])
        return stores[slot.quota].decide(StoreRequest((0,), ("fan",), cost, now_us, CHECK)).decision

    try:
        yield ask
    finally:
        for store in stores.values():
            store.close()


@st.composite
def changed_quotas(draw: st.DrawFn) -> list[Quota]:
    """Quotas of one algorithm and period: the one that is being replaced, the one that replaces it, perhaps a third."""
    algorithm, period_s = draw(st.sampled_from(ALGORITHMS)), draw(st.sampled_from([7, 60]))
    limits = st.integers(1, 12) | st.sampled_from([20, 97, 100, 1000])
    bursts = st.just(0) if algorithm in WINDOWS else st.integers(0, 30) | st.sampled_from([0, 200])
    return [
        Quota(draw(limits), period_s * S, algorithm, draw(bursts))
        for _ in range(draw(st.integers(min_value=2, max_value=3)))
    ]


forward = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 30) | st.just(75)), max_size=60)


@settings(max_examples=400)
@given(quotas=changed_quotas(), history=forward)
def test_old_and_new_servers_admit_no_more_than_the_looser_alone(
    quotas: list[Quota], history: list[tuple[int, int, int]]
) -> None:
    admitted_beside_each_other(ask_specification(Specified()), quotas, history)


@settings(max_examples=150)
@given(quotas=changed_quotas(), history=forward)
def test_old_and_new_servers_on_a_shared_store_admit_no_more_than_the_looser_alone(
    every_shared_url: str, quotas: list[Quota], history: list[tuple[int, int, int]]
) -> None:
    empty_store(every_shared_url)
    with ask_shared(every_shared_url) as ask:
        admitted_beside_each_other(ask, quotas, history)


LATE_ASK = [(0, 4, 0), (1, 0, 70), *[(0, 0, 0)] * 120]  # the tighter server is asked once, late in the next window
TWO_MINUTES = [(0, 0, 0)] * 120 + ([(1, 0, 12)] + [(1, 0, 0)] * 4 + [(0, 0, 0)] * 120) * 10


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("place", ["specification", "store"])
def test_a_rolling_deployment_of_two_minutes(shared_url: str, algorithm: str, place: str) -> None:
    """100 per minute beside 5 per minute, each asked for more every 12 s: buckets admitted 955 instead of 300."""
    quotas = [Quota.parse(text, algorithm=algorithm) for text in ("100/minute", "5/minute")]
    with ask_shared(shared_url) as ask:
        if place == "specification":
            ask = ask_specification(Specified())
        assert 180 <= admitted_beside_each_other(ask, quotas, TWO_MINUTES) <= 300


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("place", ["specification", "store"])
def test_one_request_to_a_tighter_server_frees_nothing_of_a_looser_one(
    shared_url: str, algorithm: str, place: str
) -> None:
    """A sliding counter of 5 per minute wrote 5 where the servers of 100 per minute had counted 100."""
    quotas = [Quota.parse(text, algorithm=algorithm) for text in ("100/minute", "5/minute")]
    with ask_shared(shared_url) as ask:
        if place == "specification":
            ask = ask_specification(Specified())
        admitted_beside_each_other(ask, quotas, LATE_ASK)


def test_a_bucket_of_version_0_1_is_carried_over(redis_url: str) -> None:
    """It has 32 bytes, as a bucket has that only one quota counts in."""
    check_under(redis_url, "100/minute", algorithm="token_bucket")
    with redis.Redis.from_url(redis_url) as client:
        [key] = client.keys()
        stored = struct.pack("<4d", T0_US, 60 * 600_000, 600_000, 100)
        assert len(client.get(key) or b"") == len(stored)
        client.set(key, stored)
    assert check_under(redis_url, "100/minute", algorithm="token_bucket").remaining == 39
    assert not check_under(redis_url, "5/minute", algorithm="token_bucket").allowed
    assert check_under(redis_url, "5/minute", algorithm="token_bucket", at_us=T0_US + 12 * S).allowed
    assert check_under(redis_url, "100/minute", algorithm="token_bucket", at_us=T0_US + 12 * S).remaining == 57


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_tighter_servers_go_on_when_the_old_ones_are_gone(shared_url: str, algorithm: str) -> None:
    """The old servers have used all of 100. After two periods the new ones admit their 5 per minute, burst included."""
    loose, tight = (
        QuotaSlot(Rule("api", quota), "", quota)
        for quota in (Quota.parse(text, algorithm=algorithm) for text in ("100/minute", "5/minute"))
    )
    with ask_shared(shared_url) as ask:
        assert sum(ask(loose, 1, T0_US).allowed for _ in range(120)) == 100
        later_us = T0_US + 2 * MINUTE_US
        assert sum(ask(tight, 1, later_us).allowed for _ in range(20)) == 5
        steps = [later_us + n * S for n in range(1, 601)]
        assert 38 <= sum(ask(tight, 1, at_us).allowed for at_us in steps) <= 55


@pytest.mark.parametrize("algorithm", ["token_bucket", "sliding_counter"])
def test_canary_counts_that_are_cut_to_the_new_limit_are_caught(algorithm: str) -> None:
    """What version 0.1 did: a tighter server forgot what only a looser one could have admitted."""

    def cut(quota: Quota, written_under: Quota, state: State) -> State:
        most = quota.capacity * quota.drip[1] if quota.is_bucket else quota.limit
        at_us, *counts = carry_over(quota, written_under, state)
        return (at_us, *(min(count, most) for count in counts[: 1 if quota.is_bucket else 2]))

    quotas = [Quota.parse(text, algorithm=algorithm) for text in ("100/minute", "5/minute")]
    history = TWO_MINUTES if algorithm == "token_bucket" else LATE_ASK
    with pytest.raises(AssertionError, match="alone would not"):
        admitted_beside_each_other(ask_specification(Specified(cut)), quotas, history)
