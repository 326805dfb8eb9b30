"""Whether the ledger's hash-chained log is whole, for who looks at the audit: checked now and then, shared by all.

A check reads the whole log, so it is done by one at a time, within a bound, and remembered for a while.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from frontrow.core.clock import US_PER_S, Clock

REMEMBERED_US: Final = 60 * US_PER_S


class ChainState(msgspec.Struct, frozen=True):
    """What a check found: entries read, and how many things are wrong (which ones is for who runs the ledger)."""

    at_us: int
    entries: int
    wrong: int


class ChainCheck:
    """`verify` answers what is wrong and how many entries it read."""

    def __init__(self, verify: Callable[[], Awaitable[tuple[list[str], int]]], clock: Clock) -> None:
        self._verify, self._clock = verify, clock
        self._known: ChainState | None = None
        self._checking = asyncio.Lock()

    async def look(self, within_s: float) -> ChainState | None:
        """A result at most a minute old; None when the log could not be read within the time."""
        try:
            async with asyncio.timeout(within_s), self._checking:
                if self._known is None or self._clock() - self._known.at_us >= REMEMBERED_US:
                    wrong, entries = await self._verify()
                    self._known = ChainState(self._clock(), entries, len(wrong))
                return self._known
        except TimeoutError:
            return None
