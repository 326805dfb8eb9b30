"""The measurements of one process: the overload gate, its traffic, and the figures that were read from the ledger."""

import asyncio
import time
from collections import Counter, deque
from typing import Any, Final

from frontrow.boxoffice.organiser.model.sales_figures import Percentiles, percentiles_of_buckets
from frontrow.core.errors import FrontrowError
from frontrow.core.failures import failures_here
from frontrow.settings.overload import OverloadSettings
from frontrow.web.guard.overload import OverloadGate
from frontrow.web.guard.route_metrics import Traffic, bounds_s, together
from frontrow.web.observability.worker_metrics import Board

READ_WITHIN_S: Final = 10.0
RECENT_LOOKS: Final = 30  # one every two seconds: about the last minute
# what buyers do -> the names under which fast path and framework count it
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
    """`gate` admits, `traffic` counts; `figures` are the ledger's, as last read; `board` joins the workers' numbers."""

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

    def remember_speeds(self) -> None:
        """Keep the counts of now, for `recent_speeds` to compare with later."""
        self._before.append(self._buckets())

    def _buckets(self) -> dict[str, list[int]]:
        rows = list(self.traffic.rows())
        return {name: together(row.buckets for row in rows if row.route in routes) for name, routes in SHOWN.items()}

    async def read(self, ledger: Any) -> None:
        """Read the ledger's figures once. A store that is away is counted, and the last figures stay."""
        try:
            async with asyncio.timeout(READ_WITHIN_S):
                figures: Figures = await ledger.browsing.operations.operating_figures()
        except (FrontrowError, TimeoutError, OSError):
            self.store_errors["ledger"] += 1
            return
        self.figures, self.read_at_s = figures, time.time()


def _percentiles(buckets: dict[str, list[int]]) -> dict[str, Percentiles]:
    found = {name: percentiles_of_buckets(bounds_s(), counts) for name, counts in buckets.items()}
    return {name: times for name, times in found.items() if times is not None}
