"""O7: the rules for an adaptive limit. Properties for any sample, and a dependency simulated in virtual time."""

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.adaptive import figures
from frontrow.core.errors import ConfigError
from frontrow.limits.adaptive import AimdLimit, DelayPressure, GradientLimit
from frontrow.limits.adaptive.class_shares import ClassShares
from frontrow.limits.adaptive.controllers import Controller, LoadSample
from frontrow.limits.adaptive.load_meter import LEAST_ENDED, Ended, LoadMeter
from tests.limits.adaptive_simulation import CRITICAL, Story, simulate

CONTROLLERS: list[Controller] = [GradientLimit(), AimdLimit(), GradientLimit(initial=1, least=1, most=3)]
COUNTS = st.tuples(*[st.integers(0, 10_000)] * 3)
LATENCIES = st.tuples(*[st.floats(0, 1e5, allow_nan=False)] * 3)
SAMPLES = st.builds(
    LoadSample,
    COUNTS,
    LATENCIES,
    st.floats(0, 1e6),
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.floats(0, 100),
)


def steady(in_flight: float, latency_s: float, *, drops: int = 0, shed: int = 0) -> LoadSample:
    return LoadSample((0, 100, 0), (0.0, latency_s, 0.0), in_flight, shed, drops, 0.05)


@pytest.mark.parametrize("controller", CONTROLLERS, ids=repr)
@given(st.lists(SAMPLES, max_size=60))
@settings(deadline=None)
def test_o7_no_sample_moves_the_limit_out_of_its_bounds(controller: Controller, samples: list[LoadSample]) -> None:
    state = controller.start(3)
    least, most = controller.least, controller.most  # type: ignore[attr-defined]
    for sample in samples:
        state = controller.next(state, sample)
        assert least <= state.limit <= most
        assert all(math.isfinite(one) and one >= 0 for one in state.baselines_s)


@pytest.mark.parametrize("controller", CONTROLLERS[:2], ids=repr)
@given(st.lists(SAMPLES, max_size=30), st.integers(1, 1000))
@settings(deadline=None)
def test_o7_a_window_of_drops_never_raises_the_limit(
    controller: Controller, samples: list[LoadSample], drops: int
) -> None:
    state = controller.start(3)
    for sample in samples:
        state = controller.next(state, sample)
    assert controller.next(state, LoadSample((0, 0, 0), (0.0, 0.0, 0.0), 50, 0, drops)).limit <= state.limit


def test_o7_a_limit_that_nobody_needs_does_not_grow() -> None:
    for controller in CONTROLLERS[:2]:
        state = controller.start(3)
        for _ in range(100):
            state = controller.next(state, steady(state.limit / 2 - 0.1, 0.05))
        assert state.limit == 20


def test_o7_a_burst_that_found_no_room_lets_the_limit_grow_although_the_average_is_low() -> None:
    state = GradientLimit().start(3)
    assert GradientLimit().next(state, steady(3, 0.05, shed=5)).limit > state.limit


def test_o7_little_s_law_tells_a_slow_dependency_from_a_queue() -> None:
    """Half as many at once and the same latency: it is slow. Half the latency: it was a queue."""
    rule, state = GradientLimit(), GradientLimit().start(3)
    for _ in range(5):
        state = rule.next(state, steady(5, 0.1))
    probing = rule.next(state, steady(20, 1.0))
    assert (probing.limit, probing.kept) == (10, 20)
    slow = rule.next(probing, steady(10, 1.0))
    assert (slow.limit, slow.baselines_s[1]) == (20, 1.0)
    queue = rule.next(probing, steady(10, 0.5))
    assert queue.limit < 10, "half the limit still has a queue, so it is halved again"
    assert queue.baselines_s[1] == 0.5
    knee = rule.next(probing, steady(10, 0.65))
    assert 10 < knee.limit < 20


def test_o7_aimd_adds_one_and_takes_a_tenth() -> None:
    rule = AimdLimit(timeout_s=1)
    state = rule.start(3)
    assert rule.next(state, steady(15, 0.1)).limit == 21
    assert rule.next(state, steady(15, 0.1, drops=1)).limit == 18
    assert rule.next(state, steady(15, 1.1)).limit == 18


@given(st.lists(st.floats(0, 1e6), max_size=200))
def test_o7_pressure_by_delay_stays_in_its_bounds_and_goes_when_the_delay_goes(excesses: list[float]) -> None:
    rule, pressure = DelayPressure(highest=4.0), 0.0
    for excess in excesses:
        pressure = rule.next(pressure, excess)
        assert 0 <= pressure <= 4
    for _ in range(41):
        pressure = rule.next(pressure, 1.0)
    assert pressure == 0


@given(st.integers(0, 2), st.floats(0, 3), st.integers(1, 400))
def test_o7_pressure_sheds_its_share_of_each_class(rank: int, pressure: float, asked: int) -> None:
    shares = ClassShares((0.5, 0.8, 1.0), 1000)
    shed = sum(not shares.admits(rank, 0, pressure) for _ in range(asked))
    assert abs(shed - asked * min(1.0, max(0.0, pressure - rank))) <= 1


def test_o7_each_class_is_admitted_up_to_its_share() -> None:
    shares = ClassShares((0.5, 0.8, 1.0), 10)
    admitted = [[shares.admits(rank, in_flight, 0.0) for in_flight in range(11)].count(True) for rank in range(3)]
    assert admitted == [5, 8, 10]


@pytest.mark.parametrize(
    "make",
    [
        lambda: GradientLimit(least=0),
        lambda: GradientLimit(initial=5000),
        lambda: GradientLimit(tolerance=1.0),
        lambda: GradientLimit(tolerance=float("nan")),
        lambda: AimdLimit(backoff=1.5),
        lambda: AimdLimit(most=True),
    ],
)
def test_o7_a_number_out_of_range_is_named(make) -> None:
    with pytest.raises(ConfigError, match="must be a number from"):
        make()


# -- the meter -------------------------------------------------------------------------------------------------------

REQUESTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 900_000), st.integers(1, 500_000), st.sampled_from(Ended)), max_size=60
)


@given(REQUESTS)
def test_o7_the_meter_counts_the_time_in_flight_as_adding_up_each_request_does(requests) -> None:
    meter, in_flight, spent_us, ended = LoadMeter(3, 0), {}, [0, 0, 0], [0, 0, 0]
    events = [(began, 0, number) for number, (_, began, _, _) in enumerate(requests)]
    events += [(began + took, 1, number) for number, (_, began, took, _) in enumerate(requests)]
    for now_us, is_end, number in sorted(events):
        rank, began_us, took_us, how = requests[number]
        if not is_end:
            in_flight[number] = rank
            meter.entered(rank, now_us)
            continue
        del in_flight[number]
        spent_us[rank] += 0 if how is Ended.IGNORED else took_us
        ended[rank] += how is Ended.WELL
        sample = meter.left(rank, began_us, now_us, how)
        assert meter.total == len(in_flight)
        if sample is not None:
            for other in in_flight:
                spent_us[requests[other][0]] += now_us - requests[other][1]
            assert sample.counts == tuple(ended)
            mean_s = [spent / max(1, count) / 1e6 for spent, count in zip(spent_us, ended, strict=True)]
            assert sample.latencies_s == pytest.approx(tuple(mean_s))
            return


def test_o7_a_dependency_that_hangs_is_seen_before_it_answers() -> None:
    """Twenty quick answers, and twenty requests that hang: their time counts."""
    meter = LoadMeter(1, 0)
    for _ in range(20):
        meter.entered(0, 0)
    samples = []
    for number in range(LEAST_ENDED * 20):
        now_us = 50_000 * (number + 1)
        meter.entered(0, now_us)
        samples.append(meter.left(0, now_us - 10_000, now_us, Ended.WELL))
    [first, *_] = [sample for sample in samples if sample is not None]
    assert first.latencies_s[0] > 0.5


def test_o7_after_a_large_change_the_meter_waits_until_it_has_taken_effect() -> None:
    meter, seen = LoadMeter(1, 0), LoadSample((100,), (0.5,), 40.0)
    for _ in range(40):
        meter.entered(0, 0)
    meter.changed(40, 20, seen, 0)
    for now_us in range(0, 19_000_000, 1_000_000):  # 21 are left: more than the new limit
        assert meter.left(0, 0, min(now_us, 9_000_000), Ended.WELL) is None
    assert meter.total == 21
    for now_us in (9_000_000, 9_100_000, 9_400_000):
        assert meter.left(0, 0, now_us, Ended.WELL) is None
    assert meter.left(0, 0, 9_510_000, Ended.WELL) is None, "the window starts now"
    assert meter.left(0, 0, 29_510_000, Ended.WELL) is not None


# -- a simulated dependency ------------------------------------------------------------------------------------------

SLOW = (10, 40)


def ten_times_slower(spread: str, seed: int) -> Story:
    """16 workers at 40 ms serve 400 per second, and 40 when they take 400 ms. 200 per second are asked for."""
    return simulate(
        GradientLimit(),
        workers=16,
        service_s=lambda now_s: 0.4 if SLOW[0] <= now_s < SLOW[1] else 0.04,
        per_second=(80, 100, 20),
        seconds=60,
        seed=seed,
        spread=spread,
    )


@pytest.mark.parametrize("spread", ["uniform", "exponential"])
def test_o7_with_a_dependency_ten_times_slower_the_critical_class_keeps_its_goodput(spread: str) -> None:
    stories = [ten_times_slower(spread, seed) for seed in range(5)]
    kept = [story.per_second(12, 40, CRITICAL) / 20 for story in stories]
    assert statistics.median(kept) >= 0.9
    assert min(kept) >= 0.8
    whole = [story.per_second(12, 40) / 40 for story in stories]
    assert statistics.median(whole) >= 0.9, "of what the slow dependency can serve"
    back = [story.per_second(42, 50) / 200 for story in stories]
    assert min(back) >= 0.8, "two seconds after it is fast again, everybody is served"


def test_o7_with_a_dependency_ten_times_slower_the_critical_class_waits_at_most_twice_as_long_as_alone() -> None:
    alone_s = 0.4 * 1.5  # the slowest answer of a worker
    waited = [ten_times_slower("uniform", seed).p99_s(12, 40, CRITICAL) / alone_s for seed in range(5)]
    assert statistics.median(waited) <= 2.0


@pytest.mark.parametrize(("workers", "service_s"), [(4, 0.02), (16, 0.04), (64, 0.1), (200, 0.05)])
@pytest.mark.parametrize("spread", ["uniform", "exponential"])
def test_o7_under_twice_the_load_the_limit_settles_near_the_number_of_workers(
    workers: int, service_s: float, spread: str
) -> None:
    """It starts at 20, with a queue or far below what is possible, and is told nothing."""
    capacity, seconds = workers / service_s, 16
    stories = [
        simulate(
            GradientLimit(),
            workers=workers,
            service_s=lambda _: service_s,
            per_second=(0.8 * capacity, capacity, 0.2 * capacity),
            seconds=seconds,
            seed=seed,
            spread=spread,
        )
        for seed in range(3)
    ]
    assert statistics.median(story.per_second(8, seconds) / capacity for story in stories) >= 0.85
    limits = [statistics.median(story.limits_of(8, seconds)) / workers for story in stories]
    assert 0.9 <= statistics.median(limits) <= 3


def test_canary_a_limit_that_is_fixed_at_its_start_would_be_caught() -> None:
    class Fixed(GradientLimit):
        def next(self, state, sample):
            return state

    story = simulate(Fixed(), workers=200, service_s=lambda _: 0.05, per_second=(3200, 4000, 800), seconds=4, seed=7)
    assert story.per_second(2, 4) < 0.85 * 4000


def test_the_benchmark_says_when_a_machine_is_too_busy_to_measure() -> None:
    """It ended in a ZeroDivisionError."""
    nobody = [(second / 10, "critical", 2.0, False) for second in range(300)]
    with pytest.raises(SystemExit, match="this machine is too busy to measure"):
        figures(nobody, alone_s=0.1)
