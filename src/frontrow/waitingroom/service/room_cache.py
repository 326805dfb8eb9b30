"""The cached rooms of one process: the last state read, the document made from it, and the last positions seen.

Statuses (`PlaceStatuses`) and the now-serving document are answered from this cache. `position_of` maps an arrival
number to its position after the draw.
"""

import asyncio
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontrow.waitingroom.credentials.now_serving import NowServing, document
from frontrow.waitingroom.credentials.places import Place, PlaceSigner
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model import draw
from frontrow.waitingroom.model.admission import admits_everybody
from frontrow.waitingroom.model.config import Phase
from frontrow.waitingroom.model.errors import PlaceInvalid, RoomUnknown
from frontrow.waitingroom.model.measurements import read_note
from frontrow.waitingroom.model.no_shows import expected_claims, grace_of, show_rate
from frontrow.waitingroom.model.place_status import RoomStatuses
from frontrow.waitingroom.model.results import PlaceStatus, RoomView
from frontrow.waitingroom.model.room_state import RoomState, raise_windows, windows_fell
from frontrow.waitingroom.model.wait_estimate import Reason
from frontrow.waitingroom.model.window import Window
from frontrow.waitingroom.ports import EndedVisit, PlaceKey

MAX_LISTENERS = 100_000
DRAWS_KEPT = 65_536
IDLE_AFTER_TURNS = 120  # turns of the loop without a visitor
PRUNE_S = 60
QUIET_US = 5_000_000  # a document that differs only in the last place issued may be this old
_HELD = {Phase.PAUSED: Reason.PAUSED, Phase.QUEUE_ALL: Reason.HELD, Phase.CLOSED: Reason.HELD}


class CachedRoom:
    """One room in the state that this process last read."""

    def __init__(self, event: str, state: RoomState, key: Ed25519PrivateKey, master_secret: bytes) -> None:
        self.event = event
        self.state = state
        self._shown = state  # with windows that are known from the audit only, while the store is away
        self._key = key
        self._master_secret = master_secret
        self._listeners: dict[object, Callable[[NowServing], None]] = {}
        self.issued = [lane.issued for lane in state.lanes]  # the last positions that the store issued
        self.shown = [0] * len(state.lanes)  # the highest position of any valid place presented
        self.ended: dict[PlaceKey, int] = {}  # visits that have ended -> when their pass expires
        self._ended_idle: set[PlaceKey] = set()  # those of them that ended because they were idle
        self.ended_no = 0  # the number of the last one read from the store
        self._ended_epoch = state.epoch
        self._ended_pruned_s = 0
        self.heard: dict[PlaceKey, int] = {}  # visits with activity since the last report -> when, by the store's clock
        self.heard_at_us = 0
        self.used = False  # a visitor asked about the room since the last turn of the loop
        self.unused_turns = IDLE_AFTER_TURNS  # a room is idle until somebody comes
        self.woken = asyncio.Event()  # ends the wait of an idle room's loop
        self.hurried = asyncio.Event()  # cuts the pause of the loop short
        self._core: object = None
        self._viewed: tuple[RoomState, str, RoomView | None] = (state, "", None)
        self._made_at_us = 0
        self.document = NowServing(b"", "")
        self.update(state)

    def use(self) -> None:
        """Note that a visitor asks about this room, so that it is not idle."""
        if not self.used:
            self.used = True
            self.woken.set()

    def hurry(self) -> None:
        """Make the loop take its next turn soon, because somebody could be admitted now."""
        self.use()
        self.hurried.set()

    def has_no_line(self, joining: int = 0) -> bool:
        """Whether the next slide would admit everybody who waits and `joining` more."""
        waiting = sum(max(0, last - lane.hi) for last, lane in zip(self.issued, self.state.lanes, strict=True))
        return admits_everybody(self.state, self.measured, waiting + joining)

    def is_empty(self) -> bool:
        """Whether nobody waits, nobody visits the shop and no activity is left to report, by the state last read."""
        state = self.state
        return not (state.active or state.knocking or self.heard or any(lane.waiting for lane in state.lanes))

    def is_busy(self) -> bool:
        """Whether somebody who joins now has to wait: more people come than the room admits, or it is not open. People
        whom the next slide takes along do not make a room busy."""
        return not self.has_no_line(joining=1)

    def update(self, state: RoomState) -> None:
        """Replace the state by a newer one. An older one is dropped: it was read before a slide that is known here, and
        its answer, or what was done with it, took longer. So is one with a window that fell: the store has lost slides,
        and the loop's next turn rebuilds it."""
        if (state.epoch, state.slide_no) < (self.state.epoch, self.state.slide_no):
            return
        if state.epoch == self.state.epoch and windows_fell(state, self.state):
            return
        before, self.state = self.state, state
        followed, self._shown = self._shown is not before, state
        if self._made_at_us and not followed and replace(state, now_us=before.now_us) == before:  # only time has passed
            if self._viewed[0] is before:
                self._viewed = state, *self._viewed[1:]
            return
        grown = len(state.lanes) - len(self.issued)
        self.issued += [0] * grown
        self.shown += [0] * grown
        for index, lane in enumerate(state.lanes):
            self.issued[index] = max(self.issued[index], lane.issued)
        if state.epoch != self._ended_epoch:  # rebuilt: ended visits are numbered from the beginning
            self._ended_epoch, self.ended_no = state.epoch, 0
        measured = read_note(state.note)
        self.measured = measured
        blank = (0,) * len(state.lanes)
        self.rates_milli = measured.shown_milli if len(measured.shown_milli) == len(blank) else blank
        self.reason = _HELD.get(state.phase) or Reason(measured.reason)
        self._draw_key = (state.beacon, tuple(lane.drawn for lane in state.lanes))
        self._show()

    def follow(self, windows: Sequence[Window]) -> None:
        """Show these windows, which the audit has, where they are further than those of the state last read. Nothing
        else believes them: the store decides who enters, and what it says next replaces them."""
        lanes = raise_windows(self._shown.lanes, windows)
        if lanes != self._shown.lanes:
            self._shown = replace(self.state, lanes=lanes)
            self._show()

    def _show(self) -> None:
        """Answer from the state to show, and publish it."""
        self._statuses = RoomStatuses(self.event, self._shown, self.rates_milli, self.reason)
        self._publish()

    def restart(self, state: RoomState) -> None:
        """Replace the state after a recovery. The last positions issued are those of the store."""
        self.issued = [lane.issued for lane in state.lanes]
        self.update(state)

    # -- ended visits -------------------------------------------------------------------------------------------------

    def end_visits(self, visits: Iterable[EndedVisit], now_s: int) -> None:
        """Refuse the passes of these visits until they expire."""
        for visit in visits:
            self.ended[visit.place] = max(visit.expires_s, self.ended.get(visit.place, 0))
            if visit.idle:
                self._ended_idle.add(visit.place)
        if now_s >= self._ended_pruned_s + PRUNE_S:
            self._ended_pruned_s = now_s
            self.ended = {place: expires_s for place, expires_s in self.ended.items() if expires_s > now_s}
            self._ended_idle &= self.ended.keys()

    def ended_idle(self, place: PlaceKey) -> bool:
        """Whether this visit ended because nobody was heard of while others waited."""
        return place in self._ended_idle

    def passed_on(self, place: PlaceKey) -> bool:
        """Whether this visit ended idle and somebody was admitted since (after the last visit that ended so)."""
        return place in self._ended_idle and self.state.admitted > self.state.admitted_at_idle_end

    # -- the document ------------------------------------------------------------------------------------------------

    def _publish(self) -> None:
        state = self._shown
        changed_us = max(state.held_at_us, state.ring[-1].at_us if state.ring else 0)
        core = (
            state.epoch,
            state.phase,
            tuple((x.lo, x.hi) for x in state.lanes),
            self.rates_milli,
            self.reason,
            state.message_no,
            changed_us,
        )
        if core == self._core and state.now_us - self._made_at_us < QUIET_US:
            return
        self._core = core
        self._made_at_us = state.now_us
        signed = document(
            self._key,
            self.event,
            state.epoch,
            state.phase,
            state.lanes,
            self.rates_milli,
            self.reason.value,
            changed_us // 1_000_000,
            state.message_no,
        )
        if signed.etag != self.document.etag:
            self.document = signed
            for listener in tuple(self._listeners.values()):
                listener(signed)

    def now_serving(self) -> NowServing:
        """The signed document, made when the state last changed."""
        self.use()
        return self.document

    def subscribe(self, listener: Callable[[NowServing], None]) -> Callable[[], None]:
        """Call `listener` with each new document, from the event loop. Returns how to stop it. It must not block."""
        if len(self._listeners) >= MAX_LISTENERS:
            raise RuntimeError(f"more than {MAX_LISTENERS} listeners to one room in one process")
        ticket = object()
        self._listeners[ticket] = listener
        return lambda: self._listeners.pop(ticket, None) and None

    # -- places ------------------------------------------------------------------------------------------------------

    def position_of(self, place: Place) -> int:
        """The position of a place: drawn if it came before the opening, else its arrival number."""
        if not 0 <= place.lane < len(self.state.lanes) or place.position < 1:
            raise PlaceInvalid("this place was not issued here; join to get one")
        drawn = self.state.lanes[place.lane].drawn
        if place.position > drawn:
            if place.position > self.shown[place.lane]:
                self.shown[place.lane] = place.position
            return place.position
        return self._drawn(self._draw_key, place.lane, place.position)

    @functools.lru_cache(maxsize=DRAWS_KEPT)  # noqa: B019  # as many entries as the process needs
    def _drawn(self, draw_key: object, lane: int, arrival: int) -> int:
        return self._draw(draw_key, lane).position_of(arrival)

    @functools.lru_cache(maxsize=64)  # noqa: B019
    def _draw(self, draw_key: object, lane: int) -> draw.Draw:
        state = self.state
        name = state.config.lanes[lane].name
        return draw.draw_of(self.draw_secret, self.event, name, state.lanes[lane].drawn, state.beacon)

    @property
    def draw_secret(self) -> bytes:
        return draw.secret_of(self._master_secret, self.event, self.state.config.draw_salt)

    def slide_of(self, lane: int, position: int) -> int:
        """The number of the slide that admitted this position; 0 if the ring no longer has it."""
        for slide in self.state.ring:
            if position <= slide.his[lane]:
                return slide.number
        return 0

    def status(self, place: Place) -> PlaceStatus:
        """The status of a place in the state last read."""
        self.use()
        return self._statuses.status(place.lane, self.position_of(place))

    def status_json(self, place: Place) -> bytes:
        """`status` as JSON, made faster."""
        if not self.used:
            self.use()
        lane_no, position = place.lane, place.position
        lanes = self.state.lanes
        if not 0 <= lane_no < len(lanes) or position <= lanes[lane_no].drawn or position > self.shown[lane_no]:
            position = self.position_of(place)  # only needed for a drawn place, or one beyond those seen before
        return self._statuses.status_json(lane_no, position)

    # -- organisers --------------------------------------------------------------------------------------------------

    def view(self, owner: str) -> RoomView:
        """The room for organisers and metrics, made once per state. `owner` is this process as a leader."""
        state, viewed_by, view = self._viewed
        if view is None or state is not self.state or viewed_by != owner:
            view = self._make_view(owner)
            self._viewed = self.state, owner, view
        return view

    def _make_view(self, owner: str) -> RoomView:
        state = self.state
        return RoomView(
            event=self.event,
            state=replace(state, note=""),
            waiting=sum(lane.waiting for lane in state.lanes),
            unclaimed=round(expected_claims(state, self.measured)),
            show_rate=show_rate(self.measured, grace_of(state)),
            rates_milli=self.rates_milli,
            leader=state.leader,
            is_leader=state.leader == owner,
            inflow=self.measured.inflow if state.config.max_p95_ms else None,
        )

    def draw_record(self) -> dict[str, object]:
        state = self.state
        lanes = [(rule.name, lane.drawn) for rule, lane in zip(state.config.lanes, state.lanes, strict=True)]
        opened = state.phase is not Phase.PREQUEUE
        return draw.record(self.draw_secret, self.event, lanes, state.beacon, opened=opened)


class RoomCache:
    """The cached rooms of one process by event."""

    def __init__(self, keys: RoomKeys) -> None:
        self._keys = keys
        self.rooms: dict[str, CachedRoom] = {}

    def is_busy(self, event: str) -> bool:
        """Whether somebody who joins this room now has to wait; an unknown room counts as busy."""
        room = self.rooms.get(event)
        return room is None or room.is_busy()

    def find(self, event: str) -> CachedRoom:
        """The cached room. Raises RoomUnknown."""
        room = self.rooms.get(event)
        if room is None:
            raise RoomUnknown(f"there is no waiting room for {event[:40]!r}", event=event[:40])
        return room

    def events(self) -> tuple[str, ...]:
        """The events whose rooms this process has."""
        return tuple(self.rooms)

    def update(self, event: str, state: RoomState) -> CachedRoom:
        """Cache a state just read, of a new or of a cached room."""
        room = self.rooms.get(event)
        if room is None:
            room = self.rooms[event] = CachedRoom(event, state, self._keys.document_key, self._keys.master_secret)
        else:
            room.update(state)
        return room

    def forget(self, event: str) -> bool:
        """Drop a room; False if it was not cached."""
        return self.rooms.pop(event, None) is not None


class PlaceStatuses:
    """Reads places. Every method raises PlaceInvalid, PlaceForeign or RoomUnknown."""

    def __init__(self, places: PlaceSigner, cache: RoomCache) -> None:
        self._places = places
        self._cache = cache
        self._rooms = cache.rooms

    def of(self, place_jwt: str, event: str | None = None) -> PlaceStatus:
        """The status of a place."""
        place = self._places.verify(place_jwt, event)
        return self._cache.find(place.event).status(place)

    def json_of(self, place_jwt: str, event: str | None = None) -> bytes:
        """The JSON body of `of`, made faster."""
        place = self._places.recent.get(place_jwt)
        if place is None or place.event != event:
            place = self._places.verify(place_jwt, event)
        return (self._rooms.get(place.event) or self._cache.find(place.event)).status_json(place)

    def key_of(self, place_jwt: str, event: str | None = None) -> PlaceKey:
        """The key of a place in the store."""
        place = self._places.verify(place_jwt, event)
        return PlaceKey(place.lane, place.epoch, self._cache.find(place.event).position_of(place))
