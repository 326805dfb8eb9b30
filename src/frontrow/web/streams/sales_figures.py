"""Live figures by server-sent events: one frame per second for each event that somebody watches, shared by all viewers.

Seats, holds and the room are of this second, and of one moment. Money and payments are the ledger's sums, at most
WHOLE_EVERY_US old. A viewer has no queue: a slow reader misses frames (each is complete), and one who takes nothing for
SLOW_S is dropped. Beyond `max_open` viewers, others get 503 with Retry-After and poll the same frame as JSON. Whether a
viewer may still look is asked again every few seconds: the stream ends with the session, the role, the key or the
membership.
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.organiser.model.sales_figures import EventFigures, Group, LiveFigures
from frontrow.boxoffice.organiser.sales_figures import SalesFigures, SpeedsOf
from frontrow.core.background_tasks import start_loop
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError, Overloaded, Unavailable
from frontrow.core.failures import note_failure
from frontrow.web.streams.stream_app import StreamApp

EVERY_S: Final = 1.0
SLOW_S: Final = 15.0
RETRY_S: Final = 10.0
CHECK_EVERY_S: Final = 5.0
MAX_OPEN: Final = 500
MAX_EVENTS: Final = 100
WHOLE_EVERY_US: Final = 3 * US_PER_S
SUMMED: Final = ("hold_to_ticket",)  # the times from the ledger; this server measures the others
EventOf = Callable[[str], Awaitable[Event]]
MayLook = Callable[[], Awaitable[bool]]


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
        self,
        figures: SalesFigures,
        event_of: EventOf,
        *,
        speeds: SpeedsOf = dict,
        max_open: int = MAX_OPEN,
        every_s: float = EVERY_S,
        check_every_s: float = CHECK_EVERY_S,
    ) -> None:
        self._figures, self._event_of = figures, event_of
        self.max_open, self._every_s, self.check_every_s = max_open, every_s, check_every_s
        self._channels: dict[str, _Channel] = {}
        self.speeds = speeds
        self.frames = 0  # frames that were encoded, whatever the number of viewers

    def __len__(self) -> int:
        return sum(channel.viewers for channel in self._channels.values())

    def check_room(self, event_id: str) -> None:
        """Raise TooManyViewers if no more viewers fit."""
        crowded = event_id not in self._channels and len(self._channels) >= MAX_EVENTS
        if len(self) >= self.max_open or crowded:
            raise TooManyViewers("all live connections are taken; poll instead", retry_after_s=RETRY_S)

    async def latest(self, event_id: str) -> LiveFigures:
        """The newest frame, or a first one, for polling."""
        channel = self._channels.get(event_id)
        if channel is not None and channel.figures is not None:
            return channel.figures
        return await self._next_frame(await self._event_of(event_id), None)

    async def _next_frame(self, event: Event, before: LiveFigures | None) -> LiveFigures:
        """The frame after `before`, with the exact figures it has or, once those are old, new ones."""
        frame = await self._figures.live(event, before)
        if before is not None and frame.at_us - before.whole_at_us < WHOLE_EVERY_US:
            whole: EventFigures | LiveFigures = before
            at_us = before.whole_at_us
        else:
            whole, at_us = await self._figures.of(event), frame.at_us
        slow = {name: whole.latency[name] for name in SUMMED if name in whole.latency}
        return msgspec.structs.replace(
            frame,
            whole_at_us=at_us,
            money=whole.money,
            payment_success=whole.payment_success,
            latency={**self.speeds(), **slow},
            tiers=_with_money(frame.tiers, whole.tiers),
            forecast=whole.forecast if not event.paused else None,
        )

    async def events(self, event_id: str, may_look: MayLook | None = None) -> AsyncGenerator[bytes, None]:
        """The frames of one viewer, from now on, as long as `may_look` says so. While the ledger is away, nobody can
        say so, and what is shown is what this server has in memory: the stream goes on."""
        channel = self._channels.setdefault(event_id, _Channel())
        channel.viewers += 1
        if channel.task is None:
            channel.task = start_loop(
                functools.partial(self._publish_frames, event_id, channel), "live figures", event_id=event_id
            )
        now_s = asyncio.get_running_loop().time
        check_at_s = now_s() + self.check_every_s
        try:
            while True:  # until the viewer leaves, is dropped or may no longer look
                if may_look is not None and now_s() >= check_at_s:
                    check_at_s = now_s() + self.check_every_s
                    with contextlib.suppress(Unavailable, Overloaded):
                        if not await may_look():
                            return
                yield channel.frame
                if channel.waiting is None or channel.waiting.done():
                    channel.waiting = asyncio.get_running_loop().create_future()
                await asyncio.shield(channel.waiting)
        finally:
            channel.viewers -= 1
            if not channel.viewers and channel.task is not None:
                channel.task.cancel()
                self._channels.pop(event_id, None)

    async def _publish_frames(self, event_id: str, channel: _Channel) -> None:
        while True:  # until the last viewer has left
            try:
                event = await self._event_of(event_id)
                channel.figures = await self._next_frame(event, channel.figures)
                channel.frame = b"event: figures\ndata: " + msgspec.json.encode(channel.figures) + b"\n\n"
                self.frames += 1
                if channel.waiting is not None and not channel.waiting.done():
                    channel.waiting.set_result(None)
            except FrontrowError as error:  # the ledger is away: tried again with the next frame
                note_failure(error, event_id=event_id)
            await asyncio.sleep(self._every_s)

    def app(self, event_id: str, slow_s: float = SLOW_S, may_look: MayLook | None = None) -> StreamApp:
        """One viewer's connection."""
        return StreamApp(lambda: self.events(event_id, may_look), slow_s)

    async def aclose(self) -> None:
        tasks = [channel.task for channel in self._channels.values() if channel.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _with_money(tiers: Sequence[Group], exact: Sequence[Group]) -> list[Group]:
    """The tiers as they are now, with the money that the ledger has counted for them."""
    minor = {one.name: one.sold_minor for one in exact}
    return [msgspec.structs.replace(one, sold_minor=minor.get(one.name, 0)) for one in tiers]
