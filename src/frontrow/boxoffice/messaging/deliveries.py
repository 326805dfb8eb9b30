"""The delivery worker: leases what is due, lane by lane, sends it, records what became of it. At least once.

A lane is worked on by one worker at a time, and lanes run side by side: a receiver that is slow or broken delays nobody
else. Killed after sending and before recording, a delivery is sent again with the same id when its lease ends.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Final

from frontrow.boxoffice.jobs.polling import PollLoop
from frontrow.boxoffice.model.messages import Delivery, Outcome, settled
from frontrow.boxoffice.ports.messages import MessageBook
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import Overloaded, Unavailable

PER_LANE: Final = 50
LIMIT: Final = 500
MAX_LANES: Final = 32  # worked on at once by one worker
LEASE_S: Final = 120.0
EVERY_S: Final = 0.5
LONGEST_PAUSE_S: Final = 10.0
BUSY_PAUSE_S: Final = 0.01  # there may be more
MAX_ROUNDS: Final = 10_000

Send = Callable[[Sequence[Delivery]], Awaitable[Sequence[Outcome]]]


class DeliveryWorker:
    """Sends the deliveries of one kind. `send` gets deliveries of one lane and answers an outcome each."""

    def __init__(
        self,
        kind: str,
        book: MessageBook,
        clock: Clock,
        send: Send,
        *,
        give_up_after_s: int,
        per_lane: int = PER_LANE,
        lease_s: float = LEASE_S,
        every_s: float = EVERY_S,
    ) -> None:
        self.kind = kind
        self._book, self._clock, self._send = book, clock, send
        self._give_up_after_s, self._per_lane, self._every_s = give_up_after_s, per_lane, every_s
        self._lease_us = round(lease_s * US_PER_S)
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._rounds = PollLoop(every_s, LONGEST_PAUSE_S)
        self.sent = 0
        self.failed = 0

    async def round(self) -> int:
        """Begin to work on every lane that has something due and nobody working on it; how many deliveries."""
        if len(self._lanes) >= MAX_LANES:
            return 0
        due = await self._book.lease_deliveries(self.kind, self._clock(), self._lease_us, LIMIT, self._per_lane)
        for lane, of_lane in groupby(sorted(due, key=lambda one: (one.lane, one.number)), key=lambda one: one.lane):
            self._lanes[lane] = asyncio.create_task(self._work(lane, list(of_lane)))
        return len(due)

    async def _work(self, lane: str, deliveries: list[Delivery]) -> None:
        try:
            try:
                async with asyncio.timeout(self._lease_us / US_PER_S):
                    outcomes = await self._send(deliveries)
            except Exception as error:  # one lane's trouble, whatever it is, stays in its lane
                outcomes = [Outcome(False, final=False, reason=repr(error))] * len(deliveries)
            now_us = self._clock()
            pairs = list(zip(deliveries, outcomes, strict=True))
            await self._book.settle([settled(one, out, now_us, self._give_up_after_s) for one, out in pairs], now_us)
            self.sent += sum(out.sent for out in outcomes)
            self.failed += sum(not out.sent for out in outcomes)
        except (Unavailable, Overloaded):
            self.failed += len(deliveries)  # not recorded: they come again when the lease ends
        finally:
            self._lanes.pop(lane, None)

    async def settle_lanes(self) -> None:
        """Wait for everything in hand."""
        if self._lanes:
            await asyncio.wait(list(self._lanes.values()))

    async def drain(self) -> int:
        """Deliver all that is due now; how many attempts."""
        count = 0
        for _ in range(MAX_ROUNDS):
            began = await self.round()
            await self.settle_lanes()
            count += began
            if not began:
                break
        return count

    def stop(self) -> None:
        """End after what is in hand."""
        self._rounds.stop()

    async def run(self) -> None:
        """Deliver until stopped."""
        await self._rounds.run(self._round)
        await self.settle_lanes()

    async def _round(self) -> float:
        return BUSY_PAUSE_S if await self.round() else self._every_s
