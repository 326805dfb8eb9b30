"""A provider behind a circuit breaker, a cap on calls in flight and a deadline (B8, N3).

Five failures in a row open the breaker. While it is open, calls fail at once with `ProviderNotCalled`. After a pause
one call at a time goes through as a probe. A call over the cap fails the same way and is retried later. A definite
refusal is an answer, so it closes the breaker like a success.
"""

import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from frontrow.boxoffice.adapters.payments.call_cap import CallCap
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    NewIntent,
    Notice,
    ProviderNotCalled,
    ProviderRefund,
    ProviderRefused,
    ProviderUnknown,
)
from frontrow.boxoffice.payments.ports import PaymentProvider
from frontrow.core.breaker import Breaker
from frontrow.core.clock import Clock
from frontrow.shared.time_limit import TimeLimit

Answer = TypeVar("Answer")
FAILURES: Final = 5
PAUSE_S: Final = 5.0
MAX_IN_FLIGHT: Final = 5_000
DEADLINE_S: Final = 25.0  # less than payments.WORK_CLAIM_S: a call has ended before another driver takes over


class GuardedProvider:
    """See PaymentProvider."""

    def __init__(
        self,
        provider: PaymentProvider,
        clock: Clock,
        *,
        failures: int = FAILURES,
        pause_s: float = PAUSE_S,
        cap: CallCap | None = None,
        deadline_s: float = DEADLINE_S,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.inner = provider
        self.breaker = Breaker(clock, failures=failures, pause_s=pause_s, jitter=jitter)
        self.cap = cap or CallCap(MAX_IN_FLIGHT)
        self._limit = TimeLimit(deadline_s)
        self.spared = 0

    @property
    def name(self) -> str:
        return self.inner.name

    async def create(self, new: NewIntent) -> Intent:
        return await self._call(self.inner.create, new)

    async def authorise(self, ref: str, method: str, key: str) -> Intent:
        return await self._call(self.inner.authorise, ref, method, key)

    async def capture(self, ref: str, key: str) -> Intent:
        return await self._call(self.inner.capture, ref, key)

    async def void(self, ref: str, key: str) -> Intent:
        return await self._call(self.inner.void, ref, key)

    async def refund(self, ref: str, amount_minor: int, refund_id: str, key: str) -> ProviderRefund:
        return await self._call(self.inner.refund, ref, amount_minor, refund_id, key)

    async def read(self, ref: str) -> Intent:
        return await self._call(self.inner.read, ref)

    async def page(self, since_us: int, after: str = "", limit: int = 100) -> list[Intent]:
        return await self._call(self.inner.page, since_us, after, limit)

    def notice(self, body: bytes, signature: str, now_us: int) -> Notice | None:
        return self.inner.notice(body, signature, now_us)

    async def aclose(self) -> None:
        await self.inner.aclose()
        await self.cap.aclose()

    async def _call(self, act: Callable[..., Awaitable[Answer]], *arguments: Any) -> Answer:
        if not await self.cap.enter():
            self.spared += 1
            raise ProviderNotCalled(f"{self.cap.at_once} calls are in flight; try again shortly")
        try:
            if not self.breaker.permits():
                self.spared += 1
                raise ProviderNotCalled("the payment provider is not answering; try again shortly")
            with self._limit.start():
                answer = await act(*arguments)
        except TimeoutError:
            self.breaker.failed()
            raise ProviderUnknown(f"no answer within {self._limit.within_s:g} s") from None
        except ProviderUnknown:
            self.breaker.failed()
            raise
        except ProviderRefused:
            self.breaker.succeeded()
            raise
        finally:
            self.cap.leave()
        self.breaker.succeeded()
        return answer
