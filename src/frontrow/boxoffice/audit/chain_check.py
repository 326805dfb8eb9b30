"""Whether the ledger's hash-chained audit log is intact.

A check reads the whole log. So one runs at a time, within a time limit, and its result is cached for a minute.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from frontrow.core.clock import US_PER_S, Clock

CACHED_US: Final = 60 * US_PER_S


class ChainState(msgspec.Struct, frozen=True):
    """The result of a check: the entries read and the number of problems. `frontrow ledger verify` names them."""

    at_us: int
    entries: int
    wrong: int


class ChainCheck:
    """Checks the chain. `verify` returns the problems and the number of entries read."""

    def __init__(self, verify: Callable[[], Awaitable[tuple[list[str], int]]], clock: Clock) -> None:
        self._verify, self._clock = verify, clock
        self._cached: ChainState | None = None
        self._checking = asyncio.Lock()

    async def check(self, within_s: float) -> ChainState | None:
        """A result that is at most a minute old. None when the log could not be read in time."""
        try:
            async with asyncio.timeout(within_s), self._checking:
                if self._cached is None or self._clock() - self._cached.at_us >= CACHED_US:
                    wrong, entries = await self._verify()
                    self._cached = ChainState(self._clock(), entries, len(wrong))
                return self._cached
        except TimeoutError:
            return None
