"""`AdaptiveSender`: as many requests at once to each host as it answers without a queue.

Each host, or each `key`, has its own `AdaptiveLimit`. A request takes a slot until its response headers have arrived.
Connection errors, timeouts and the statuses 429, 503 and 504 count as drops and shrink the limit.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, Unpack

from frontrow.core.errors import ConfigError
from frontrow.core.forks import fork_safe_lock
from frontrow.limits.adaptive.limit import AdaptiveLimit, LimitOptions
from frontrow.limits.adaptive.load_meter import Ended
from frontrow.limits.adaptive.metrics import AdaptiveMetrics

MAX_HOSTS: Final = 1_000
DROPPED: Final = frozenset({429, 503, 504})
Response = TypeVar("Response")


class SenderOptions(LimitOptions, total=False):
    """What every client takes for its `AdaptiveSender`."""

    priority: str
    metrics: AdaptiveMetrics | None


class AdaptiveSender:
    """The limits of a client, by host."""

    def __init__(
        self, *, priority: str = "normal", metrics: AdaptiveMetrics | None = None, **options: Unpack[LimitOptions]
    ) -> None:
        options.setdefault("max_wait_s", 1.0)  # the own program can wait longer than a visitor
        AdaptiveLimit("", **options).rank_of(priority)  # mistakes are told now
        if options.get("partitions"):
            raise ConfigError("a client has a limit per host; it takes no partitions", param="partitions")
        self._priority, self._metrics, self._options = priority, metrics, options
        self._limits: dict[str, AdaptiveLimit] = {}
        self._lock = fork_safe_lock()

    def limit_of(self, host: str) -> AdaptiveLimit:
        """The limit of a host. The oldest idle one makes room when there are too many."""
        with self._lock:
            limit = self._limits.get(host)
            if limit is None:
                if len(self._limits) >= MAX_HOSTS:
                    idle = (name for name, one in self._limits.items() if not one.in_flight and not one.waiting)
                    self._limits.pop(next(idle, next(iter(self._limits))))
                limit = self._limits[host] = AdaptiveLimit(host, **self._options)
                if self._metrics is not None:
                    self._metrics.follow(limit)
        return limit

    def send(self, host: str, send: Callable[[], Response], status: Callable[[Response], int]) -> Response:
        """Send with a slot. `Shed` if there is none within `max_wait_s`."""
        limit = self.limit_of(host)
        slot = limit.enter(limit.rank_of(self._priority))
        try:
            response = send()
        except BaseException as error:
            limit.release(slot, limit.judge(error))
            raise
        limit.release(slot, _judge(status(response)))
        return response

    async def asend(
        self, host: str, send: Callable[[], Awaitable[Response]], status: Callable[[Response], int]
    ) -> Response:
        """`send` for asyncio."""
        limit = self.limit_of(host)
        slot = await limit.aenter(limit.rank_of(self._priority))
        try:
            response = await send()
        except BaseException as error:
            limit.release(slot, limit.judge(error))
            raise
        limit.release(slot, _judge(status(response)))
        return response


def _judge(status: int) -> Ended:
    if status in DROPPED:
        return Ended.DROPPED
    return Ended.IGNORED if status >= 500 else Ended.WELL
