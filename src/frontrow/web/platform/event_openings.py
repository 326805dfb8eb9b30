"""Opens events for sale on this server as the catalogue changes: the sale, its claims, its live map and its room.

A follower of the catalogue reports what an organiser published, paused or cancelled, on every server within a second.
Events that are over are closed some minutes later, with their feed, claims, room and caches.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from frontrow.boxoffice.events.catalogue_follower import POLL_EVERY_S, CatalogueFollower
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.events.ports import Catalogue
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sale, Sales
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.seats.event_map import map_bytes
from frontrow.boxoffice.seats.formats.plan_document import digest
from frontrow.boxoffice.seats.formats.plan_reader import decode_plan
from frontrow.boxoffice.seats.map.map_feed import FeedSettings, MapFeed
from frontrow.boxoffice.seats.map.seat_states import ClaimStates
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.boxoffice.seats.ports.seat_map import FrameLogs
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError
from frontrow.web.endpoints.event_details import MapFile

log = logging.getLogger("frontrow.openings")

SMALL_PLAN = 2_000  # seats; a plan of this size is prepared sooner than a thread would begin
KEEP_CLOSED_US = 600 * US_PER_S  # refunds of a cancelled event still need its sale

Watcher = Callable[[Event], Awaitable[None]]
Opened = Callable[[str, MapFeed | None], None]
Closed = Callable[[str], Awaitable[None]]
Prepared = TypeVar("Prepared")


def _draw(plan: Plan, event: Event) -> MapFile:
    body = map_bytes(plan, event)
    return MapFile(digest(body), body)


def _drawn_from(event: Event) -> tuple[Any, ...]:
    """What of an event its drawn map depends on."""
    return event.plan_hash, event.tiers


async def _prepare(plan: Plan, prepare: Callable[..., Prepared], *given: Any) -> Prepared:
    """The result of `prepare(*given)`, which takes long for a large plan: then in a thread."""
    if plan.size <= SMALL_PLAN:
        return prepare(*given)
    return await asyncio.to_thread(prepare, *given)


class Openings:
    """The events that this server sells."""

    def __init__(
        self,
        catalogue: Catalogue,
        sales: Sales,
        claims: SeatClaims,
        recovery: Recovery,
        clock: Clock,
        feeds: dict[str, MapFeed],
        logs: FrameLogs,
        *,
        feed_settings: FeedSettings | None = None,
        every_s: float = POLL_EVERY_S,
    ) -> None:
        self._catalogue, self._sales, self._claims, self._recovery = catalogue, sales, claims, recovery
        self._clock, self._feeds, self._logs = clock, feeds, logs
        self._feed_settings = feed_settings
        self.follower = CatalogueFollower(catalogue, self._sell, self._end, every_s=every_s)
        self._state_readers: dict[str, ClaimStates] = {}
        self._over: dict[str, int] = {}
        self._plans: dict[str, Plan] = {}
        self._watchers: list[Watcher] = []
        self._opened: list[Opened] = []
        self._closed: list[Closed] = []
        self.maps: dict[str, MapFile] = {}
        self.events: dict[str, Event] = {}  # every event that is or was sold here, as last seen

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` with every event that is opened or has changed, before it is sold. The room uses it."""
        self._watchers.append(watcher)

    def on_open(self, opened: Opened) -> None:
        """Call `opened` when an event's feed runs, and again without a feed when the event is closed."""
        self._opened.append(opened)

    def on_close(self, closed: Closed) -> None:
        """Call `closed` when an event is forgotten, to release what is cached of it."""
        self._closed.append(closed)

    async def refresh(self) -> None:
        """Make this server agree with the catalogue now."""
        await self.follower.sync()
        await self._close_ended()

    async def _sell(self, event: Event) -> None:
        self._over.pop(event.id, None)
        if self.events.get(event.id) != event:
            await self._open(event)

    async def _end(self, event_id: str, event: Event) -> None:
        """Sell nothing more; refunds and pages need the event for a while."""
        if event_id in self.events:
            self._over.setdefault(event_id, self._clock())
            await self._open(event)

    async def _open(self, event: Event) -> None:
        for watcher in self._watchers:
            await watcher(event)
        before = self.events.get(event.id)
        plan = await self._plan(event)
        self._claims.learn(event.id, plan)
        sale = await _prepare(plan, self._sales.open, event, plan)
        if before is None or event.id not in self.maps or _drawn_from(before) != _drawn_from(event):
            self.maps[event.id] = await _prepare(plan, _draw, plan, event)
        read_states = self._state_readers.get(event.id)
        if read_states is not None:
            read_states.update_event(event)
            if before is None or before.withheld != event.withheld:
                self._feeds[event.id].notify(range(plan.size))
        else:
            await self._recovery.check(event.id)
            await self._feed(event, plan, sale)
            if self.follower.has_begun:  # one line for all that are on sale at the start
                log.info("event opened", extra={"event_id": event.id, "seats": plan.size})
        self.events[event.id] = event

    async def _feed(self, event: Event, plan: Plan, sale: Sale) -> None:
        """Start the event's live map and put it before the public."""
        read_states = ClaimStates(self._claims, event, plan.size, self._clock, sale.seats)
        feed = MapFeed(
            plan.size,
            self._logs.log_of(event.id),
            read_states,
            self._feed_settings,
            on_changes=lambda states: feed.request_owners(sale.seats.apply_map_changes(states)),
            on_sync=lambda: sale.seats.trust_map(feed.ring.states, self._clock()),
        )
        await feed.start()
        self._state_readers[event.id], self._feeds[event.id] = read_states, feed
        for opened in self._opened:
            opened(event.id, feed)

    async def _plan(self, event: Event) -> Plan:
        plan = self._plans.get(event.plan_hash)
        if plan is None:
            document = await self._catalogue.plan_document(event.plan_hash)
            if document is None:
                raise FrontrowError(f"the plan of event {event.id} is missing")
            plan = self._plans[event.plan_hash] = await asyncio.to_thread(decode_plan, document.encode())
        return plan

    async def _close_ended(self) -> None:
        now_us = self._clock()
        for event_id, since_us in list(self._over.items()):
            if now_us - since_us < KEEP_CLOSED_US:
                continue
            del self._over[event_id]
            await self._close(event_id)

    async def _close(self, event_id: str) -> None:
        """Forget the event, here and wherever it is cached."""
        await self._stop_feed(event_id)
        self.events.pop(event_id, None)
        self._state_readers.pop(event_id, None)
        self._sales.close(event_id)
        self._claims.forget(event_id)
        self.maps.pop(event_id, None)
        for closed in self._closed:
            await closed(event_id)
        used = {event.plan_hash for event in self.events.values()}
        self._plans = {plan_hash: plan for plan_hash, plan in self._plans.items() if plan_hash in used}
        log.info("event closed", extra={"event_id": event_id})

    async def _stop_feed(self, event_id: str) -> None:
        feed = self._feeds.pop(event_id, None)
        if feed is not None:
            for opened in self._opened:
                opened(event_id, None)
            await feed.stop()

    async def run(self) -> None:
        """Follow the catalogue until cancelled."""
        await self.follower.run(self.refresh)

    async def aclose(self) -> None:
        await asyncio.gather(*(self._stop_feed(event_id) for event_id in list(self._feeds)))
        await self._logs.aclose()

    def __contains__(self, event_id: Any) -> bool:
        return event_id in self.events
