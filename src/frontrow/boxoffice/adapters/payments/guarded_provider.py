"""A provider behind a circuit breaker, a cap on calls in flight and a deadline (B8, N3).

Five failures in a row open the breaker. While it is open, calls fail at once with `ProviderNotCalled`. After a pause
one call at a time goes through as a probe. A call over the cap fails the same way and is retried later. A definite
refusal is an answer, so it closes the breaker like a success. A failure of a call that began before one that was
answered is old news: those that hung while the provider was away do not open the breaker once it is back.
"""

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from frontrow.boxoffice.adapters.payments.call_cap import CallCap
from frontrow.boxoffice.payments import fan_wait
from frontrow.boxoffice.payments.fan_wait import fan_wait_ends_s
from frontrow.boxoffice.payments.model.payment_methods import PaymentMethod
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    NewIntent,
    Notice,
    ProviderNotCalled,
    ProviderRefund,
    ProviderRefused,
    ProviderUnknown,
)
from frontrow.boxoffice.payments.ports import (
    AccountLook,
    HasAccounts,
    OpensAccounts,
    PaymentProvider,
    ProviderPayout,
    RemembersNotices,
)
from frontrow.core.breaker import Breaker
from frontrow.core.clock import Clock
from frontrow.shared.time_limit import TimeLimit

Answer = TypeVar("Answer")
FAILURES: Final = 5
PAUSE_S: Final = 1.0  # a probe costs a provider nothing, and who waits for it are people
MAX_IN_FLIGHT: Final = 5_000
DEADLINE_S: Final = 25.0  # less than payments.WORK_CLAIM_S: a call has ended before another driver takes over
WHOLE_WAIT: Final = 0.99  # a call that has this much of the fan's wait left is the first of it, and shares a timer


class _Seen:
    """What was seen of the provider's calls, over all its accounts."""

    def __init__(self) -> None:
        self.answered_s = 0.0  # when the call began that began last of those that were answered, by the loop's clock
        self.spared = 0


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
        methods: Sequence[PaymentMethod] | None = None,
    ) -> None:
        """`methods`: those that are offered, if not all that the provider has."""
        self.inner, self._methods = provider, methods
        self.breaker = Breaker(clock, failures=failures, pause_s=pause_s, jitter=jitter)
        self.cap = cap or CallCap(MAX_IN_FLIGHT)
        self._limit = TimeLimit(deadline_s)
        self._first_limit = TimeLimit(min(deadline_s, fan_wait.FAN_WAITS_S))
        self._seen = _Seen()

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def methods(self) -> Sequence[PaymentMethod]:
        return self.inner.methods if self._methods is None else self._methods

    @property
    def spared(self) -> int:
        """How many calls were not made, because of the breaker or the cap."""
        return self._seen.spared

    async def create(self, new: NewIntent) -> Intent:
        return await self._call(self.inner.create, new)

    async def authorise(self, ref: str, method: str, key: str, return_url: str = "") -> Intent:
        return await self._call(self.inner.authorise, ref, method, key, return_url)

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

    def notice(self, body: bytes, headers: Mapping[str, str], now_us: int) -> Notice | None:
        return self.inner.notice(body, headers, now_us)

    async def remember(self, notice: Notice) -> Notice:
        """The notice, kept if the provider needs it; nothing is called."""
        return await self.inner.remember(notice) if isinstance(self.inner, RemembersNotices) else notice

    async def returned(self, ref: str, answers: Mapping[str, str]) -> bool:
        return isinstance(self.inner, RemembersNotices) and await self._call(self.inner.returned, ref, answers)

    def for_account(self, account: str) -> PaymentProvider:
        """The provider for another account, behind the same breaker and cap."""
        if not isinstance(self.inner, HasAccounts):
            raise ProviderNotCalled(f"{self.name} has no other accounts, so none named {account!r}")
        other = copy.copy(self)
        other.inner = self.inner.for_account(account)
        return other

    async def open_account(self, organiser_id: str, key: str) -> str:
        return await self._call(self._opener().open_account, organiser_id, key)

    async def onboarding_url(self, account: str, return_url: str) -> str:
        return await self._call(self._opener().onboarding_url, account, return_url)

    async def look(self, account: str) -> AccountLook:
        return await self._call(self._opener().look, account)

    async def payouts(self, account: str, limit: int) -> list[ProviderPayout]:
        return await self._call(self._opener().payouts, account, limit)

    def _opener(self) -> OpensAccounts:
        if not isinstance(self.inner, OpensAccounts):
            raise ProviderRefused(f"no accounts can be opened at {self.name}", "no_accounts")
        return self.inner

    async def aclose(self) -> None:
        await self.inner.aclose()
        await self.cap.aclose()

    async def _call(self, act: Callable[..., Awaitable[Answer]], *arguments: Any) -> Answer:
        began_s, ends_s = asyncio.get_running_loop().time(), fan_wait_ends_s()
        if ends_s is not None and began_s >= ends_s:
            raise ProviderNotCalled("the fan has waited long enough; the worker goes on")
        if not await self.cap.enter():
            self._seen.spared += 1
            raise ProviderNotCalled(f"{self.cap.at_once} calls are in flight; try again shortly")
        try:
            if not self.breaker.permits():
                self._seen.spared += 1
                raise ProviderNotCalled("the payment provider is not answering; try again shortly")
            if ends_s is None or ends_s - began_s >= WHOLE_WAIT * self._first_limit.within_s:
                with (self._limit if ends_s is None else self._first_limit).start():
                    answer = await act(*arguments)
            else:
                async with asyncio.timeout_at(min(ends_s, began_s + self._limit.within_s)):
                    answer = await act(*arguments)
        except TimeoutError:
            self._failed(began_s)
            raise ProviderUnknown("no answer in time") from None
        except ProviderUnknown:
            self._failed(began_s)
            raise
        except ProviderRefused:
            self._answered(began_s)
            raise
        finally:
            self.cap.leave()
        self._answered(began_s)
        return answer

    def _answered(self, began_s: float) -> None:
        self._seen.answered_s = max(self._seen.answered_s, began_s)
        self.breaker.succeeded()

    def _failed(self, began_s: float) -> None:
        if began_s >= self._seen.answered_s:
            self.breaker.failed()
