"""Tries payments again at once when the provider is back (B8), instead of up to 135 s later.

The circuit breaker in front of the provider detects an outage. While it is open, one waiting payment at a time is made
due, whenever the breaker would let a probe through: its call is the probe. When the breaker has closed, all payments
that wait for the provider are made due. The times of their next tries are in the ledger, so nothing is lost with a
process: the next one continues at the usual pace, and has a breaker of its own.
"""

from typing import Final

from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.boxoffice.payments.ports import BehindBreaker, PaymentBook
from frontrow.core.breaker import Breaker
from frontrow.core.clock import Clock

WAKE_AT_ONCE: Final = 5_000  # payments; more wait for the next turn, half a second later


class OutageWatch:
    """Follows the breakers of the providers. Without one it does nothing, and payments keep to their pace.

    With several providers, a payment of another one may be woken. Then it is tried, too, and put off again if need be.
    """

    def __init__(self, payments: PaymentBook, providers: OpenProviders, clock: Clock) -> None:
        self._payments, self._clock = payments, clock
        breakers = [one.breaker for one in providers.all() if isinstance(one, BehindBreaker)]
        self._closings: dict[Breaker, int] = {breaker: breaker.closings for breaker in breakers}

    @property
    def is_on(self) -> bool:
        """Whether there is an outage, or one has ended and the payments that waited are not due yet."""
        return any(breaker.is_open or breaker.closings != seen for breaker, seen in self._closings.items())

    async def wake_payments(self) -> None:
        """Make the payments due that should be tried now."""
        for breaker, seen in self._closings.items():
            closings = breaker.closings
            if closings != seen:
                if await self._payments.wake_payments(self._clock(), WAKE_AT_ONCE) < WAKE_AT_ONCE:
                    self._closings[breaker] = closings
            elif breaker.is_probe_due:
                await self._payments.wake_payments(self._clock(), 1)
