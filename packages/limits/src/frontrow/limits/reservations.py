"""`Reservation`: charge an estimate first, and correct it when the real cost is known.

    with limiter.reserve("user:42", cost=500) as reservation:
        answer = ask_the_model(...)
        reservation.settle(answer.tokens_used)

If less was used, the rest is given back as far as it still counts: not what has drained from a bucket since, and not
what belongs to an earlier window. If more was used, the rest is charged whether or not it fits. A bucket then owes up
to one bucket more than it holds, and nothing is allowed until that has drained. A window has no debt: it is used up.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput
from frontrow.limits.algorithms import SPECIFICATION
from frontrow.limits.quota import Decision, Quota, Throttled, check_time
from frontrow.limits.stores.protocol import CHARGE, PEEK, REFUND, QuotaSlot, Store, StoreRequest

MAX_ACTUAL = 1 << 52


class Reservation:
    """An estimate that was charged or refused: `decision` says which. Settle it once.

    As a context manager it raises `Throttled` if it was refused. When the block fails before `settle`, all is given
    back. When it ends without `settle`, the estimate stays charged.
    """

    __slots__ = ("_charged_us", "_clock", "_request", "_settled", "_slots", "_store", "decision")

    def __init__(
        self,
        store: Store,
        request: StoreRequest,
        decision: Decision,
        slots: Sequence[QuotaSlot],
        charged_us: int,
        clock: Clock,
    ) -> None:
        self._store = store
        self._request = request  # that charged the estimate: the correction goes to the same keys and tiers
        self._slots = slots
        self._charged_us = charged_us
        self._clock = clock
        self._settled: Decision | None = None
        self.decision = decision

    def __bool__(self) -> bool:
        return self.decision.allowed

    def settle(self, actual: int, now_us: int | None = None) -> Decision:
        """Correct the estimate to what was really used. The decision is that of a `peek` afterwards.

        Only the first call counts. Repeating it is harmless.
        """
        request = self._correction(actual, now_us)
        if self._settled is None:
            self._settled = self._store.decide(request).decision
        return self._settled

    async def asettle(self, actual: int, now_us: int | None = None) -> Decision:
        """`settle` for asyncio."""
        request = self._correction(actual, now_us)
        if self._settled is None:
            self._settled = (await self._store.adecide(request)).decision
        return self._settled

    def _correction(self, actual: int, now_us: int | None) -> StoreRequest:
        """The request that corrects what was charged."""
        if type(actual) is not int or not 0 <= actual <= MAX_ACTUAL:
            raise InvalidInput(f"actual must be a whole number of at least 0, not {actual!r}", param="actual")
        if now_us is not None:
            check_time(now_us)
        if not self.decision.allowed:
            raise Throttled("the reservation was refused, so there is nothing to settle", self.decision)
        if self.decision.source != "store" and self._settled is None:
            self._settled = self.decision  # the store was down, and nothing was charged to it
        request, more = self._request._replace(now_us=now_us), actual - self._request.cost
        if more > 0:
            most = 2 * max(slot.quota.capacity for slot in self._slots)  # more than that changes nothing
            return request._replace(op=CHARGE, cost=min(more, most))
        counted = self._counted_positions(self._clock() if now_us is None else now_us)
        if not more or not counted:
            return request._replace(op=PEEK, cost=1)
        return request._replace(
            op=REFUND,
            cost=-more,
            slots=tuple(request.slots[at] for at in counted),
            keys=tuple(request.keys[at] for at in counted),
        )

    def _counted_positions(self, now_us: int) -> list[int]:
        """The rules for which the charge still counts."""
        elapsed_us = now_us - self._charged_us
        return [
            at
            for at, slot in enumerate(self._slots)
            if elapsed_us < counted_for_us(slot.quota, self._charged_us, self._reset_after_us(slot))
        ]

    def _reset_after_us(self, slot: QuotaSlot) -> int | None:
        return self.decision.reset_after_us if slot.rule.name == self.decision.rule else None

    def __enter__(self) -> Self:
        return self._entered()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is not None:
            self.settle(0)

    async def __aenter__(self) -> Self:
        return self._entered()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if kind is not None:
            await self.asettle(0)

    def _entered(self) -> Self:
        if not self.decision.allowed:
            wait_s = self.decision.retry_after_s
            raise Throttled(f"rule {self.decision.rule}: free again in {wait_s:.3f} s", self.decision)
        return self


def counted_for_us(quota: Quota, charged_us: int, reset_after_us: int | None) -> int:
    """How long a charge counts in full. `reset_after_us` is what the store said after it, if it did.

    A bucket that has not been empty since the charge still owes all of it. One that may have been empty owes nothing of
    it. A window counts a charge until it ends.
    """
    if reset_after_us is None:
        alone, _ = SPECIFICATION[quota.algorithm](quota, None, charged_us, 1)
        reset_after_us = quota.life_us if quota.is_bucket else alone.reset_after_us
    return reset_after_us - (quota.period_us if quota.algorithm == "sliding_counter" else 0)
