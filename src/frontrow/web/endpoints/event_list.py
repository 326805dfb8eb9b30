"""The list of events (B1), a page at a time: built once for all who ask, cached briefly, 304 if the client has it.

A cached page is good until this process sees or makes a change of the catalogue, or for `KEPT_S` (seats are sold
meanwhile). The plain list is answered by the hot lane; whoever shows a pass, a session or a token is counted as a
person, as everywhere. At most `MAX_KEPT` pages are cached, whatever is asked for.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from frontrow.boxoffice.catalogue.event_listing import EventBrowser
from frontrow.boxoffice.model.event_search import EventSearch
from frontrow.core.errors import InvalidInput
from frontrow.web.endpoints.event_details import EventSummary, summary
from frontrow.web.endpoints.messages import JSON, Answer, Ask, encode_json

KEPT_S: Final = 0.5
MAX_KEPT: Final = 200
CURSOR: Final = r"^([0-9]{1,16}\.[A-Za-z0-9_.-]{1,40})?$"


class EventPage(msgspec.Struct):
    """Some events in order of their start; `next` is the cursor of the following page."""

    events: list[EventSummary]
    next: str | None = None


class _Kept(NamedTuple):
    version: int
    until_s: float
    tag: bytes
    answer: Answer


PLAIN: Final = EventSearch()


class EventLists:
    """Every page somebody asked for in the last moment."""

    def __init__(self, browse: EventBrowser, version: Callable[[], int]) -> None:
        self._browse, self._version = browse, version
        self._kept: dict[EventSearch, _Kept] = {}
        self._making: dict[tuple[EventSearch, int], asyncio.Task[_Kept]] = {}
        self.made = 0

    def ready(self, asked: EventSearch, ask: Ask) -> Answer | None:
        """The answer, if it is kept."""
        kept = self._kept.get(asked)
        if kept is None or kept.version != self._version() or time.monotonic() >= kept.until_s:
            return None
        return _told(kept, ask)

    async def answer(self, asked: EventSearch, ask: Ask) -> Answer:
        """The page, kept or made once for all who ask meanwhile."""
        ready = self.ready(asked, ask)
        if ready is not None:
            return ready
        key = (asked, self._version())
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.create_task(self._make(*key), name="list of events")
            making.add_done_callback(lambda done: self._over(key, done))
        return _told(await asyncio.shield(making), ask)

    def _over(self, key: tuple[EventSearch, int], done: "asyncio.Task[_Kept]") -> None:
        self._making.pop(key, None)
        if not done.cancelled():
            done.exception()  # looked at: whoever asked may have left

    async def _make(self, asked: EventSearch, version: int) -> _Kept:
        page = await self._browse.search(asked)
        after = None if page.after is None else f"{page.after[0]}.{page.after[1]}"
        body = encode_json(EventPage([summary(one) for one in page.listings], after))
        tag = b'"' + hashlib.blake2s(body, digest_size=9).hexdigest().encode() + b'"'
        answer = Answer(200, JSON + b"etag: " + tag + b"\r\n", body)
        kept = _Kept(version, time.monotonic() + KEPT_S, tag, answer)
        self.made += 1
        if len(self._kept) >= MAX_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[asked] = kept
        return kept


def _told(kept: _Kept, ask: Ask) -> Answer:
    given = ask.header(b"if-none-match")
    if given is not None and kept.tag in given:
        return Answer(304, b"etag: " + kept.tag + b"\r\n")
    return kept.answer


def read_cursor(cursor: str) -> tuple[int, str]:
    """Where the page before ended."""
    if not cursor:
        return (-1, "")
    if not re.match(CURSOR, cursor):
        raise InvalidInput("this cursor is not one of ours; begin without one", param="cursor")
    at_us, _, event_id = cursor.partition(".")
    return (int(at_us), event_id)
