"""CPU-heavy work beside the event loop: in order of urgency, bounded, and killed when it is late."""

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.seats.formats.plan_reader import BadPlan
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.shared.heavy_work import HeavyWork, TooLarge, Urgency
from tests.support.eventually import eventually
from tests.support.heavy_functions import refuse, take_memory, work_for_ever


async def test_work_that_is_late_or_unwanted_is_killed_and_the_next_is_done(tmp_path):
    work, told = HeavyWork(1), tmp_path / "pid"
    try:
        assert await work.run(Urgency.IMPORT, 60, os.getpid) != os.getpid()
        with pytest.raises(BadPlan) as refused:
            await work.run(Urgency.IMPORT, 60, refuse)
        assert refused.value.param == "row"
        with pytest.raises(Unavailable, match="longer than 0.3 s"):
            await work.run(Urgency.IMPORT, 0.3, work_for_ever, str(told))
        await until_gone(int(told.read_text()))
        told.unlink()
        left = asyncio.create_task(work.run(Urgency.IMPORT, 60, work_for_ever, str(told)))
        await eventually(lambda: told.exists() and told.read_text())
        left.cancel()
        await until_gone(int(told.read_text()))
    finally:
        await work.aclose()


async def test_work_that_needs_too_much_memory_is_refused_and_the_next_is_done():
    work = HeavyWork(1, memory_mb=400)
    try:
        assert await work.run(Urgency.IMPORT, 60, take_memory, 100) == 100 * 1_048_576
        first = await work.run(Urgency.IMPORT, 60, os.getpid)
        with pytest.raises(TooLarge, match="more than 400 MB"):
            await work.run(Urgency.IMPORT, 60, take_memory, 500)
        assert await work.run(Urgency.IMPORT, 60, take_memory, 100) == 100 * 1_048_576
        assert await work.run(Urgency.IMPORT, 60, os.getpid) != first, "a process that ran out of memory is replaced"
        await until_gone(first)
    finally:
        await work.aclose()


async def until_gone(pid: int) -> None:
    await eventually(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_the_most_urgent_goes_first_and_too_many_are_refused():
    work, done, go_on = HeavyWork(max_waiting=3), [], threading.Event()

    async def ask(urgency: Urgency, number: int) -> None:
        await work.run(urgency, 60, go_on.wait, 60)
        done.append(number)

    asked = [
        asyncio.create_task(ask(urgency, number))
        for number, urgency in enumerate((Urgency.MAIL, Urgency.MAIL, Urgency.IMPORT, Urgency.SOMEBODY_WAITS))
    ]
    await asyncio.sleep(0)
    assert work.waiting == 3
    with pytest.raises(Overloaded):
        await work.run(Urgency.SOMEBODY_WAITS, 60, time.sleep, 0)
    go_on.set()
    await asyncio.gather(*asked)
    assert done == [0, 3, 2, 1]


async def test_who_leaves_while_waiting_takes_nobodys_turn():
    work = HeavyWork()

    def ask() -> "asyncio.Task[Any]":
        return asyncio.create_task(work.run(Urgency.MAIL, 60, time.sleep, 0))

    first, leaving, last = ask(), ask(), ask()
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(first, last)
    assert leaving.cancelled() or leaving.done()
    assert work.waiting == 0
