"""Live figures by server-sent events: one look a second for each event somebody watches, one encoded frame for all.

Seats, holds and the room are of this second; money and payments are the ledger's sums, WHOLE_EVERY_US old at most. A
viewer keeps no queue: whoever reads slowly misses frames (each is whole), and whoever takes nothing for SLOW_S is
dropped. Beyond `max_open` viewers nobody is added: they get 503 with Retry-After and poll the same frame as JSON.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import msgspec
from litestar.types import Send

from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.model.sales_figures import LiveFigures
from frontrow.boxoffice.organising.sales_figures import SalesFigures, SpeedsOf
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError, Overloaded
from frontrow.web.room.app import StreamApp

EVERY_S: Final = 1.0
SLOW_S: Final = 15.0
RETRY_S: Final = 10.0
MAX_OPEN: Final = 500
MAX_EVENTS: Final = 100
WHOLE_EVERY_US: Final = 3 * US_PER_S
SUMMED: Final = ("hold_to_ticket",)  # the times that the ledger knows; this server measures the others
EventOf = Callable[[str], Awaitable[Event]]


class TooManyViewers(Overloaded):
    """All live connections are taken; the same figures can be polled."""

    code = "too_many_viewers"


class _Channel:
    """One event's viewers and the frame they share."""

    def __init__(self) -> None:
        self.viewers = 0
        self.frame = b": counting\n\n"
        self.figures: LiveFigures | None = None
        self.waiting: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None


class LiveFiguresStreams:
    """All viewers of figures in this process."""

    def __init__(
        self, figures: SalesFigures, event_of: EventOf, *, max_open: int = MAX_OPEN, every_s: float = EVERY_S
    ) -> None:
        self._figures, self._event_of = figures, event_of
        self.max_open, self._every_s = max_open, every_s
        self._channels: dict[str, _Channel] = {}
        self.speeds: SpeedsOf = dict
        self.frames = 0  # looks that were taken and encoded, whatever the number of viewers

    def __len__(self) -> int:
        return sum(channel.viewers for channel in self._channels.values())

    def check_room(self, event_id: str) -> None:
        """Nothing, or TooManyViewers."""
        crowded = event_id not in self._channels and len(self._channels) >= MAX_EVENTS
        if len(self) >= self.max_open or crowded:
            raise TooManyViewers("all live connections are taken; poll instead", retry_after_s=RETRY_S)

    async def latest(self, event_id: str) -> LiveFigures:
        """The newest frame, or a first look; for who polls."""
        channel = self._channels.get(event_id)
        if channel is not None and channel.figures is not None:
            return channel.figures
        return await self._look(await self._event_of(event_id), None)

    async def _look(self, event: Event, before: LiveFigures | None) -> LiveFigures:
        """The frame after `before`, with the exact figures it has or, once those are old, new ones."""
        frame = await self._figures.live(event, before)
        if before is not None and frame.at_us - before.whole_at_us < WHOLE_EVERY_US:
            at_us, money, success, times = before.whole_at_us, before.money, before.payment_success, before.latency
        else:
            exact = await self._figures.of(event)
            at_us, money, success, times = frame.at_us, exact.money, exact.payment_success, exact.latency
        slow = {name: times[name] for name in SUMMED if name in times}
        return msgspec.structs.replace(
            frame, whole_at_us=at_us, money=money, payment_success=success, latency={**self.speeds(), **slow}
        )

    async def events(self, event_id: str) -> AsyncGenerator[bytes, None]:
        """The frames of one viewer, from now on."""
        channel = self._channels.setdefault(event_id, _Channel())
        channel.viewers += 1
        if channel.task is None:
            channel.task = asyncio.create_task(self._look_on(event_id, channel), name=f"figures {event_id}")
        try:
            while True:  # until the viewer leaves or is dropped
                yield channel.frame
                if channel.waiting is None or channel.waiting.done():
                    channel.waiting = asyncio.get_running_loop().create_future()
                await asyncio.shield(channel.waiting)
        finally:
            channel.viewers -= 1
            if not channel.viewers and channel.task is not None:
                channel.task.cancel()
                self._channels.pop(event_id, None)

    async def _look_on(self, event_id: str, channel: _Channel) -> None:
        while True:  # until the last viewer has left
            with contextlib.suppress(FrontrowError):  # the ledger is away: the next look tries again
                event = await self._event_of(event_id)
                channel.figures = await self._look(event, channel.figures)
                channel.frame = b"event: figures\ndata: " + msgspec.json.encode(channel.figures) + b"\n\n"
                self.frames += 1
                if channel.waiting is not None and not channel.waiting.done():
                    channel.waiting.set_result(None)
            await asyncio.sleep(self._every_s)

    def app(self, event_id: str, slow_s: float = SLOW_S) -> StreamApp:
        """One viewer's connection."""
        return _Dropping(lambda: self.events(event_id), slow_s)

    async def aclose(self) -> None:
        tasks = [channel.task for channel in self._channels.values() if channel.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Dropping(StreamApp):
    """A stream whose viewer must take a frame within `slow_s`."""

    def __init__(self, events: Callable[[], AsyncGenerator[bytes, None]], slow_s: float) -> None:
        super().__init__(events)
        self._slow_s = slow_s

    async def _write(self, send: Send) -> None:
        async def in_time(message: object) -> None:
            async with asyncio.timeout(self._slow_s):
                await send(message)  # type: ignore[arg-type]

        with contextlib.suppress(TimeoutError):
            await super()._write(in_time)
