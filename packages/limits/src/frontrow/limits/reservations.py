"""`Reservation`: charge an estimate first, and correct it when the real cost is known.

    with limiter.reserve("user:42", cost=500) as reservation:
        answer = ask_the_model(...)
        reservation.settle(answer.tokens_used)

If less was used, the rest is given back as far as it still counts: not what has drained from a bucket since, and not
what belongs to an earlier window. If more was used, the rest is charged whether or not it fits. A bucket then owes up
to one bucket more than it holds, and nothing is allowed until that has drained. A window has no debt: it is used up.

Only the first settlement counts, whoever makes it: threads and tasks may settle at the same time. Once it is on its way
to the store it is not taken back. A task that is cancelled meanwhile leaves it to end by itself. A reservation belongs
to the process that made it: in a forked child nothing is settled, whichever way the block ends there.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput
from frontrow.limits.algorithms import SPECIFICATION
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Decision, Quota, Throttled, check_time
from frontrow.limits.stores.protocol import CHARGE, PEEK, REFUND, QuotaSlot, Store, StoreRequest, StoreResult

MAX_ACTUAL = 1 << 52


class Reservation:
    """An estimate that was charged or refused: `decision` says which. Settle it once.

    As a context manager it raises `Throttled` if it was refused. When the block fails before `settle`, all is given
    back. When it ends without `settle`, the estimate stays charged.
    """

    __slots__ = (
        "_charged_us",
        "_clock",
        "_first",
        "_process",
        "_request",
        "_settled",
        "_settling",
        "_slots",
        "_store",
        "_wake",
        "decision",
    )

    def __init__(
        self,
        store: Store,
        request: StoreRequest,
        decision: Decision,
        slots: Sequence[QuotaSlot],
        charged_us: int,
        clock: Clock,
        wake: Callable[[Sequence[int], Sequence[StoreKey]], None],
    ) -> None:
        """`wake` tells those who wait in line that units were given back."""
        self._store = store
        self._request = request  # that charged the estimate: the correction goes to the same keys and tiers
        self._slots = slots
        self._charged_us = charged_us
        self._clock = clock
        self._wake = wake
        self._first = threading.Lock()  # taken by the first settlement, and kept
        self._process = os.getpid()
        self._settled: Decision | None = None
        self._settling: asyncio.Future[StoreResult] | None = None  # on its way to the store
        self.decision = decision

    def __bool__(self) -> bool:
        return self.decision.allowed

    def settle(self, actual: int, now_us: int | None = None) -> Decision:
        """Correct the estimate to what was really used. The decision is that of a `peek` afterwards.

        Only the first call counts. Repeating it is harmless, at any time and from any thread.
        """
        request = self._correction(actual, now_us)
        if self._may_settle():
            try:
                self._settled = self._store.decide(request).decision
            except Exception:
                self._first.release()  # the store decided nothing
                raise
            self._wake(request.slots, request.keys)
        return self._settled or self._store.decide(self._look(now_us)).decision

    async def asettle(self, actual: int, now_us: int | None = None) -> Decision:
        """`settle` for asyncio. When it is cancelled, what was begun is still done, once."""
        if hasattr(self._store, "prepare_check"):  # in memory: nothing to wait for
            return self.settle(actual, now_us)
        request = self._correction(actual, now_us)
        if self._may_settle():
            self._settling = asyncio.ensure_future(self._store.adecide(request))
            self._settling.add_done_callback(self._note_settled)
        settling = self._settling
        if settling is not None and settling.get_loop() is asyncio.get_running_loop():
            return (await asyncio.shield(settling)).decision
        return self._settled or (await self._store.adecide(self._look(now_us))).decision

    def _may_settle(self) -> bool:
        """Whether this is the first settlement, in the process that made the reservation."""
        return self._settled is None and self._process == os.getpid() and self._first.acquire(blocking=False)

    def _note_settled(self, settling: "asyncio.Future[StoreResult]") -> None:
        """A settlement has ended. One that was cancelled with its loop may have been made, so it stays the first."""
        if settling.cancelled():
            self._settled = self.decision
        elif settling.exception() is None:
            self._settled = settling.result().decision
            self._wake(self._request.slots, self._request.keys)
        else:  # the store decided nothing
            self._settling = None
            self._first.release()

    def _look(self, now_us: int | None) -> StoreRequest:
        """What is left now, for who comes while another settles."""
        return self._request._replace(op=PEEK, cost=1, now_us=now_us)

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
        slots, keys, estimate, _, _, tag = self._request
        more = actual - estimate
        if more > 0:
            most = 2 * max(slot.quota.capacity for slot in self._slots)  # more than that changes nothing
            return StoreRequest(slots, keys, min(more, most), now_us, CHARGE, tag)
        counted = self._counted_positions(self._clock() if now_us is None else now_us)
        if not more or not counted:
            return StoreRequest(slots, keys, 1, now_us, PEEK, tag)
        if len(counted) < len(slots):
            slots, keys = tuple([slots[at] for at in counted]), tuple([keys[at] for at in counted])
        return StoreRequest(slots, keys, -more, now_us, REFUND, tag)

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
