"""A read replica of the ledger: used while it is close enough behind the primary, and never believed beyond that.

The primary has a heartbeat, one row with its time, which servers renew every second. A replica that shows the beat of
12:04:31 shows everything that was committed before 12:04:31, whatever kind of replication carried it. So `as_of_us` is
a proven bound, also while nothing is sold, after a failover, and on a replica that follows nobody any more.

`look` is called every second. A replica that is older than `max_lag_s`, or does not answer, is left at once: the
primary answers. It is used again after `LOOKS_TO_RETURN` good looks in a row at no more than half that age, so a
replica at the edge does not come and go. Of several hosts the first good one is used.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final

import asyncpg

from frontrow.boxoffice.adapters.ledger.engine.batched_reads import KeyedRead
from frontrow.boxoffice.adapters.ledger.engine.group_commit import LedgerReader
from frontrow.boxoffice.adapters.ledger.engine.postgres import BAD_INPUT, CLASH, LOST, PostgresStore
from frontrow.boxoffice.adapters.ledger.engine.postgres_readers import ReaderPool
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.engine.statements import postgres_arguments
from frontrow.boxoffice.request_reads import note_as_of, request_reads
from frontrow.core.errors import InvalidInput, Unavailable
from frontrow.shared.postgres_url import PostgresHosts, split_replicas

MAX_LAG_S: Final = 10.0
LOOK_EVERY_S: Final = 1.0
LOOK_WITHIN_S: Final = 2.0  # per host
READ_WITHIN_S: Final = 2.5  # then the primary is asked, which takes at most six seconds and a half more
READERS: Final = 4
LOOKS_TO_RETURN: Final = 3
SLOW_READS: Final = 3  # in a row
US: Final = 1_000_000
SHOWN_BEAT: Final = "SELECT beat_us FROM ledger_heartbeat"
# What may be read from a replica. Nothing here decides about seats, money, passes, sessions or permissions, and nothing
# is a fan's own. Every other statement goes to the primary, whoever asks.
BROWSING: Final = frozenset(
    {
        # the list of events, and pages of events
        "find_by_word",
        "find_by_price",
        "find_by_start",
        "count_words",
        "count_cheap",
        "listed_currencies",
        "seats_left_of",
        "dates_of_show",
        "public_events",
        "events_by_id",
        "venues_by_id",
        # what organisers look at
        "events_of_organiser",
        "changes_page",
        "bookings_by_state",
        "taken_by_run",
        "payments_by_state",
        "refunds_by_state",
        "held_over_time",
        "sold_over_time",
        "refunded_over_time",
        "sold_span",
        "purchase_times",
        "sold_by_quarter",
        "refunded_by_quarter",
        "sold_by_channel",
        "checked_in",
        "checked_in_by_quarter",
        # exports
        "bookings_page",
        "contacts_of",
        "tickets_of_bookings",
        "payments_of_bookings",
        "refunds_of_bookings",
        # metrics
        "operating_figures",
    }
)


class ReplicaAway(Exception):
    """The replica did not answer this read."""


class Replica:
    """The replica at `url`, or the first good one of several. `clock` counts seconds and never jumps."""

    def __init__(
        self,
        url: str,
        primary: PostgresStore,
        *,
        max_lag_s: float = MAX_LAG_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._primary, self._clock = primary, clock
        self.max_lag_s = max_lag_s
        self._hosts = [ReaderPool(PostgresHosts(one), READERS, READ_WITHIN_S) for one in split_replicas(url)]
        self._at = 0  # the host in use
        self._ahead_us = 0  # the primary's clock less ours
        self._looks_missing = 1
        self._slow_reads = 0
        self.as_of_us = 0
        self.why_away = "it was not asked yet"  # empty while it is used
        self.times_left = 0
        self.counts = {"replica": 0, "primary": 0}  # reads of those who browse, by who answered

    @property
    def age_s(self) -> float:
        """How old its answers are at most; 0 before it was ever reached."""
        return (self._now_us() - self.as_of_us) / US if self.as_of_us else 0.0

    @property
    def is_used(self) -> bool:
        return not self.why_away and self.age_s <= self.max_lag_s

    def may_serve(self) -> bool:
        """Whether it may answer a read of the current request, which never sees an older moment than it has seen."""
        reads = request_reads.get()
        if reads is None:
            return self.is_used
        return not reads.needs_newest and self.as_of_us >= reads.as_of_us and self.is_used

    async def read(self, query: Query) -> list[Row]:
        """The rows of a read. `ReplicaAway` when they do not come; the primary has them."""
        try:
            host = self._hosts[self._at]
            rows = await host.fetch((await host.statements())[query.name], *postgres_arguments(query))
        except TimeoutError as error:
            self._slow_reads += 1
            if self._slow_reads >= SLOW_READS:
                self._leave("it is too slow")
            raise ReplicaAway from error
        except BAD_INPUT as error:
            raise InvalidInput(f"the ledger cannot look for this: {error}") from error
        except CLASH as error:  # what the read needed was replaced meanwhile
            raise ReplicaAway from error
        except LOST as error:
            self._leave(f"it does not answer ({type(error).__name__})")
            raise ReplicaAway from error
        except asyncpg.UndefinedTableError as error:  # a migration has not arrived
            raise ReplicaAway from error
        self._slow_reads = 0
        return rows

    async def look(self) -> None:
        """Renew the primary's heartbeat and see which host shows it."""
        try:
            async with asyncio.timeout(LOOK_WITHIN_S):
                there_us = await self._primary.beat(round(LOOK_EVERY_S * US) // 2)
            self._ahead_us = there_us - round(self._clock() * US)
        except (Unavailable, TimeoutError):
            pass  # no beat, so what the replica shows grows old
        why = ""
        for number in [*range(self._at, len(self._hosts)), *range(self._at)]:
            shown_us, refusal = await self._ask(self._hosts[number])
            if not refusal:
                self._at, self.as_of_us = number, shown_us
                self._returned()
                return
            why = why or refusal
            if number == self._at:
                self.as_of_us = max(shown_us, self.as_of_us)
        self._leave(why)

    async def _ask(self, host: ReaderPool) -> tuple[int, str]:
        """The beat that a host shows, and why it cannot be used."""
        try:
            async with asyncio.timeout(LOOK_WITHIN_S):
                shown_us = int((await host.fetch(SHOWN_BEAT))[0][0])
        except (*LOST, asyncpg.PostgresError) as error:
            return 0, f"it does not answer ({type(error).__name__})"
        if shown_us < self.as_of_us:
            return shown_us, "it shows less than was shown already"
        age_s = (self._now_us() - shown_us) / US
        limit_s = self.max_lag_s / 2 if self.why_away else self.max_lag_s
        return shown_us, f"it is {age_s:.1f} s behind" if age_s > limit_s else ""

    def _returned(self) -> None:
        self._looks_missing = max(0, self._looks_missing - 1)
        if self.why_away and self._looks_missing == 0:
            self.why_away = ""
            self._slow_reads = 0

    def _leave(self, why: str) -> None:
        if not self.why_away:
            self.times_left += 1
        self.why_away = why
        self._looks_missing = LOOKS_TO_RETURN

    def _now_us(self) -> int:
        """The primary's time."""
        return round(self._clock() * US) + self._ahead_us

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    def close(self) -> None:
        for host in self._hosts:
            host.close()


class BrowsingReader:
    """Answers those who browse: the reads of `BROWSING` from the replica while it may serve, the others, and all while
    it may not, from the primary."""

    def __init__(self, primary: LedgerReader, replica: Replica) -> None:
        self._primary, self.replica = primary, replica

    async def read(self, query: Query) -> list[Row]:
        if query.name in BROWSING and self.replica.may_serve():
            as_of_us = self.replica.as_of_us
            with contextlib.suppress(ReplicaAway):
                rows = await self._read_near(query)
                note_as_of(as_of_us)
                return rows
        return await self._read_newest(query)

    async def read_for_all(self, query: Query) -> list[Row]:
        """For callers that were asked before whether the replica may answer; from the primary if it does not."""
        with contextlib.suppress(ReplicaAway):
            return await self._read_near(query)
        return await self._read_newest(query)

    async def _read_near(self, query: Query) -> list[Row]:
        rows = await self.replica.read(query)
        self.replica.counts["replica"] += 1
        return rows

    async def _read_newest(self, query: Query) -> list[Row]:
        self.replica.counts["primary"] += 1
        return await self._primary.read(query)


class BrowsingKeyedRead:
    """Reads by key for those who browse. Callers that may use the replica are batched apart from those that may not.

    `surely`: what the replica does not have is looked for on the primary; it may be new.
    """

    def __init__(self, reader: BrowsingReader, newest: KeyedRead, near: KeyedRead, *, surely: bool) -> None:
        self._reader, self._newest, self._near, self._surely = reader, newest, near, surely

    async def read(self, key: str) -> list[Row]:
        replica = self._reader.replica
        if not replica.may_serve():
            return await self._newest.read(key)
        as_of_us = replica.as_of_us
        rows = await self._near.read(key)
        if self._surely and not rows:
            return await self._newest.read(key)
        note_as_of(as_of_us)
        return rows


class NearReader:
    """The reads of a batch, whose callers were asked before whether the replica may answer them."""

    def __init__(self, reader: BrowsingReader) -> None:
        self._reader = reader

    async def read(self, query: Query) -> list[Row]:
        return await self._reader.read_for_all(query)
