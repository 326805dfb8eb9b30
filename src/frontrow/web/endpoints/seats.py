"""What both doors answer about seats: holds, the snapshot of the map, its stream and its polling.

Each method turns an `EndpointRequest` into an `EndpointResponse` and knows no framework. Each shop call is counted by
address and by person and needs a pass (B17). A hopeless attempt is refused from this server's memory, without a task
(N2).
"""

import asyncio
import functools
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Annotated

import msgspec

from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.holds.attempt import HoldResult
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.holds.model.hold_values import Hold, ShopPass
from frontrow.boxoffice.holds.model.holds import SeatsTaken, VisitEnded
from frontrow.boxoffice.holds.model.requested_seats import MAX_SEATS_PER_REQUEST, Wish
from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.core.background_tasks import start_task
from frontrow.core.errors import FrontrowError, InvalidInput, NotFound
from frontrow.waitingroom.entrance.entrance_limits import EntranceLimits
from frontrow.web.endpoints.json_values import MoneyView, Time, time_text
from frontrow.web.endpoints.messages import (
    NO_STORE,
    EndpointRequest,
    EndpointResponse,
    FutureResponse,
    header_line,
    idempotency_key,
    json_answer,
    problem_answer,
)
from frontrow.web.endpoints.passes import Passes
from frontrow.web.endpoints.price_lines import PriceLineView, line_views
from frontrow.web.endpoints.room_bodies import check_size, decode_body
from frontrow.web.endpoints.room_context import Result
from frontrow.web.lane.pending_replies import Takeover
from frontrow.web.streams.seat_map import SeatStreams

MAX_READY = 200_000
POSITION = r"^([0-9]{1,19}-[0-9]{1,19})?$"
OCTETS = b"content-type: application/octet-stream\r\ncache-control: no-cache\r\n"
EVENTS = b"content-type: text/event-stream\r\n" + NO_STORE
SeatName = Annotated[str, msgspec.Meta(min_length=1, max_length=60, examples=["S-A-14"])]
SectionName = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
Minor = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]


class BestWish(msgspec.Struct, forbid_unknown_fields=True):
    """What "best available" should find."""

    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_SEATS_PER_REQUEST, examples=[2])]
    sections: Annotated[list[SectionName], msgspec.Meta(max_length=50)] = []
    min_price_minor: Minor = 0
    max_price_minor: Minor | None = None
    step_free: bool = False
    restricted_view_ok: bool = False
    standing: bool = False
    apart_ok: bool = False

    def wish(self) -> Wish:
        return Wish(
            self.count,
            tuple(self.sections),
            self.min_price_minor,
            self.max_price_minor,
            self.step_free,
            self.restricted_view_ok,
            self.standing,
            self.apart_ok,
        )


class HoldBody(msgspec.Struct, forbid_unknown_fields=True):
    """Either the seats, or what the best seats should be like.

    `replace`: instead of the seats that this visitor holds already, in one step. If that is refused, they keep those.
    """

    seats: Annotated[
        list[SeatName], msgspec.Meta(max_length=MAX_SEATS_PER_REQUEST, examples=[["S-A-14", "S-A-15"]])
    ] = []
    best: BestWish | None = None
    replace: bool = False


class HoldView(msgspec.Struct):
    """A hold as its fan sees it; `booking_token` is the key to everything about this booking."""

    booking: Annotated[str, msgspec.Meta(examples=["bkg_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"])]
    event: str
    seats: list[str]
    amount: MoneyView
    expires_at: Time
    fence: int
    booking_token: str
    repeated: bool = False
    lines: list[PriceLineView] = []


_decode_hold = msgspec.json.Decoder(HoldBody).decode


class ShopEndpoints:
    """The seats of every event of this process."""

    def __init__(
        self,
        holds: HoldService,
        feeds: dict[str, MapFeed],
        streams: dict[str, SeatStreams],
        entry: EntranceLimits,
        passes: Passes,
        token_of: Callable[[str], str],
        purchases: Purchases,
    ) -> None:
        self._purchases = purchases
        self._holds, self._feeds, self.streams, self._entry, self._passes = holds, feeds, streams, entry, passes
        self._token_of = token_of
        self._ready: dict[SeatsTaken, EndpointResponse] = {}  # encoded answers to attempts on taken seats

    # -- holds -------------------------------------------------------------------------------------------------------

    def hold(self, event_id: str, request: EndpointRequest) -> Result:
        """POST holds: these seats, or the best that fit, for the owner of the pass."""
        try:
            self._entry.count_ip(self._ip(request))
            shop_pass = self._passes.of(event_id, request)
            self._entry.count_person(shop_pass.fan)
            check_size(request)
            body = decode_body(_decode_hold, request.body)
            if bool(body.seats) == (body.best is not None):
                raise InvalidInput("name the seats, or say what the best should be like", param="seats")
            if body.best is None:
                refusal = self._holds.refusal(event_id, shop_pass, body.seats)
                if refusal is not None:
                    return self._refused(refusal)
            key = idempotency_key(request)
            if body.best is not None or body.replace:
                return self._choose(event_id, shop_pass, body, key)
            attempt = self._holds.attempt(event_id, shop_pass, body.seats, idempotency_key=key)
        except FrontrowError as error:
            return problem_answer(error)
        if isinstance(attempt, SeatsTaken):
            return self._refused(attempt)
        return FutureResponse(attempt, functools.partial(self._attempted, shop_pass))

    async def _choose(self, event_id: str, shop_pass: ShopPass, body: HoldBody, key: str | None) -> EndpointResponse:
        wish = body.best.wish() if body.best is not None else None
        try:
            if body.replace or wish is None:
                hold = await self._purchases.place_or_change(event_id, shop_pass, body.seats, wish)
            else:
                hold = await self._holds.place_best(event_id, shop_pass, wish, idempotency_key=key)
        except VisitEnded as error:
            await self._passes.end_bought(shop_pass, self._purchases)
            return problem_answer(error)
        except FrontrowError as error:
            return problem_answer(error)
        return self._placed(hold)

    def _attempted(self, shop_pass: ShopPass, attempt: "asyncio.Future[HoldResult]") -> EndpointResponse:
        """The answer to an attempt that has ended."""
        try:
            result = attempt.result()
        except VisitEnded as error:
            start_task(self._passes.end_bought(shop_pass, self._purchases), "visits that have bought")
            return problem_answer(error)
        except FrontrowError as error:
            return problem_answer(error)
        return problem_answer(result) if isinstance(result, SeatsTaken) else self._placed(result)

    def _placed(self, hold: Hold) -> EndpointResponse:
        head = b"idempotent-replayed: true\r\n" if hold.repeated else b""
        return json_answer(201, self.view(hold), header_line("location", f"/v1/bookings/{hold.booking_id}") + head)

    def view(self, hold: Hold) -> HoldView:
        return HoldView(
            hold.booking_id,
            hold.event_id,
            list(hold.seats),
            MoneyView(hold.amount_minor, hold.currency),
            time_text(hold.expires_at_us),
            hold.fence,
            self._token_of(hold.booking_id),
            hold.repeated,
            line_views(hold.lines, dict(zip(hold.indexes, hold.seats, strict=True)), hold.currency),
        )

    def _refused(self, refusal: SeatsTaken) -> EndpointResponse:
        ready = self._ready.get(refusal)
        if ready is None:
            ready = problem_answer(refusal)
            if len(refusal.seats) == 1:  # one object for everybody who asks for this seat
                if len(self._ready) >= MAX_READY:
                    self._ready.clear()
                self._ready[refusal] = ready
        return ready

    # -- the map -----------------------------------------------------------------------------------------------------

    def seats_bin(self, event_id: str, request: EndpointRequest) -> EndpointResponse:
        """GET seats.bin: the snapshot, encoded once for everybody; 304 for who has it."""
        try:
            self._entry.count_ip(self._ip(request))
            feed = self._feed(event_id)
        except FrontrowError as error:
            return problem_answer(error)
        tag = b'"%d-%d"' % (feed.ring.epoch, feed.ring.seq)
        head = OCTETS + b"etag: " + tag + b"\r\n"
        given = request.header(b"if-none-match")
        if given is not None and tag in given:
            return EndpointResponse(304, head)
        return EndpointResponse(200, head, feed.snapshot())

    def poll(self, event_id: str, request: EndpointRequest) -> EndpointResponse:
        """GET seats/poll?after=…: the frames since then, as a stream would have sent them; for who gets no stream."""
        try:
            self._entry.count_ip(self._ip(request))
            feed = self._feed(event_id)
            epoch, seq = position(request)
        except FrontrowError as error:
            return problem_answer(error)
        body = feed.ring.since(epoch, seq)
        head = EVENTS + b"retry-after: 2\r\n"
        return EndpointResponse(200, head + header_line("frontrow-seats", f"{feed.ring.epoch}-{feed.ring.seq}"), body)

    def stream(self, event_id: str, request: EndpointRequest) -> EndpointResponse | Takeover:
        """GET seats/stream: a refusal, or the connection is taken over."""
        refusal = self.stream_refusal(event_id, request)
        if refusal is not None:
            return refusal
        at, address, streams = position(request), self._ip(request), self.streams[event_id]
        return Takeover(lambda transport, open_, lines: streams.take(transport, open_, lines, at, address))

    async def follow(self, event_id: str, request: EndpointRequest) -> AsyncGenerator[bytes, None]:
        """The same stream where no connection can be taken over, after `stream`."""
        caps, address = self.streams[event_id].caps, self._ip(request)
        caps.add(address)
        try:
            async with aclosing(self._feed(event_id).follow(*position(request))) as frames:
                async for frame in frames:
                    yield frame
        finally:
            caps.remove(address)

    def stream_refusal(self, event_id: str, request: EndpointRequest) -> EndpointResponse | None:
        """None when there is room for one more viewer; else 404, or 503 with when to come again and where to poll."""
        address = self._ip(request)
        try:
            self._entry.count_ip(address)
            self._feed(event_id)
            position(request)
        except FrontrowError as error:
            return problem_answer(error)
        streams = self.streams.get(event_id)
        open_now = sum(len(one) for one in self.streams.values())
        own_full = streams is not None and streams.caps.is_full(address)
        if streams is not None and open_now < streams.max_open and not own_full:
            return None
        full = StreamsFull(
            f"{'your address has as many streams as it may' if own_full else f'{open_now} viewers are connected'}; "
            "poll instead",
            retry_after_s=streams.retry_after_s() if streams else 1.0,
            poll=f"/v1/events/{event_id}/seats/poll",
        )
        return problem_answer(full)

    def _feed(self, event_id: str) -> MapFeed:
        feed = self._feeds.get(event_id)
        if feed is None:
            raise NotFound(f"event {event_id[:60]!r} has no live map here", event=event_id[:60])
        feed.use()
        return feed

    def _ip(self, request: EndpointRequest) -> str:
        if self._entry.trusts_nobody:
            return self._entry.ip_of(request.peer)
        return self._entry.ip_of(request.peer, [value.decode("latin-1") for value in request.all(b"x-forwarded-for")])


class StreamsFull(FrontrowError):
    """No more live connections on this server; the same frames can be polled."""

    code = "streams_full"
    http_status = 503


def position(request: EndpointRequest) -> tuple[int, int]:
    """(epoch, seq) a viewer has: `Last-Event-ID`, else `?after=`, both `<epoch>-<seq>`; (0, 0) at the beginning."""
    text = request.header(b"last-event-id") or b""
    if not text:
        text = next((part[6:] for part in request.query.split(b"&") if part.startswith(b"after=")), b"")
    if not text:
        return 0, 0
    epoch, _, seq = text.partition(b"-")
    if not re.match(POSITION, text.decode("latin-1")):
        raise InvalidInput("a position is <epoch>-<seq>, as the last event's id says", param="after")
    return int(epoch), int(seq)
