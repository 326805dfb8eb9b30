"""The waiting rooms of the events on sale: made while running, opened when the sale begins, with their live streams.

A room is made as soon as its event is published, and follows what its organiser changes later (`RoomRules`). Before the
sale (or the presale) begins it is a pre-queue, whose order is drawn at the opening; every server tries to open it, and
the store lets it happen once.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.events.model.room_rules import RoomRules
from frontrow.core.background_tasks import start_loop
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.core.failures import note_failure, note_success
from frontrow.waitingroom.model.config import LaneRule, Phase, RoomConfig
from frontrow.waitingroom.ports import HumanCheck
from frontrow.web.endpoints.room.room_endpoints import RoomEndpoints
from frontrow.web.streams.positions import Streams

log = logging.getLogger("frontrow.rooms")

EVERY_S = 0.25
MakeCheck = Callable[[str, str], HumanCheck | None]


def room_changes(event: Event, defaults: RoomRules) -> dict[str, Any]:
    """The settings of the room that the event decides."""
    rules = event.room.filled(defaults, presale=bool(event.presale_starts_at_us))
    return {
        "lanes": tuple(LaneRule(lane.name, lane.weight) for lane in rules.lanes or ()),
        "depth_cap": rules.depth_cap,
        "one_place_per_person": rules.one_place_per_person,
        "codes_until_us": event.sale_starts_at_us if event.presale_starts_at_us else 0,
    }


class Rooms:
    """Makes and opens the rooms of this process, and runs their streams."""

    def __init__(
        self,
        endpoints: RoomEndpoints,
        config: RoomConfig,
        clock: Clock,
        make_streams: Callable[[], Streams],
        make_check: MakeCheck = lambda event, human: None,
        rules: RoomRules | None = None,
    ) -> None:
        """`config` and `rules` are the server's own; an event's rules come before them. `make_check` makes the human
        check of an event by its name."""
        self._endpoints, self._config, self._clock = endpoints, config, clock
        self._rules = rules or RoomRules()
        self._human: dict[str, str] = {}
        self._make_streams, self._make_check = make_streams, make_check
        self._starts_at_us: dict[str, int] = {}
        self._has_starts = asyncio.Event()
        self._stops: dict[str, Callable[[], None]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def open(self, event: Event) -> None:
        """Make the event's room, or change the one that is there; called for every new or changed event."""
        endpoints, room = self._endpoints, self._endpoints.room
        self._starts_at_us[event.id] = event.opens_at_us
        self._has_starts.set()
        # no organiser sets the idle time: a room made under another setting, or another default, follows this one
        changes = room_changes(event, self._rules) | {"idle_s": self._config.idle_s}
        if event.id not in endpoints.streams:
            early = self._clock() < event.opens_at_us
            config = self._config.changed(**changes)
            await room.control.create(event.id, config, Phase.PREQUEUE if early else Phase.OPEN)
        await self._agree(event.id, changes)
        human = event.room.filled(self._rules).human or "none"
        if self._human.get(event.id) != human:
            endpoints.entry.set_check(event.id, self._make_check(event.id, human))
            self._human[event.id] = human
        if event.id in endpoints.streams:
            return
        streams = self._make_streams()
        streams.show(room.cache.find(event.id).document.body)
        self._stops[event.id] = room.cache.find(event.id).subscribe(lambda document: streams.show(document.body))
        self._tasks[event.id] = start_loop(streams.run, "streams", event_id=event.id)
        endpoints.streams[event.id] = streams

    async def _agree(self, event_id: str, changes: dict[str, Any]) -> None:
        """Give the room the settings of its event, if they differ. Every server does; the store keeps one result."""
        room = self._endpoints.room
        config = room.control.view(event_id).state.config
        if all(getattr(config, name) == value for name, value in changes.items()):
            return
        try:
            await room.control.configure(event_id, **changes)
        except InvalidInput as error:  # an older event or other [room] settings: the sale goes on with what it has
            log.warning("room not changed", extra={"event_id": event_id, "problem": error.message})

    async def open_due(self) -> None:
        """Open the pre-queues whose sale has begun."""
        now_us, room = self._clock(), self._endpoints.room
        for event_id, starts_at_us in list(self._starts_at_us.items()):
            if now_us < starts_at_us or event_id not in self._endpoints.streams:
                continue
            if room.cache.find(event_id).state.phase is Phase.PREQUEUE:
                await room.control.open(event_id)
            self._starts_at_us.pop(event_id, None)  # open: nothing is due any more

    async def run(self) -> None:
        """Look for pre-queues to open until cancelled. Sleep while there is none."""
        while True:
            await self._has_starts.wait()
            try:
                await self.open_due()
                note_success()
            except FrontrowError as error:  # the room's store is away: tried again
                note_failure(error)
            if not self._starts_at_us:
                self._has_starts.clear()
            await asyncio.sleep(EVERY_S)

    async def close(self, event_id: str) -> None:
        """The event is over: end its streams and forget its room; the store keeps what happened there."""
        stop, task = self._stops.pop(event_id, None), self._tasks.pop(event_id, None)
        if stop is not None:
            stop()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        for kept in (self._starts_at_us, self._human, self._endpoints.streams):
            kept.pop(event_id, None)
        self._endpoints.entry.set_check(event_id, None)
        await self._endpoints.room.loops.forget(event_id)

    async def aclose(self) -> None:
        for stop in self._stops.values():
            stop()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
