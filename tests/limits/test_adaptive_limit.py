"""O7: an adaptive limit for functions: classes, partitions, waiting, cancellation, threads, loops, forks, drops."""

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client import CollectorRegistry

from frontrow.core.errors import ConfigError
from frontrow.limits.adaptive import AdaptiveLimit, AdaptiveMetrics, AimdLimit, Ended, Shed
from frontrow.testing.clock import ManualClock
from tests.limits.cancellation import cancel_at_every_await
from tests.support.eventually import eventually


def fixed(at_once: int, **options) -> AdaptiveLimit:
    return AdaptiveLimit("test", controller=AimdLimit(initial=at_once, least=1, most=at_once), **options)


def fill(limit: AdaptiveLimit, priority: str = "critical") -> list:
    taken = []
    while (slot := limit.try_acquire(priority)) is not None:
        taken.append(slot)
    return taken


def test_o7_lower_classes_are_shed_first() -> None:
    limit = fixed(10)
    assert [len(fill(limit, name)) for name in ("background", "normal", "critical")] == [5, 3, 2]
    assert limit.in_flight == 10
    assert limit.shed_counts == [1, 1, 1]


def test_o7_a_partition_gets_its_guaranteed_share_when_others_have_filled_the_limit() -> None:
    limit = fixed(10, partitions={"web": 0.3, "batch": 0.2})
    fill(limit)
    own = [limit.try_acquire("critical", partition="web") for _ in range(5)]
    assert [slot is not None for slot in own] == [True] * 3 + [False] * 2
    own[0].release()
    assert limit.try_acquire("critical", partition="web") is not None


def test_o7_a_block_gives_its_slot_back_however_it_ends() -> None:
    limit = fixed(1, max_wait_s=0)
    with limit.acquire("critical"), pytest.raises(Shed) as shed, limit.acquire("critical"):
        pass
    assert shed.value.retry_after_s == 1.0
    for error in (ValueError, TimeoutError, KeyboardInterrupt):
        with pytest.raises(error), limit.acquire("critical"):
            raise error
    assert limit.in_flight == 0


def test_o7_a_slot_that_is_given_back_twice_is_given_back_once() -> None:
    limit = fixed(2)
    first, second = (limit.try_acquire("critical") for _ in range(2))
    assert first is not None
    assert second is not None
    for _ in range(2):
        first.release()
    assert limit.in_flight == 1
    assert [limit.try_acquire("critical") is not None for _ in range(2)] == [True, False]


async def test_o7_the_decorator_takes_a_slot_for_each_call() -> None:
    limit = fixed(1, max_wait_s=0)

    @limit.limited("critical")
    async def slow() -> int:
        return limit.in_flight

    @limit.limited("critical")
    def quick() -> int:
        return limit.in_flight

    assert (await slow(), quick(), limit.in_flight) == (1, 1, 0)
    with limit.acquire("critical"), pytest.raises(Shed):
        await slow()
    with pytest.raises(ConfigError, match="generator"):

        @limit.limited()
        def generator():
            yield 1


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (None, Ended.WELL),
        (TimeoutError(), Ended.DROPPED),
        (ConnectionRefusedError(), Ended.DROPPED),
        (Shed("no room"), Ended.DROPPED),
        (asyncio.CancelledError(), Ended.UNFINISHED),
        (ValueError(), Ended.IGNORED),
    ],
)
def test_o7_an_exception_counts_by_rule(error: BaseException | None, how: Ended) -> None:
    assert fixed(1).judge(error) is how


def fail(clock: ManualClock, error: type[Exception]) -> None:
    clock.advance(0.2)
    raise error


def test_o7_drops_shrink_the_limit_and_a_mistake_of_the_caller_does_not() -> None:
    clock = ManualClock()
    limit = AdaptiveLimit("test", clock=clock)
    for error, shrinks in ((KeyError, False), (TimeoutError, True)):
        before = limit.limit
        for _ in range(30):
            with pytest.raises(error), limit.acquire():
                fail(clock, error)
        assert (limit.limit < before) is shrinks
    assert limit.drop_counts == [0, 30, 0]


# -- waiting ---------------------------------------------------------------------------------------------------------


async def waiting(limit: AdaptiveLimit, *names: str) -> tuple[list[str], list["asyncio.Task[None]"]]:
    """Callers of these classes wait in this order. Their numbers appear as they are served."""
    served: list[str] = []

    async def call(number: int, name: str) -> None:
        async with limit.acquire(name):
            served.append(f"{name} {number}")

    tasks = []
    for number, name in enumerate(names):
        tasks.append(asyncio.create_task(call(number, name)))
        await asyncio.sleep(0)
    return served, tasks


async def test_o7_a_free_slot_goes_to_the_highest_class_and_in_it_to_the_newest() -> None:
    limit = fixed(10, max_wait_s=20)
    held = fill(limit)
    served, tasks = await waiting(limit, "normal", "critical", "background", "critical")
    assert limit.waiting == 4
    for slot in held:
        slot.release()
    await asyncio.gather(*tasks)
    assert served == ["critical 3", "critical 1", "normal 0", "background 2"]
    assert limit.in_flight == limit.waiting == 0


async def test_o7_waiting_ends_at_its_deadline_and_with_a_full_line() -> None:
    limit = fixed(1, max_wait_s=0.01)
    with limit.acquire("critical"), pytest.raises(Shed):
        async with limit.acquire("critical"):
            pass
    limit = fixed(1, max_wait_s=20, max_waiting=2)
    [slot] = fill(limit)
    served, tasks = await waiting(limit, "background", "critical", "critical", "background")
    await eventually(lambda: tasks[0].done() and tasks[3].done())
    assert isinstance(tasks[0].exception(), Shed), "the lowest class gives way"
    assert isinstance(tasks[3].exception(), Shed), "and finds no room"
    slot.release()
    await asyncio.gather(*tasks[1:3])
    assert served == ["critical 2", "critical 1"]


async def test_o7_cancellation_at_every_await_leaks_no_slot() -> None:
    limit = fixed(1, max_wait_s=0.001)

    async def attempt() -> None:
        slot = limit.try_acquire("critical")
        assert slot is not None
        asyncio.get_running_loop().call_soon(slot.release)
        async with limit.acquire("critical"):
            await asyncio.sleep(0)

    async for _ in cancel_at_every_await(attempt):
        await eventually(lambda: limit.in_flight == 0)
        assert limit.waiting == 0


async def test_o7_a_slot_given_to_a_caller_that_is_cancelled_in_that_moment_goes_on() -> None:
    limit = fixed(1, max_wait_s=20)
    [slot] = fill(limit)
    served, tasks = await waiting(limit, "critical", "critical")
    slot.release()  # to the second, the newest
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert served == ["critical 0"]
    assert limit.in_flight == limit.waiting == 0


def test_o7_threads_and_several_loops_share_one_limit_and_never_exceed_it() -> None:
    limit, most, seen = fixed(5, max_wait_s=30, max_waiting=1000), threading.Lock(), [0, 0]

    def inside(by: int) -> None:
        with most:
            seen[0] += by
            seen[1] = max(seen[1], seen[0])

    def in_thread() -> None:
        for _ in range(20):
            with limit.acquire("critical"):
                inside(1)
                inside(-1)

    async def in_task() -> None:
        for _ in range(20):
            async with limit.acquire("critical"):
                inside(1)
                await asyncio.sleep(0)
                inside(-1)

    async def in_loop() -> None:
        await asyncio.gather(*(in_task() for _ in range(10)))

    with ThreadPoolExecutor(30) as pool:
        runs = [pool.submit(in_thread) for _ in range(25)] + [pool.submit(asyncio.run, in_loop()) for _ in range(3)]
        for run in runs:
            run.result(timeout=60)
    assert 1 < seen[1] <= 5
    assert limit.in_flight == limit.waiting == 0
    assert sum(limit.admitted) == 25 * 20 + 3 * 10 * 20


def test_o7_a_loop_that_ended_while_its_caller_waited_keeps_no_slot() -> None:
    limit = fixed(1, max_wait_s=20)
    [slot] = fill(limit)
    loop = asyncio.new_event_loop()
    waiter = loop.create_task(limit.acquire("critical").__aenter__())
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert limit.waiting == 1
    loop.close()
    slot.release()
    assert limit.in_flight == 0
    assert limit.try_acquire("critical") is not None
    waiter._log_destroy_pending = False  # type: ignore[attr-defined]  # that is the point


# -- what people see -------------------------------------------------------------------------------------------------


def test_o7_a_log_line_says_when_shedding_begins_and_when_it_ends(caplog) -> None:
    clock = ManualClock()
    limit = fixed(2, clock=clock)
    with caplog.at_level(logging.INFO, "frontrow.limits"):
        held = fill(limit)
        limit.try_acquire()
        held.pop().release()
        clock.advance(5.1)
        held.pop().release()
    actions = [record.action for record in caplog.records]
    assert actions == ["limits_shedding", "limits_shedding_over"]
    assert caplog.records[0].getMessage() == "test sheds requests: at most 2 are served at once"


def test_o7_metrics_show_the_limit_what_is_in_flight_what_was_shed_and_the_baseline() -> None:
    clock, registry = ManualClock(), CollectorRegistry()
    limit = fixed(4, clock=clock)
    AdaptiveMetrics(limit).register(registry)
    fill(limit, "background")
    about = {"limiter": "test"}
    assert registry.get_sample_value("frontrow_adaptive_limit", about) == 4
    assert registry.get_sample_value("frontrow_adaptive_in_flight", about) == 2
    background = {**about, "class": "background"}
    value = registry.get_sample_value
    assert value("frontrow_adaptive_requests_total", {**background, "outcome": "shed"}) == 1
    assert value("frontrow_adaptive_requests_total", {**background, "outcome": "admitted"}) == 2
    learnt = AdaptiveLimit("learnt", clock=clock)
    AdaptiveMetrics(learnt).register(registry_of_learnt := CollectorRegistry())
    for _ in range(30):
        with learnt.acquire("critical"):
            clock.advance(0.25)
    of_critical = {"limiter": "learnt", "class": "critical"}
    baseline_s = registry_of_learnt.get_sample_value("frontrow_adaptive_baseline_seconds", of_critical)
    assert baseline_s == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"classes": {"all": 0.5}}, "rise to 1"),
        ({"classes": {"a": 1.0, "b": 0.5}}, "rise to 1"),
        ({"partitions": {"a": 0.6, "b": 0.6}}, "at most 1"),
        ({"max_wait_s": float("nan")}, "max_wait_s"),
        ({"max_waiting": -1}, "max_waiting"),
    ],
)
def test_o7_bad_options_are_told_in_one_sentence(options, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        AdaptiveLimit(**options)


def test_o7_an_unknown_class_or_partition_is_told() -> None:
    with pytest.raises(ConfigError, match="one of background, normal, critical"):
        fixed(1).acquire("urgent")
    with pytest.raises(ConfigError, match="'web' is not known"):
        fixed(1).acquire(partition="web")
