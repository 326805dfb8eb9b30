"""`eventually` returns what it waited for, gives up in time, and says what it saw."""

import asyncio
import itertools
import threading
import time

import httpx
import pytest

from tests.support.eventually import POLL_S, eventually, eventually_sync
from tests.support.fast_time import FastTimeLoop


async def test_it_returns_the_first_true_value() -> None:
    numbers = iter([0, 0, 3, 4])
    assert await eventually(lambda: next(numbers)) == 3


async def test_it_asks_coroutine_functions_too() -> None:
    happened = asyncio.Event()
    asyncio.get_running_loop().call_later(0.01, happened.set)

    async def found() -> bool:
        return happened.is_set()

    assert await eventually(found)


async def test_it_looks_at_once() -> None:
    before_s = time.monotonic()
    assert await eventually(lambda: "here", within_s=0) == "here"
    assert time.monotonic() - before_s < 1


async def test_until_decides_which_value_is_wanted() -> None:
    numbers = itertools.count()
    assert await eventually(lambda: next(numbers), until=lambda number: number > 4) == 5


async def test_ignored_errors_mean_not_yet_and_others_end_the_wait() -> None:
    answers = iter([httpx.ConnectError("no"), httpx.ConnectError("no"), 7])

    def ask() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert await eventually(ask, ignoring=httpx.TransportError) == 7
    with pytest.raises(RuntimeError, match="coroutine raised StopIteration"):
        await eventually(ask, ignoring=httpx.TransportError)


async def test_a_failure_says_what_was_awaited_and_what_was_last_seen() -> None:
    seats, wanted = ["A-1"], 2
    with pytest.raises(AssertionError) as failure:
        await eventually(lambda: list(seats), 0.01, until=lambda found: len(found) == wanted)
    said = str(failure.value)
    assert said.startswith("not within 0.01 s: ")
    assert "len(found) == wanted" in said
    assert said.endswith("wanted = 2\nlast: ['A-1']")


async def test_a_failure_shows_the_last_answer_or_the_last_error() -> None:
    answer = httpx.Response(503, text="please wait")
    with pytest.raises(AssertionError, match="last: 503 please wait"):
        await eventually(lambda: answer, 0, until=lambda seen: seen.status_code == 200)
    with pytest.raises(AssertionError, match="last: ZeroDivisionError"):
        await eventually(lambda: 1 // 0, 0, ignoring=ZeroDivisionError)


def test_the_bound_is_on_the_clock_of_the_loop() -> None:
    with asyncio.Runner(loop_factory=FastTimeLoop) as runner, pytest.raises(AssertionError, match="not within 3600 s"):
        runner.run(eventually(lambda: False, 3600, every_s=60))


def test_the_blocking_one_waits_for_a_thread() -> None:
    seen: list[int] = []
    thread = threading.Timer(0.02, seen.append, [1])
    thread.start()
    assert eventually_sync(lambda: list(seen)) == [1]
    thread.join()


def test_the_blocking_one_gives_up_too() -> None:
    before_s = time.monotonic()
    with pytest.raises(AssertionError, match=r"(?s)not within 0\.05 s: .*last: False"):
        eventually_sync(lambda: False, 0.05)
    assert time.monotonic() - before_s >= 0.05


def test_the_blocking_one_ignores_the_named_errors() -> None:
    tries = itertools.count()
    assert eventually_sync(lambda: 1 // next(tries), ignoring=ZeroDivisionError) == 1


async def test_pauses_are_short_at_first_and_grow_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(pause_s: float) -> None:
        slept.append(pause_s)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await eventually(lambda: len(slept) == 8)
    assert slept[0] < 0.002
    assert slept == sorted(slept)
    assert slept[-1] == POLL_S
