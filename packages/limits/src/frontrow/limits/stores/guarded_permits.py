"""Permits of a shared store, with a policy for when that store is down.

`closed` raises `StoreDown`. `local` counts in this process, so each process allows n. `open` allows everybody. A permit
that was given in this process is renewed and released in this process.
"""

from frontrow.core.breaker import Breaker
from frontrow.core.clock import Clock
from frontrow.limits.quota import StoreDown
from frontrow.limits.stores.permits import (
    COUNT,
    RELEASE,
    RENEW,
    MemoryPermits,
    PermitAnswer,
    PermitRequest,
    PermitStore,
)

NO_LIMIT = 1 << 53


class GuardedPermits:
    """Sends requests to `remote`. While it is down, `policy` decides."""

    def __init__(self, remote: PermitStore, clock: Clock, policy: str) -> None:
        self._remote = remote
        self._local = MemoryPermits(clock)
        self._policy = policy
        self._breaker = Breaker(clock)

    def apply(self, request: PermitRequest) -> PermitAnswer:
        if (own := self._apply_to_own(request)) is not None:
            return own
        if not self._breaker.permits():
            return self._apply_policy(request, StoreDown("the permit store is down"))
        try:
            answer = self._remote.apply(request)
        except StoreDown as error:
            self._breaker.failed()
            return self._apply_policy(request, error)
        self._breaker.succeeded()
        return answer

    async def aapply(self, request: PermitRequest) -> PermitAnswer:
        if (own := self._apply_to_own(request)) is not None:
            return own
        if not self._breaker.permits():
            return self._apply_policy(request, StoreDown("the permit store is down"))
        try:
            answer = await self._remote.aapply(request)
        except StoreDown as error:
            self._breaker.failed()
            return self._apply_policy(request, error)
        self._breaker.succeeded()
        return answer

    def _apply_to_own(self, request: PermitRequest) -> PermitAnswer | None:
        """The answer for a permit that was given in this process while the store was down."""
        if request.op not in (RENEW, RELEASE) or not len(self._local):
            return None
        answer = self._local.apply(request)
        return answer if answer.done else None

    def _apply_policy(self, request: PermitRequest, error: StoreDown) -> PermitAnswer:
        if self._policy == "closed" or request.op in (RENEW, RELEASE):
            raise error
        limit = NO_LIMIT if self._policy == "open" and request.op != COUNT else request.limit
        return self._local.apply(request._replace(limit=limit))

    def close(self) -> None:
        self._remote.close()

    async def aclose(self) -> None:
        await self._remote.aclose()
