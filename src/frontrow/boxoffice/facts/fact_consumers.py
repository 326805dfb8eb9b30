"""Consumers of facts: each reads the bus as its own group and turns every fact into ledger rows exactly once.

The rows are written in the same transaction as the note that the fact was handled (`Inbox.once`). So a fact that
comes twice, or a consumer that is killed at any point, neither doubles nor loses an effect. A fact that cannot be
handled is tried a bounded number of times and then becomes a dead letter (a row of the ledger's deliveries), so that
one broken fact never stops the others. A bus that lost its memory, or its newest facts with a failover, loses no fact:
the outbox still has them, and the consumer handles those it has not recorded whenever it meets the bus anew. A fact
without an effect leaves no note, so it may be planned again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence, Set
from typing import Final

import msgspec

from frontrow.boxoffice.facts.model import FACT_KINDS, BusFact, Fact, kind_of, on_the_bus
from frontrow.boxoffice.facts.ports import Bus, BusReader, Inbox, PlannedWrite
from frontrow.boxoffice.messages.model.messages import MAX_ERROR_CHARS, UNHANDLED_FACT, NewDelivery, UnhandledFact
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.core.failures import note_failure, note_success
from frontrow.shared.log_lines import DEAD_LETTER

BATCH: Final = 200
WAIT_S: Final = 5.0  # facts that come meanwhile end the wait, and so does `stop`
TRIES: Final = 3
MAX_FACT_CHARS: Final = 30_000  # of a fact in a dead letter
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 1.0
MISSED_ROUNDS: Final = 1_000  # of one batch each
LOOK_BACK_S: Final = 3_600  # a bus that still knows the group lost no more: Redis' rarest snapshot is hourly
LOOK_AGAIN_S: Final = 30  # after the work claim of a relay, which publishes first and marks then

Plan = Callable[[int, Fact], Awaitable[Sequence[PlannedWrite]]]


class FactConsumer:
    """Reads as group `name`. `plan` returns the writes for a fact, which are made once.

    Facts of other `kinds` are not even decoded, and facts without writes are not recorded. They cost nearly
    nothing, and most facts are of no interest to most consumers.
    """

    def __init__(
        self,
        name: str,
        bus: Bus,
        inbox: Inbox,
        clock: Clock,
        plan: Plan,
        *,
        kinds: Set[str] = FACT_KINDS,
        in_turn: bool = False,
        wait_s: float = WAIT_S,
    ) -> None:
        """`in_turn`: `plan` hardly ever waits, so one fact after the other is cheaper than a task for each."""
        self.name = name
        self._bus, self._inbox, self._clock, self._plan, self._wait_s = bus, inbox, clock, plan, wait_s
        self._kinds, self._in_turn = kinds, in_turn
        self._stopping = asyncio.Event()
        self._reader: BusReader | None = None
        self._looks_us: list[int] = []  # when to look for facts that the bus has lost
        self._lost_since_us = 0
        self.handled = 0
        self.repeated = 0
        self.dead_letters = 0

    async def work(self, reader: BusReader) -> int:
        """Handle one batch. Returns the number of facts read."""
        facts = await reader.read(BATCH, self._wait_s)
        if facts:
            await self._handle(facts)
            await reader.done(facts)
        return len(facts)

    async def turn(self) -> int:
        """`work` with the reader of the turn before. After a failure, and at first, with a new one that looks for what
        the bus has lost meanwhile."""
        try:
            if self._reader is None:
                self._reader = await self._bus.reader(self.name)
                now_us = self._clock()
                self._lost_since_us = 0 if self._reader.is_new_group else now_us - LOOK_BACK_S * US_PER_S
                self._looks_us = [now_us, now_us + LOOK_AGAIN_S * US_PER_S]
            if self._looks_us and self._looks_us[0] <= self._clock():
                await self.catch_up(self._lost_since_us)
                del self._looks_us[0]
            return await self.work(self._reader)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Leave the bus; what was in hand is delivered to the next reader."""
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.aclose()

    async def catch_up(self, since_us: int = 0) -> int:
        """Handle the facts published since then that this consumer has not recorded. Returns their number."""
        count = after = 0
        for _ in range(MISSED_ROUNDS):
            missed = await self._inbox.missed_facts(self.name, after, BATCH, since_us)
            await self._handle([on_the_bus(fact) for fact in missed])
            count += len(missed)
            if len(missed) < BATCH or self._stopping.is_set():
                break
            after = missed[-1].number
        return count

    async def _handle(self, facts: Sequence[BusFact]) -> None:
        wanted = [(carried, _decoded(carried)) for carried in facts if self._wants(kind_of(carried.body))]
        planned = await self._plan_all(wanted)
        ready = [pair for pair in planned if not isinstance(pair, BaseException)]
        with_effect = [pair for pair in ready if pair[1]]
        heard = await self._inbox.once_each(self.name, with_effect, self._clock())
        self.handled += heard.count(True) + len(facts) - len(wanted) + len(ready) - len(with_effect)
        self.repeated += heard.count(False)
        for failure in planned:
            if isinstance(failure, BaseException):
                raise failure  # the whole batch comes again; facts already handled are skipped then

    def _wants(self, kind: str) -> bool:
        return not kind or kind in self._kinds  # what cannot be decoded becomes a dead letter

    async def _plan_all(
        self, wanted: Sequence[tuple[BusFact, Fact | None]]
    ) -> Sequence[tuple[str, Sequence[PlannedWrite]] | BaseException]:
        """The writes of each fact, or why there are none. In turn, the facts after a failed one are left out."""
        if not self._in_turn:
            return await asyncio.gather(*(self._planned(*one) for one in wanted), return_exceptions=True)
        planned: list[tuple[str, Sequence[PlannedWrite]] | BaseException] = []
        for one in wanted:
            try:
                planned.append(await self._planned(*one))
            except (Unavailable, Overloaded) as error:
                planned.append(error)
                break
        return planned

    async def _planned(self, carried: BusFact, fact: Fact | None) -> tuple[str, Sequence[PlannedWrite]]:
        """The fact's number and its writes."""
        for attempt in range(1, TRIES + 1):
            try:
                writes: Sequence[PlannedWrite] = await self._plan(carried.number, fact or carried.fact())
                break
            except (Unavailable, Overloaded):
                raise
            except Exception as error:
                if attempt == TRIES:
                    self.dead_letters += 1
                    note_failure(error, fact=carried.number)
                    DEAD_LETTER(consumer=self.name, fact=carried.number, error=type(error).__name__)
                    writes = self._dead_letter(carried, error)
        return str(carried.number), writes

    def _dead_letter(self, carried: BusFact, error: Exception) -> Sequence[PlannedWrite]:
        reason = f"{type(error).__name__}: {error}"[:MAX_ERROR_CHARS]
        unhandled = UnhandledFact(carried.number, carried.body.decode(errors="replace")[:MAX_FACT_CHARS], reason)
        body = msgspec.json.encode(unhandled).decode()
        dedupe = f"{UNHANDLED_FACT}:{self.name}:{carried.number}"
        dead_letter = NewDelivery(UNHANDLED_FACT, self.name, dedupe, body)
        return self._inbox.make_delivery_writes([dead_letter], self._clock())

    def stop(self) -> None:
        """Stop after the current batch; without one, at once if the bus can."""
        self._stopping.set()
        if self._reader is not None:
            self._reader.stop_waiting()

    async def run(self) -> None:
        """Work until stopped. When the bus or the ledger fails, start again with a new reader, so no fact is lost."""
        pause_s = FIRST_PAUSE_S
        try:
            while not self._stopping.is_set():
                try:
                    await self.turn()
                    note_success()
                    pause_s = FIRST_PAUSE_S
                except (Unavailable, Overloaded) as error:
                    note_failure(error)
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        finally:
            await self.close()


def _decoded(carried: BusFact) -> Fact | None:
    """The fact, or None if it cannot be decoded."""
    try:
        return carried.fact()
    except msgspec.DecodeError:
        return None
