"""What `borrow` does with a connection that cannot be handed back."""

import asyncio
from typing import Any

import pytest

from frontrow.shared import postgres_pool
from frontrow.shared.postgres_pool import borrow


class StuckPool:
    """Its only connection is handed back when it is dropped, with an error."""

    def __init__(self) -> None:
        self._dropped = asyncio.Event()
        self.released = False

    async def acquire(self) -> "StuckPool":
        return self

    def terminate(self) -> None:
        self._dropped.set()

    async def release(self, _: Any) -> None:
        await self._dropped.wait()
        self.released = True
        raise TimeoutError


async def test_work_that_was_done_in_time_stays_done_when_its_connection_is_stuck_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A batch that was committed failed, and the server logged a traceback."""
    monkeypatch.setattr(postgres_pool, "CANCEL_WITHIN_S", 0.01)
    pool: Any = StuckPool()
    async with borrow(pool, 0.01) as connection:
        assert connection is pool
    assert pool.released


async def test_work_that_takes_too_long_is_a_time_out_whatever_the_connection_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_pool, "CANCEL_WITHIN_S", 0.01)
    pool: Any = StuckPool()
    with pytest.raises(TimeoutError):
        async with borrow(pool, 0.01):
            await asyncio.Event().wait()
    assert pool.released
