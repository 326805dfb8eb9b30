"""The states of an event's seats: the snapshot of the map, its stream and its polling."""

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.core.errors import FrontrowError, InvalidInput, NotFound
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits
from frontrow.web.endpoints.room.visit_limits import ip_of
from frontrow.web.http.messages import NO_STORE, EndpointRequest, EndpointResponse, header_line, problem_answer
from frontrow.web.http.takeover import Takeover
from frontrow.web.streams.seat_map import SeatStreams

POSITION = r"^([0-9]{1,19}-[0-9]{1,19})?$"
OCTETS = b"content-type: application/octet-stream\r\ncache-control: no-cache\r\n"
EVENTS = b"content-type: text/event-stream\r\n" + NO_STORE


class SeatMapEndpoints:
    """The live maps of every event of this process."""

    def __init__(
        self,
        feeds: dict[str, MapFeed],
        streams: dict[str, SeatStreams],
        entry: EntranceLimits,
        count: Callable[[EndpointRequest], None],
    ) -> None:
        """`count` counts a request by its visit or its address."""
        self._feeds, self.streams, self._entry, self._count = feeds, streams, entry, count

    def seats_bin(self, event_id: str, request: EndpointRequest) -> EndpointResponse:
        """GET seats.bin: the snapshot, encoded once for everybody; 304 for who has it."""
        try:
            self._count(request)
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
            self._count(request)
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
        at, address, streams = position(request), ip_of(self._entry, request), self.streams[event_id]
        return Takeover(lambda transport, open_, lines: streams.take(transport, open_, lines, at, address))

    async def follow(self, event_id: str, request: EndpointRequest) -> AsyncGenerator[bytes, None]:
        """The same stream where no connection can be taken over, after `stream`."""
        caps, address = self.streams[event_id].caps, ip_of(self._entry, request)
        caps.add(address)
        try:
            async with aclosing(self._feed(event_id).follow(*position(request))) as frames:
                async for frame in frames:
                    yield frame
        finally:
            caps.remove(address)

    def stream_refusal(self, event_id: str, request: EndpointRequest) -> EndpointResponse | None:
        """None when there is room for one more viewer; else 404, or 503 with when to come again and where to poll."""
        address = ip_of(self._entry, request)
        try:
            self._count(request)
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
