"""Who sends a request: passes, sessions, API keys and booking tokens, and which bookings are theirs.

They are read the same way on the fast path and behind the framework. Another person's booking answers 404.
"""

import contextlib
import zlib
from collections.abc import Collection

import msgspec

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.messages.mail_links import LinkPurpose
from frontrow.boxoffice.people.people import People
from frontrow.boxoffice.people.sessions import KEY_PREFIX, SESSION_PREFIX, Sessions
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError, Unauthorised
from frontrow.shared.cookie_headers import is_https
from frontrow.shared.derived_keys import Secrets
from frontrow.waitingroom.credentials.passes import MAX_PASS_CHARS, Pass
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits
from frontrow.waitingroom.ports import PlaceKey
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.room.visit_limits import VisitLimits
from frontrow.web.http.access import BOOKING_PREFIX, Caller, Presented, booking_of_token, caller_in, presented
from frontrow.web.http.csrf import (
    JSON_ONLY,
    HeaderLines,
    check_media_type,
    check_own_page,
    check_same_site,
    check_token,
)
from frontrow.web.http.messages import EndpointRequest


class Callers:
    """Reads the callers of requests: passes of `room`, sessions and API keys, booking tokens made with `secrets`."""

    def __init__(
        self,
        sessions: Sessions,
        room: WaitingRoom,
        limiter: EntranceLimits,
        secrets: Secrets,
        clock: Clock,
        public_url: str,
    ) -> None:
        self._sessions, self._room, self._limiter, self._secrets, self._clock = sessions, room, limiter, secrets, clock
        self._public_url = public_url

    async def identify(self, method: str, headers: HeaderLines, accepts: tuple[str, ...] = JSON_ONLY) -> Caller:
        """The caller, after the checks that every request must pass: it comes from our own pages or a program, its body
        has the right media type, and the person is within the limit."""
        check_same_site(method, headers, self._public_url)
        check_media_type(method, headers, accepts)
        caller = await self.find(method, headers)
        if caller.person:
            self._limiter.count_person(caller.person)
        return caller

    async def find(self, method: str, headers: HeaderLines) -> Caller:
        """What the request proves. A bad proof is ignored here, not an error."""
        given = presented(headers, secure=is_https(self._public_url))
        bookings, passes = [], []
        for token in given.tokens:
            if token.startswith(BOOKING_PREFIX):
                found = booking_of_token(self._secrets, token)
                if found is not None:
                    bookings.append(found)
            elif token and not token.startswith((SESSION_PREFIX, KEY_PREFIX)):
                passes.append(token)
        text = next(iter((*passes, *given.passes)), None)
        visit = self.read_pass(text) if text else None
        caller = await self._signed_in(method, headers, given)
        return self.with_pass(caller, visit, bookings)

    async def _signed_in(self, method: str, headers: HeaderLines, given: Presented) -> Caller:
        """The session or API key: from the bearer header, else from the cookie (which needs its CSRF token)."""
        bearers = [token for token in given.tokens if token.startswith((SESSION_PREFIX, KEY_PREFIX))]
        if len(bearers) > 1:
            raise Unauthorised("send one session or one API key, not several")
        if bearers and bearers[0].startswith(KEY_PREFIX):
            key = await self._sessions.find_key(bearers[0])
            if key is None:
                return Caller()
            return Caller("key", key.id, key.organiser_id, permissions=key.permissions(self._clock()))
        secret = bearers[0] if bearers else given.session_cookie
        session = await self._sessions.find(secret) if secret else None
        if session is None:
            return Caller()
        if not bearers:
            check_token(method, headers, secret)
        return caller_in(session)

    def with_pass(self, caller: Caller, visit: ShopPass | None, bookings: Collection[str]) -> Caller:
        """The caller with the pass and the booking tokens that came along."""
        ran_out = visit is not None and self._clock() >= visit.expires_at_us
        good, past = (None, visit) if ran_out else (visit, None)
        return msgspec.structs.replace(caller, shop_pass=good, past_pass=past, bookings=frozenset(bookings))

    def read_pass(self, text: str) -> ShopPass | None:
        """The pass, if it is genuine and its visit has not ended. It may have expired: `with_pass` checks that.
        Handlers that need a pass use `need_pass` or `OwnBookings.need_visit`, which say what is wrong."""
        if len(text) > MAX_PASS_CHARS:
            return None
        try:
            visit = self._room.visits.read_pass(text)
        except FrontrowError:  # not ours, or its visit ended
            return None
        return ShopPass(visit.event, visit.person, visit.expires_s * US_PER_S, visit.id, bool(visit.place.epoch))

    def visitor(self, headers: HeaderLines) -> Caller:
        """Whoever has the pass in this browser's cookies, the longest one: that much is known without any store."""
        passes = presented(headers, secure=is_https(self._public_url)).passes
        visits = [one for text in passes if (one := self.read_pass(text)) is not None]
        return self.with_pass(Caller(), max(visits, key=lambda one: one.expires_at_us, default=None), ())

    def need_pass(self, caller: Caller, event_id: str) -> ShopPass:
        """The caller's pass for this event, or 401 (B17). Counts as a sign of life of the visitor."""
        visit = caller.shop_pass
        if visit is None or visit.event_id != event_id:
            raise Unauthorised("a pass for this event is needed; join its waiting room", event=event_id)
        self._room.visits.hear(visit.id)
        return visit


class OwnBookings:
    """Loads bookings for the people they belong to."""

    def __init__(self, ledger: SqlLedger, people: People, purchases: Purchases, room: WaitingRoom) -> None:
        self._ledger, self._people, self._purchases, self._room = ledger, people, purchases, room

    async def find(self, caller: Caller, booking_id: str) -> Booking:
        """The booking, if it is the caller's."""
        booking = await self._ledger.booking(booking_id)
        if booking is None or not await self.may_change(caller, booking):
            raise BookingNotFound(booking_id)
        return booking

    def just_held(self, caller: Caller, booking_id: str, method: str) -> Booking | None:
        """A hold of the caller that can be paid without reading it again (`Purchases.just_held`): one whose booking
        token and pass came along, so that nothing about it must be looked up to know whose it is."""
        if booking_id not in caller.bookings or caller.shop_pass is None:
            return None
        return self._purchases.just_held(booking_id, method)

    async def find_seen(self, caller: Caller, booking_id: str) -> Booking:
        """The booking, if the caller may look at it: as its owner, or by a link from a message about it."""
        purposes = (LinkPurpose.BOOKING.value, LinkPurpose.PRIORITY.value)
        if any((purpose, booking_id) in caller.links for purpose in purposes):
            booking = await self._ledger.booking(booking_id)
            if booking is not None:
                return booking
        return await self.find(caller, booking_id)

    async def may_change(self, caller: Caller, booking: Booking) -> bool:
        """Whether the caller may change the booking, not only look at it."""
        if caller.owns(booking):
            return True
        return caller.kind == "fan" and await self._people.fans.owns_booking(caller.id, booking)

    def need_visit(self, caller: Caller, booking: Booking, fence: int | None = None) -> ShopPass:
        """The caller's visit for acting on this booking, or 401 (`Purchases.need_visit`). Counts as a sign of life."""
        visit = self._purchases.need_visit(booking, caller.shop_pass or caller.past_pass, fence)
        self._room.visits.hear(visit.id)
        return visit


class Passes:
    """Reads the passes of requests, and gives passes to who needs no place."""

    def __init__(self, room: WaitingRoom, limits: VisitLimits) -> None:
        self._room, self._limits = room, limits

    def count_and_read(self, event_id: str, request: EndpointRequest) -> ShopPass:
        """Count the request. The pass for this event that came with it, or 401 saying why not."""
        text, in_cookie = self._limits.find_pass(request)
        visit = self._limits.count_pass(text, request)
        if not text:
            raise Unauthorised("a pass for this event is needed; join its waiting room", event=event_id)
        if in_cookie:
            check_own_page(request)
        if visit is None or visit.event != event_id:
            visit = self._room.visits.check_pass(text, event_id)
        self._room.visits.hear_place(visit.event, visit.place)
        return ShopPass(visit.event, visit.person, visit.expires_s * US_PER_S, visit.id, bool(visit.place.epoch))

    async def end_bought(self, visit: ShopPass, purchases: Purchases) -> None:
        """End a visit of which the ledger says that it has bought its tickets, so that its visitor can come in again.

        Usually the box office has told the room already. It has not if the purchase took less than a second. Another
        hold of the same visit that is alive keeps it.
        """
        with contextlib.suppress(FrontrowError):  # the visit ends by itself, later
            if await purchases.held_by(visit.event_id, visit.fan) is None:
                await self._room.visits.end_visit(visit.id)

    def beside_the_line(self, event_id: str, person: str, why: str, since_us: int = 0) -> tuple[str, int]:
        """A pass for somebody who needs no place (an offer, priority) and when it ends; the same again is the same.

        `since_us`: when it was first asked for, where one pass is all there is; else it counts from now. Its place is
        of epoch 0, which no room has: renewing it is refused, giving it back ends it everywhere.
        """
        now_s = (since_us or self._room.clock()) // US_PER_S
        issued_s = now_s - now_s % 60
        ttl_s = self._room.control.view(event_id).state.config.pass_ttl_s + 60
        place = PlaceKey(0, 0, zlib.crc32(f"{person} {why} {issued_s}".encode()) & 0x3FFFFFFF)
        visit = Pass(event_id, person, place, issued_s, issued_s + ttl_s, issued_s)
        return self._room.passes.mint(visit), visit.expires_s
