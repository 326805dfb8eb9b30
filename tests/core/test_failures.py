"""O3: every failure of background work is counted, and each cause is logged with its traceback once in a while."""

import asyncio
import gc
import inspect
import logging

import pytest

from frontrow.core.background_tasks import EVENT_LOOP, hear_event_loop, start_loop, start_task
from frontrow.core.errors import Unavailable
from frontrow.core.failures import FAILING_S, MAX_CAUSES, REPEAT_S, FailureBook, failures_here, note_failure
from tests.support.eventually import eventually


class Time:
    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def broken(text: str = "broken") -> Exception:
    try:
        raise ValueError(text)
    except ValueError as error:
        return error


def test_o3_a_cause_is_logged_once_with_its_traceback_and_then_counted(caplog: pytest.LogCaptureFixture) -> None:
    time = Time()
    book = FailureBook(monotonic_s=time)
    for number in range(50):
        book.note("relay", broken(f"fact {number}"), fact=number)
    assert book.counts == {"relay": 50}
    (line,) = caplog.records
    assert line.levelno == logging.ERROR
    assert line.exc_info is not None
    assert (line.action, line.job, line.times, line.fact) == ("job_failed", "relay", 1, 0)  # type: ignore[attr-defined]
    book.note("relay", Unavailable("the ledger is away"))
    assert caplog.records[-1].levelno == logging.WARNING, "an outage is another cause, and has no traceback"
    assert caplog.records[-1].exc_info is None
    time.now_s += REPEAT_S
    book.note("relay", broken())
    assert caplog.records[-1].times == 50, "all since the last line"  # type: ignore[attr-defined]
    assert len(caplog.records) == 3


def test_a_job_fails_until_it_works_or_a_minute_has_passed() -> None:
    time = Time()
    book = FailureBook(monotonic_s=time)
    book.expect("sweeper")
    book.note("relay", broken())
    assert book.failing() == [], "once is not again and again"
    book.note("relay", broken())
    assert book.failing() == ["relay"]
    time.now_s += FAILING_S - 0.001
    assert book.failing() == ["relay"]
    time.now_s += 0.001
    assert book.failing() == []
    book.note("relay", broken())
    book.note_success("relay")
    assert book.failing() == []
    assert book.failed() == {"relay": 3}
    assert book.counts == {"sweeper": 0, "relay": 3}


def test_causes_are_remembered_up_to_a_bound() -> None:
    book = FailureBook()
    for number in range(MAX_CAUSES + 10):
        book.note(f"job {number}", broken())
    assert len(book._causes) == MAX_CAUSES


async def test_o3_a_task_that_nobody_waits_for_is_heard(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise RuntimeError("in the background")

    await start_task(fail(), "letters", letter=7)
    assert failures_here().counts["letters"] == 1
    assert caplog.records[-1].letter == 7  # type: ignore[attr-defined]
    cancelled = start_task(asyncio.sleep(60), "letters")
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert failures_here().counts["letters"] == 1, "whoever cancels knows it"


async def test_work_that_is_cancelled_before_it_began_is_closed() -> None:
    async def work() -> None: ...

    given = work()
    task = start_task(given, "never begun")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0)
    assert inspect.getcoroutinestate(given) == inspect.CORO_CLOSED


async def test_o3_a_loop_that_fails_is_heard_and_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontrow.core.background_tasks.FIRST_PAUSE_S", 0.001)
    begun = 0

    async def run() -> None:
        nonlocal begun
        begun += 1
        if begun < 3:
            note_failure(Unavailable("away"), event_id="evt_1")
            raise RuntimeError("in a loop")

    await asyncio.wait_for(start_loop(run, "map"), 10)
    assert begun == 3
    assert failures_here().counts["map"] == 4, "two of its own and two that it noted under its name"


async def test_o3_what_is_reported_to_the_event_loop_is_heard(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise RuntimeError("nobody awaits this")

    def call_back() -> None:
        raise LookupError("of a callback")

    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    with hear_event_loop():
        lost = asyncio.create_task(fail(), name="lost task")
        await asyncio.wait([lost])
        del lost
        gc.collect()
        loop.call_soon(call_back)
        await eventually(lambda: failures_here().counts[EVENT_LOOP] >= 2)
    assert loop.get_exception_handler() is before
    logged = {record.exc_info[0] for record in caplog.records if record.exc_info}
    assert {RuntimeError, LookupError} <= logged
    assert any(getattr(record, "task", "") == "lost task" for record in caplog.records)


def test_each_event_loop_has_its_own_failures() -> None:
    async def count() -> int:
        failures_here().note("relay", broken())
        return failures_here().counts["relay"]

    assert [asyncio.run(count()), asyncio.run(count())] == [1, 1]
