"""The list of events (B1), a page at a time: built once for everybody, cached briefly, 304 if the client has it.

A cached page is good until this process sees or makes a change of the catalogue, or for `CACHE_S` (seats are sold
meanwhile). The plain list is answered by the fast path; whoever shows a pass, a session or a token is counted as a
person, as everywhere. At most `MAX_CACHED` pages are cached, whatever is asked for.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from frontrow.boxoffice.events.event_listing import EventBrowser
from frontrow.boxoffice.events.model.event_search import EventSearch
from frontrow.core.errors import InvalidInput
from frontrow.web.endpoints.event_details import EventSummary, summary
from frontrow.web.http.messages import JSON, SHARED_CACHE, EndpointRequest, EndpointResponse, encode_json

CACHE_S: Final = 0.5
MAX_CACHED: Final = 200
CURSOR: Final = r"^([0-9]{1,16}\.[A-Za-z0-9_.-]{1,40})?$"


class EventPage(msgspec.Struct):
    """Some events in order of their start; `next` is the cursor of the following page."""

    events: list[EventSummary]
    next: str | None = None


class CachedPage(NamedTuple):
    version: int
    until_s: float
    tag: bytes
    answer: EndpointResponse


PLAIN: Final = EventSearch()


class EventLists:
    """The pages that were requested in the last moment."""

    def __init__(self, browse: EventBrowser, version: Callable[[], int]) -> None:
        self._browse, self._version = browse, version
        self._cached: dict[EventSearch, CachedPage] = {}
        self._building: dict[tuple[EventSearch, int], asyncio.Task[CachedPage]] = {}
        self.built = 0

    def ready(self, asked: EventSearch, request: EndpointRequest) -> EndpointResponse | None:
        """The answer, if it is cached."""
        cached = self._cached.get(asked)
        if cached is None or cached.version != self._version() or time.monotonic() >= cached.until_s:
            return None
        return _respond(cached, request)

    async def answer(self, asked: EventSearch, request: EndpointRequest) -> EndpointResponse:
        """The page, cached or built once for all concurrent requests."""
        ready = self.ready(asked, request)
        if ready is not None:
            return ready
        key = (asked, self._version())
        building = self._building.get(key)
        if building is None:
            building = self._building[key] = asyncio.create_task(self._build(*key), name="list of events")
            building.add_done_callback(lambda done: self._forget_task(key, done))
        return _respond(await asyncio.shield(building), request)

    def _forget_task(self, key: tuple[EventSearch, int], done: "asyncio.Task[CachedPage]") -> None:
        self._building.pop(key, None)
        if not done.cancelled():
            done.exception()  # retrieved, because the callers may have left

    async def _build(self, asked: EventSearch, version: int) -> CachedPage:
        page = await self._browse.search(asked)
        after = None if page.after is None else f"{page.after[0]}.{page.after[1]}"
        body = encode_json(EventPage([summary(one) for one in page.listings], after))
        tag = b'"' + hashlib.blake2s(body, digest_size=9).hexdigest().encode() + b'"'
        answer = EndpointResponse(200, JSON + SHARED_CACHE + b"etag: " + tag + b"\r\n", body)
        cached = CachedPage(version, time.monotonic() + CACHE_S, tag, answer)
        self.built += 1
        if len(self._cached) >= MAX_CACHED:
            self._cached.pop(next(iter(self._cached)))
        self._cached[asked] = cached
        return cached


def _respond(cached: CachedPage, request: EndpointRequest) -> EndpointResponse:
    given = request.header(b"if-none-match")
    if given is not None and cached.tag in given:
        return EndpointResponse(304, SHARED_CACHE + b"etag: " + cached.tag + b"\r\n")
    return cached.answer


def read_cursor(cursor: str) -> tuple[int, str]:
    """Where the page before ended."""
    if not cursor:
        return (-1, "")
    if not re.match(CURSOR, cursor):
        raise InvalidInput("this cursor is not valid; start without one", param="cursor")
    at_us, _, event_id = cursor.partition(".")
    return (int(at_us), event_id)
