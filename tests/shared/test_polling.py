"""The poll loop: rounds of work until it is stopped."""

import asyncio

from frontrow.shared.polling import PollLoop


class Bell:
    """A quiet time that lasts until `wake`."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    async def wait_while_quiet(self) -> None:
        await self._rung.wait()

    def wake(self) -> None:
        self._rung.set()
        self._rung = asyncio.Event()


async def test_a_stop_in_the_moment_in_which_a_pause_ends_is_heard() -> None:
    """It rang the bell before the loop lay down to sleep, and `frontrow work` was cut off after its grace period."""
    loop = asyncio.get_running_loop()
    rounds = PollLoop(0.0, 1.0, Bell())

    async def work() -> float:
        loop.call_soon(loop.call_soon, rounds.stop)  # runs between the end of the pause and the loop's next step
        return 0.0

    async with asyncio.timeout(10):
        await rounds.run(work)
    assert rounds.stopping


async def test_a_stop_wakes_a_loop_that_sleeps_in_a_quiet_time() -> None:
    rounds = PollLoop(0.0, 1.0, Bell())
    asleep = asyncio.Event()

    async def work() -> float:
        asyncio.get_running_loop().call_later(0.01, asleep.set)
        return 0.0

    running = asyncio.create_task(rounds.run(work))
    async with asyncio.timeout(10):
        await asleep.wait()
        rounds.stop()
        await running
