"""Opens events for sale on this server as the catalogue changes: the sale, its claims, its live map and its room.

The catalogue is looked at about twice a second, on every server, so that whatever an organiser publishes, pauses or
cancels takes effect everywhere within a second. Events that are over are closed after a while. A look is bounded; what
fails is tried again in the next.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from frontrow.boxoffice.feed.log import FrameLog
from frontrow.boxoffice.feed.service import FeedSettings, MapFeed
from frontrow.boxoffice.feed.truth import ClaimsTruth
from frontrow.boxoffice.model.events import Event, EventStatus
from frontrow.boxoffice.model.venues import Plan
from frontrow.boxoffice.plans.document import digest, map_bytes
from frontrow.boxoffice.plans.reading import from_bytes
from frontrow.boxoffice.ports import Catalogue, SeatClaims
from frontrow.boxoffice.services.recovery import Recovery
from frontrow.boxoffice.services.sales import Sales
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError

log = logging.getLogger("frontrow.openings")

SOLD_HERE = (EventStatus.ON_SALE, EventStatus.SOLD_OUT)
EVERY_S = 0.4
PAGE = 200
MAX_PAGES = 50
KEEP_CLOSED_US = 600 * US_PER_S  # refunds of a cancelled event still want its sale for a while

Watcher = Callable[[Event], Awaitable[None]]
Opened = Callable[[str, MapFeed | None], None]


class MapFile(msgspec.Struct, frozen=True):
    """The geometry viewers get, named by its hash."""

    hash: str
    body: bytes


def _draw(plan: Plan, event: Event) -> MapFile:
    body = map_bytes(plan, event)
    return MapFile(digest(body), body)


class Openings:
    """Which events this server sells."""

    def __init__(
        self,
        catalogue: Catalogue,
        sales: Sales,
        claims: SeatClaims,
        recovery: Recovery,
        clock: Clock,
        feeds: dict[str, MapFeed],
        make_log: Callable[[str], FrameLog],
        *,
        feed_settings: FeedSettings | None = None,
        every_s: float = EVERY_S,
    ) -> None:
        self._catalogue, self._sales, self._claims, self._recovery = catalogue, sales, claims, recovery
        self._clock, self._feeds, self._make_log = clock, feeds, make_log
        self._feed_settings, self._every_s = feed_settings, every_s
        self._truths: dict[str, ClaimsTruth] = {}
        self._over: dict[str, int] = {}
        self._plans: dict[str, Plan] = {}
        self._watchers: list[Watcher] = []
        self._opened: list[Opened] = []
        self._logs: dict[str, FrameLog] = {}
        self.maps: dict[str, MapFile] = {}
        self._looking = asyncio.Lock()
        self.events: dict[str, Event] = {}  # every event that is or was sold here, as last seen
        self.failures = 0
        self.last_error = ""

    def watch(self, watcher: Watcher) -> None:
        """Be called with every event that is opened or has changed, before it is sold; used by the room."""
        self._watchers.append(watcher)

    def on_open(self, opened: Opened) -> None:
        """Be called when an event's feed runs, and again without a feed when the event is closed."""
        self._opened.append(opened)

    async def look(self) -> None:
        """Make this server agree with the catalogue now."""
        async with self._looking:
            after = (-1, "")
            for _ in range(MAX_PAGES):
                page = await self._catalogue.events(None, after, PAGE)
                for event in page:
                    await self._see(event)
                if len(page) < PAGE:
                    break
                after = (page[-1].starts_at_us, page[-1].id)
            await self._close_the_over()

    async def _see(self, event: Event) -> None:
        known = self.events.get(event.id)
        if known is None and event.status not in SOLD_HERE:
            return
        if known is not None and event.status not in SOLD_HERE:
            self._over.setdefault(event.id, self._clock())
        if known == event:
            return
        try:
            await self._open(event)
        except FrontrowError as error:  # a store is away: the next look tries again
            self.failures += 1
            self.last_error = error.message
            log.warning("event not opened", extra={"event_id": event.id, "problem": error.code})

    async def _open(self, event: Event) -> None:
        for watcher in self._watchers:
            await watcher(event)
        plan = await self._plan(event)
        self._claims.learn(event.id, plan)
        sale = await asyncio.to_thread(self._sales.open, event, plan)
        self.maps[event.id] = await asyncio.to_thread(_draw, plan, event)
        truth = self._truths.get(event.id)
        if truth is not None:
            truth.changed(event)
            self._feeds[event.id].notify(range(plan.size))
        else:
            await self._recovery.check(event.id)
            truth = ClaimsTruth(self._claims, event, plan.size, self._clock, sale.seats.meet)
            self._logs[event.id] = self._make_log(event.id)
            feed = MapFeed(
                plan.size,
                self._logs[event.id],
                truth,
                self._feed_settings,
                on_changes=lambda states: feed.look(sale.seats.observe(states)),
                on_sync=lambda: sale.seats.follow(feed.ring.states, self._clock()),
            )
            await feed.start()
            self._truths[event.id], self._feeds[event.id] = truth, feed
            for opened in self._opened:
                opened(event.id, feed)
            log.info("event opened", extra={"event_id": event.id, "seats": plan.size})
        self.events[event.id] = event

    async def _plan(self, event: Event) -> Plan:
        plan = self._plans.get(event.plan_hash)
        if plan is None:
            document = await self._catalogue.plan_document(event.plan_hash)
            if document is None:
                raise FrontrowError(f"the plan of event {event.id} is missing")
            plan = self._plans[event.plan_hash] = await asyncio.to_thread(from_bytes, document.encode())
        return plan

    async def _close_the_over(self) -> None:
        now_us = self._clock()
        for event_id, since_us in list(self._over.items()):
            if now_us - since_us < KEEP_CLOSED_US:
                continue
            del self._over[event_id]
            await self._close(event_id)

    async def _close(self, event_id: str) -> None:
        self.events.pop(event_id, None)
        self._truths.pop(event_id, None)
        feed = self._feeds.pop(event_id, None)
        if feed is not None:
            for opened in self._opened:
                opened(event_id, None)
            await feed.stop()
        closing = getattr(self._logs.pop(event_id, None), "aclose", None)
        if closing is not None:
            await closing()
        self._sales.close(event_id)
        self.maps.pop(event_id, None)
        used = {event.plan_hash for event in self.events.values()}
        self._plans = {plan_hash: plan for plan_hash, plan in self._plans.items() if plan_hash in used}

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            with contextlib.suppress(FrontrowError):  # the ledger is away: nothing changes until it is back
                await self.look()
            await asyncio.sleep(self._every_s)

    async def aclose(self) -> None:
        for event_id in list(self._feeds):
            await self._close(event_id)

    def __contains__(self, event_id: Any) -> bool:
        return event_id in self.events
