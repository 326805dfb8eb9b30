"""Q1: the loop counts the same steps on every Python."""

import asyncio

from frontrow.simulation.loop import SeededLoop, Trace, run_seeded


def test_shielding_takes_as_many_steps_on_every_python() -> None:
    async def main(loop: SeededLoop) -> int:
        inner = asyncio.ensure_future(asyncio.sleep(1))
        before = loop.steps
        await asyncio.shield(inner)
        return loop.steps - before

    assert run_seeded(1, main, Trace()) == 6, "since Python 3.14 a shield schedules a callback for its own books"
