"""The outbox relay publishes facts from the outbox to the bus at least once: claim, publish, mark.

While the bus is away, the relay keeps the facts it has claimed and publishes them as soon as the bus is back. If it is
killed after publishing and before marking, the facts are published again when the claim ends. Consumers recognise them
by their number. Any number of relays may run; each claims its own facts (SKIP LOCKED). With several
relays, or after a crash, facts of one booking can arrive out of order or twice. Consumers must not depend on order.
"""

from typing import Final

from frontrow.boxoffice.facts.model import OutboxFact, on_the_bus
from frontrow.boxoffice.facts.ports import Bus, Outbox
from frontrow.core.clock import US_PER_S, Clock
from frontrow.shared.polling import PollLoop
from frontrow.shared.quiet_time import QuietTime

KEEP_FACTS_S: Final = 7 * 24 * 3600  # how long a published fact stays in the outbox
BATCH: Final = 500
BATCHES_PER_ROUND: Final = 100
WORK_CLAIM_S: Final = 30.0
EVERY_S: Final = 0.1
LONGEST_PAUSE_S: Final = 1.0


class OutboxRelay:
    """Publishes facts from the outbox to the bus, in bounded batches, until it is stopped."""

    def __init__(
        self,
        outbox: Outbox,
        bus: Bus,
        clock: Clock,
        *,
        batch: int = BATCH,
        claim_s: float = WORK_CLAIM_S,
        every_s: float = EVERY_S,
        quiet: QuietTime | None = None,
    ) -> None:
        self._outbox, self._bus, self._clock = outbox, bus, clock
        self._batch, self._claim_us, self._every_s = batch, round(claim_s * US_PER_S), every_s
        self._rounds = PollLoop(every_s, LONGEST_PAUSE_S, quiet)
        self._in_hand: list[OutboxFact] = []  # claimed, and not on the bus yet
        self.relayed = 0

    async def relay_pending(self) -> int:
        """Publish what is in the outbox now, in a bounded number of batches. Returns the number of facts."""
        count = 0
        for _ in range(BATCHES_PER_ROUND):
            facts = self._in_hand or await self._outbox.claim_facts(self._clock(), self._claim_us, self._batch)
            self._in_hand = facts
            if facts:
                await self._bus.publish([on_the_bus(fact) for fact in facts])
                self._in_hand = []
                await self._outbox.facts_published([fact.number for fact in facts], self._clock())
            count += len(facts)
            self.relayed += len(facts)
            if len(facts) < self._batch or self._rounds.stopping:
                break
        return count

    def stop(self) -> None:
        """Stop after the current batch."""
        self._rounds.stop()

    async def run(self) -> None:
        """Publish until stopped."""
        await self._rounds.run(self._round)

    async def _round(self) -> float:
        await self.relay_pending()
        return self._every_s
