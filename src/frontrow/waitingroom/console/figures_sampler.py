"""Reads the figures of each room every few seconds. One server writes them: the one that leads the room.

A no-show is an admitted place that nobody has claimed when its time is over. The leader sees each slide with how many
have claimed it; what is missing when the slide has ended never came.
"""

import asyncio
from typing import Final

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError
from frontrow.core.failures import note_failure, note_success
from frontrow.waitingroom.console.model.figures import Figure
from frontrow.waitingroom.console.ports import ConsoleBook
from frontrow.waitingroom.console.rooms import ConsoleRooms
from frontrow.waitingroom.model.room_state import RoomState
from frontrow.waitingroom.service.room import WaitingRoom

SAMPLE_EVERY_US: Final = 10 * US_PER_S
LOOK_EVERY_S: Final = 1.0
KEEP_US: Final = 30 * 86_400 * US_PER_S


class NoShows:
    """Counts the no-shows of one room from what is seen of its slides."""

    def __init__(self, before: int = 0) -> None:
        self.total = before
        self._seen: dict[int, int] = {}  # slide -> places of it that nobody has claimed

    def see(self, state: RoomState) -> None:
        """Take note of a state. Slides that it no longer has are over."""
        open_now = {
            slide.number: max(0, slide.size - state.took.get(slide.number, 0))
            for slide in state.ring
            if any(hi > lane.lo for hi, lane in zip(slide.his, state.lanes, strict=False))
        }
        for number, unclaimed in self._seen.items():
            if number not in open_now:
                self.total += min(unclaimed, _unclaimed_at_end(state, number, unclaimed))
        self._seen = open_now


def _unclaimed_at_end(state: RoomState, number: int, before: int) -> int:
    """The last word about a slide that is over: the ring may still have it."""
    for slide in state.ring:
        if slide.number == number:
            return max(0, slide.size - state.took.get(number, 0))
    return before


class FigureSampler:
    """Samples every room of this process."""

    def __init__(self, book: ConsoleBook, rooms: ConsoleRooms, room: WaitingRoom) -> None:
        self._book, self._rooms, self._room = book, rooms, room
        self._no_shows: dict[str, NoShows] = {}
        self._last: dict[str, Figure] = {}

    async def run(self) -> None:
        """Look at every room once per second until cancelled."""
        while True:
            try:
                for name in list(self._rooms.plans):
                    await self.look(name)
                note_success()
            except FrontrowError as error:  # the book is away: the next second tries again
                note_failure(error)
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self, name: str) -> None:
        """Count the room's no-shows, and write a figure when one is due."""
        if name not in self._room.cache.rooms:
            return
        view = self._room.control.view(name)
        if not view.is_leader and view.leader:
            self._no_shows.pop(name, None)  # another server counts; begin from its last figure if it dies
            return
        if name not in self._no_shows:
            last = await self._book.last_figure(name)
            self._no_shows[name] = NoShows(last.no_shows if last else 0)
            if last:
                self._last[name] = last
        state, counted = view.state, self._no_shows[name]
        counted.see(state)
        joined = sum(lane.issued for lane in state.lanes)
        at_us = state.now_us // SAMPLE_EVERY_US * SAMPLE_EVERY_US
        figure = Figure(at_us, view.waiting, joined, state.admitted, state.active, counted.total, state.phase.value)
        last_figure = self._last.get(name)
        if last_figure is not None and (last_figure.at_us >= at_us or _same(last_figure, figure)):
            return
        if last_figure is None and joined:  # before it was nothing: the sums and the waits begin there
            empty = Figure(at_us - SAMPLE_EVERY_US, 0, 0, 0, 0, 0, state.phase.value)
            await self._book.add_figure(name, empty, 0)
        await self._book.add_figure(name, figure, at_us - KEEP_US)
        self._last[name] = figure


def _same(one: Figure, other: Figure) -> bool:
    """Whether nothing has happened between them: a quiet room writes nothing."""
    return (one.waiting, one.joined, one.admitted, one.active, one.no_shows, one.phase) == (
        other.waiting,
        other.joined,
        other.admitted,
        other.active,
        other.no_shows,
        other.phase,
    )
