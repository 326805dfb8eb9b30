"""A time limit that many calls share (`shared.time_limit`)."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from frontrow.shared import time_limit
from frontrow.shared.time_limit import TimeLimit

NEVER_S = 3600.0


async def test_a_block_that_takes_too_long_is_ended_and_the_others_go_on() -> None:
    limit = TimeLimit(0.02)
    asked, ended = asyncio.Event(), []

    async def wait(name: str, until: asyncio.Event) -> None:
        try:
            with limit.start():
                await until.wait()
            ended.append(f"{name} in time")
        except TimeoutError:
            ended.append(f"{name} too late")

    quick = [asyncio.create_task(wait(f"quick {number}", asked)) for number in range(50)]
    slow = [asyncio.create_task(wait("slow", asyncio.Event())) for _ in range(50)]
    await asyncio.sleep(0)
    asked.set()
    await asyncio.gather(*quick, *slow)
    assert sorted(ended) == sorted([f"quick {number} in time" for number in range(50)] + ["slow too late"] * 50)
    assert all(task.cancelling() == 0 for task in slow)


class StillLoop:
    """A loop whose time moves by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.timers: list[tuple[float, Any]] = []

    def time(self) -> float:
        return self.now_s

    def call_at(self, when_s: float, callback: Any, *arguments: Any) -> Any:
        self.timers.append((when_s, lambda: callback(*arguments)))
        return self.timers[-1]

    def move_to(self, now_s: float) -> None:
        self.now_s = now_s
        due = [timer for timer in self.timers if timer[0] <= now_s]
        self.timers = [timer for timer in self.timers if timer[0] > now_s]
        for _, fire in due:
            fire()


async def test_one_timer_ends_each_block_at_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, limit = StillLoop(), TimeLimit(10.0)
    tasks = [asyncio.create_task(asyncio.Event().wait()) for _ in range(3)]
    for number, task in enumerate(tasks):
        own = SimpleNamespace(get_running_loop=lambda: loop, current_task=lambda _, task=task: task)
        monkeypatch.setattr(time_limit, "asyncio", own)
        loop.now_s = float(number)
        block = limit.start()
        if number == 0:
            monkeypatch.undo()
            block.__exit__(None, None, None)  # over, and its timer stays
    monkeypatch.undo()
    assert len(loop.timers) == 1
    for now_s, ended in ((10.0, 0), (10.9, 0), (11.0, 1), (11.9, 1), (12.0, 2)):
        loop.move_to(now_s)
        assert [bool(task.cancelling()) for task in tasks[1:]] == [ended >= 1, ended >= 2]
        assert len(loop.timers) == (1 if ended < 2 else 0)
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_task_that_somebody_else_cancels_is_cancelled() -> None:
    limit = TimeLimit(NEVER_S)

    async def wait() -> None:
        with limit.start():
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_that_is_cancelled_while_its_time_ends_stays_cancelled() -> None:
    limit = TimeLimit(0.0)

    async def wait() -> None:
        with limit.start():
            asyncio.current_task().cancel()  # type: ignore[union-attr]
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_of_the_block_passes_through() -> None:
    with pytest.raises(KeyError), TimeLimit(NEVER_S).start():
        raise KeyError


def test_a_limit_works_in_one_loop_after_the_other() -> None:
    limit = TimeLimit(0.02)

    async def wait() -> None:
        with pytest.raises(TimeoutError), limit.start():
            await asyncio.Event().wait()

    async def leave() -> None:
        with limit.start():
            pass

    asyncio.run(leave())  # its timer never fires
    asyncio.run(wait())
