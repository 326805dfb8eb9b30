"""The measurements of one process: the overload gate, its traffic, and figures read from the ledger at intervals.

Reading the ledger's figures takes a few milliseconds for 50,000 bookings. A slower read happens less often, so that it
never takes more than a fiftieth of the time.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

from frontrow.boxoffice.organiser.model.sales_figures import Percentiles, percentiles_of_buckets
from frontrow.boxoffice.queries import Query
from frontrow.core.errors import FrontrowError
from frontrow.core.failures import failures_here
from frontrow.settings.overload import OverloadSettings
from frontrow.web.lane.overload_watch import Watch
from frontrow.web.observability.traffic import Traffic, bounds_s, together
from frontrow.web.observability.worker_metrics import Board
from frontrow.web.server.overflow_page import ForPeople
from frontrow.web.server.overload import OverloadGate

EVERY_S: Final = 2.0
IDLE_EVERY_S: Final = 10.0  # after a minute without a request
SHARE: Final = 50
LONGEST_PAUSE_S: Final = 20.0  # the longest delay of the next read, even if the whole process was stopped
READ_WITHIN_S: Final = 10.0
RECENT_LOOKS: Final = 30  # times EVERY_S: about the last minute
# what buyers do -> the names under which the doors count it
SHOWN: Final = {
    "join": ("join", "room_join"),
    "status": ("status", "room_status"),
    "claim": ("claim", "room_claim"),
    "hold": ("hold", "place_hold"),
    "pay": ("pay",),
    "event": ("event", "get_event"),
}
Figures = dict[str, dict[str, int]]


class Telemetry:
    """`watch` guards and measures; `figures` are the ledger's, as last read; `board` joins the workers' numbers."""

    def __init__(self, settings: OverloadSettings | None = None, board: Board | None = None) -> None:
        self.gate = OverloadGate(settings)
        self.traffic = Traffic()
        self.board = board or Board(None)
        self.figures: Figures = {}
        self.read_at_s = 0.0
        self.bus_lag: dict[tuple[str, str], int] = {}  # facts not finished, by group and partition
        self.redis_memory = (0, 0)  # bytes used and allowed, of the fullest server
        self.store_errors: Counter[str] = Counter()
        self.failures = failures_here()
        self._before: deque[dict[str, list[int]]] = deque(maxlen=RECENT_LOOKS)

    def watch(self, is_proxy: Callable[[str], bool], for_people: ForPeople | None = None) -> Watch:
        return Watch(self.gate, self.traffic, is_proxy, for_people)

    def speeds(self) -> dict[str, Percentiles]:
        """How quickly this process answers buyers (`SHOWN`), for the organisers' figures."""
        return _percentiles(self._buckets())

    def recent_speeds(self) -> dict[str, Percentiles]:
        """The same for about the last minute, without the routes that nobody used."""
        before = self._before[0] if self._before else {}
        return _percentiles(
            {
                name: [now - was for now, was in zip(counts, before[name], strict=True)] if before.get(name) else counts
                for name, counts in self._buckets().items()
            }
        )

    def _buckets(self) -> dict[str, list[int]]:
        rows = list(self.traffic.rows())
        return {name: together(row.buckets for row in rows if row.route in routes) for name, routes in SHOWN.items()}

    async def read(self, ledger: Any) -> None:
        """Read the ledger's figures once. A store that is away is counted, and the last figures stay."""
        try:
            async with asyncio.timeout(READ_WITHIN_S):
                rows = await ledger.browsing.reader.read(Query("operating_figures"))
        except (FrontrowError, TimeoutError, OSError):
            self.store_errors["ledger"] += 1
            return
        figures: Figures = {}
        for what, which, number in rows:
            figures.setdefault(what, {})[which] = int(number)
        self.figures, self.read_at_s = figures, time.time()

    async def run(self, platform: Any) -> None:
        """Until cancelled: read the figures, check the claim store, and write the numbers for the other workers."""
        from frontrow.web.observability.metrics import families

        arrived, idle_looks = self.gate.arrived, 0
        while True:
            began_s = time.monotonic()
            await self.read(platform.ledger)
            await self._check_claims(platform)
            self._before.append(self._buckets())
            took_s = time.monotonic() - began_s
            if self.board.has_readers:
                self.board.write(families(platform))
            idle_looks = idle_looks + 1 if self.gate.arrived == arrived else 0
            arrived = self.gate.arrived
            every_s = IDLE_EVERY_S if idle_looks > RECENT_LOOKS else EVERY_S
            await asyncio.sleep(min(max(every_s, SHARE * took_s), LONGEST_PAUSE_S))

    async def _check_claims(self, platform: Any) -> None:
        try:
            async with asyncio.timeout(READ_WITHIN_S):
                for event_id in list(platform.box_office.openings.events)[:1]:
                    await platform.stores.claims.lost(event_id)
        except (FrontrowError, TimeoutError, OSError):
            self.store_errors["claims"] += 1


def _percentiles(buckets: dict[str, list[int]]) -> dict[str, Percentiles]:
    found = {name: percentiles_of_buckets(bounds_s(), counts) for name, counts in buckets.items()}
    return {name: times for name, times in found.items() if times is not None}
