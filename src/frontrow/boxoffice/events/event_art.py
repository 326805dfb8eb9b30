"""What an event looks like outside its own picture: its colour, and a small copy of the picture for mails and tickets.

An uploaded picture never changes under its hash, and a poster follows from the event's id. So both are worked out once
per process, beside the event loop, and kept; nothing is stored, and pictures from before an update have a colour too. A
picture that cannot be read now costs a page its colour and nothing else.
"""

import asyncio
import logging
from functools import lru_cache
from typing import Final

import msgspec

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.events.picture_colour import deepened, picture_colour
from frontrow.boxoffice.events.pictures import small_picture
from frontrow.boxoffice.events.ports import PictureBook
from frontrow.boxoffice.events.posters import poster_of, poster_png
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.shared.heavy_work import HeavyWork, Urgency

MAX_KEPT: Final = 200
MAX_POSTERS: Final = 2_048
DRAWN_WITHIN_S: Final = 10.0
SMALL_POSTER: Final = 1  # drawn at its own size: a poster in a mail needs no smoother edges

log = logging.getLogger("frontrow.event_art")


class Art(msgspec.Struct, frozen=True):
    """The colour of a picture (empty: it has none, it is grey) and the picture itself, made small."""

    colour: str
    picture: bytes


def make_art(body: bytes) -> Art:
    """The art of an uploaded picture. Takes some 20 ms: not on the event loop."""
    colour = picture_colour(body)
    return Art(deepened(colour) if colour else "", small_picture(body))


def make_poster_art(event_id: str) -> Art:
    """The art of an event that has a poster. Takes some 30 ms: not on the event loop."""
    return Art(poster_colour(event_id), poster_png(event_id, scale=SMALL_POSTER))


@lru_cache(MAX_POSTERS)
def poster_colour(event_id: str) -> str:
    """The colour of an event that has a poster."""
    return deepened(poster_of(event_id).colour)


class EventArt:
    """Works the art of events out; that of the last few hundred is kept."""

    def __init__(self, pictures: PictureBook, work: HeavyWork) -> None:
        self._pictures, self._work = pictures, work
        self._kept: dict[str, Art] = {}
        self._making: dict[str, asyncio.Task[Art | None]] = {}

    def known_colour(self, event: Event) -> str:
        """The colour of the event's picture as far as this process knows it (see `colour`)."""
        if not event.picture:
            return poster_colour(event.poster_seed)
        found = self._kept.get(event.picture)
        return found.colour if found is not None else ""

    async def colour(self, event: Event) -> str:
        """The colour of the event's picture; empty if it has none, or if the picture cannot be read now."""
        if not event.picture:
            return poster_colour(event.poster_seed)
        found = await self.find(event, Urgency.SOMEBODY_WAITS)
        return found.colour if found is not None else ""

    async def find(self, event: Event, urgency: Urgency) -> Art | None:
        """The art of the event, or None if its picture cannot be read now. Callers who want the same wait for one."""
        key = event.picture or event.poster_seed
        found = self._kept.get(key)
        if found is not None:
            return found
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.create_task(self._make(event, urgency), name="event_art")
            making.add_done_callback(lambda task: self._end(key, task))
        try:
            return await asyncio.shield(making)
        except (Unavailable, Overloaded) as error:
            log.warning("no art for an event", extra={"action": "event_art", "event": event.id, "why": repr(error)})
            return None

    async def _make(self, event: Event, urgency: Urgency) -> Art | None:
        if not event.picture:
            return await self._work.run(urgency, DRAWN_WITHIN_S, make_poster_art, event.poster_seed)
        body = await self._pictures.find(event.picture)
        return None if body is None else await self._work.run(urgency, DRAWN_WITHIN_S, make_art, body)

    def _end(self, key: str, task: "asyncio.Task[Art | None]") -> None:
        self._making.pop(key, None)
        if task.cancelled() or task.exception() is not None:
            return
        made = task.result()
        if made is not None:
            if len(self._kept) >= MAX_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = made
