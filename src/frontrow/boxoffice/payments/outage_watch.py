"""Tries payments again at once when the provider is back (B8), instead of up to 135 s later.

The circuit breaker in front of the provider detects an outage. While it is open, one waiting payment at a time is made
due, whenever the breaker would let a probe through: its call is the probe. When the breaker has closed, all payments
that wait for the provider are made due. The times of their next tries are in the ledger, so nothing is lost with a
process: the next one continues at the usual pace, and has a breaker of its own.
"""

from typing import Final

from frontrow.boxoffice.payments.ports import BehindBreaker, PaymentBook, PaymentProvider
from frontrow.core.clock import Clock

WAKE_AT_ONCE: Final = 5_000  # payments; more wait for the next turn, half a second later


class OutageWatch:
    """Follows the breaker of a provider. Without a breaker it does nothing, and payments keep to their pace."""

    def __init__(self, payments: PaymentBook, provider: PaymentProvider, clock: Clock) -> None:
        self._payments, self._clock = payments, clock
        self._breaker = provider.breaker if isinstance(provider, BehindBreaker) else None
        self._closings = self._breaker.closings if self._breaker is not None else 0

    @property
    def is_on(self) -> bool:
        """Whether there is an outage, or one has ended and the payments that waited are not due yet."""
        return self._breaker is not None and (self._breaker.is_open or self._breaker.closings != self._closings)

    async def wake_payments(self) -> None:
        """Make the payments due that should be tried now."""
        if self._breaker is None:
            return
        closings = self._breaker.closings
        if closings != self._closings:
            if await self._payments.wake_payments(self._clock(), WAKE_AT_ONCE) < WAKE_AT_ONCE:
                self._closings = closings
        elif self._breaker.is_probe_due:
            await self._payments.wake_payments(self._clock(), 1)
