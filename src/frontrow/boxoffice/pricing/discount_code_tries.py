"""How often discount codes may be tried, per fan of an event and per network address, so that none can be guessed.

A right code is forgiven: only wrong ones use up the limits.
"""

from typing import Final

from frontrow.boxoffice.attempt_limit import AttemptLimit
from frontrow.core.clock import Clock

TRIES_PER_FAN: Final = ("10/minute", "40/hour")
TRIES_PER_ADDRESS: Final = ("60/minute", "400/hour")


class DiscountCodeLimits:
    """Counts the codes that fans try and refuses those over the limit."""

    def __init__(self, store: str, clock: Clock | None) -> None:
        self._fan = AttemptLimit("discount", TRIES_PER_FAN, store, clock)
        self._address = AttemptLimit("discount-ip", TRIES_PER_ADDRESS, store, clock)

    async def count_try(self, event_id: str, fan: str, ip: str) -> None:
        """Count a code before it is looked at. Raises `TooManyTries` if there were too many."""
        await self._fan.count_attempt(f"{event_id} {fan}")
        await self._address.count_attempt(ip)

    async def forgive_try(self, event_id: str, fan: str, ip: str) -> None:
        """Take back one counted code, because it was right."""
        await self._fan.forgive_attempt(f"{event_id} {fan}")
        await self._address.forgive_attempt(ip)

    async def aclose(self) -> None:
        await self._fan.aclose()
        await self._address.aclose()
