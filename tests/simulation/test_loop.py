"""Q1: the loop counts the same steps on every Python, and its time has microseconds."""

import asyncio

import pytest

from frontrow.shared.time_limit import TimeLimit
from frontrow.simulation.loop import SeededLoop, Trace, run_seeded


def test_shielding_takes_as_many_steps_on_every_python() -> None:
    async def main(loop: SeededLoop) -> int:
        inner = asyncio.ensure_future(asyncio.sleep(1))
        before = loop.steps
        await asyncio.shield(inner)
        return loop.steps - before

    assert run_seeded(1, main, Trace()) == 6, "since Python 3.14 a shield schedules a callback for its own books"


def test_a_limit_that_ends_between_two_microseconds_ends() -> None:
    async def main(_: SeededLoop) -> None:
        with TimeLimit(1.0000004).start():
            await asyncio.sleep(2)

    with pytest.raises(TimeoutError):
        run_seeded(1, main, Trace())
