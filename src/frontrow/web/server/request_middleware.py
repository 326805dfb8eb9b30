"""ASGI middleware before every route of the framework: a request id, the limit per visit or address, entity tags.

Routes that the fast path answers too count addresses themselves (`counts_itself`) and are let through. `X-Request-Id`
is taken over from a trusted proxy only; every other request gets a new one.
"""

import functools
import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from frontrow.boxoffice.request_reads import RequestReads, request_reads
from frontrow.core.errors import FrontrowError
from frontrow.limits import Decision
from frontrow.shared.local_time import time_text
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits, counted
from frontrow.web.http.asgi import send_answer
from frontrow.web.http.host_header import check_host
from frontrow.web.http.messages import EndpointRequest, EndpointResponse, header_line, problem_answer
from frontrow.web.http.overflow_page import ForPeople
from frontrow.web.http.request_ids import RequestIds, request_id

MAX_TAGGED_BYTES = 2 * 1024 * 1024


OnChange = Callable[[str], Awaitable[None]]


class Front:
    """The middleware; see the module."""

    def __init__(
        self,
        app: ASGIApp,
        entry: EntranceLimits,
        count: Callable[[EndpointRequest], None],
        ids: RequestIds,
        counts_itself: "re.Pattern[str]",
        allowed: Callable[[str], str],
        for_people: ForPeople | None = None,
        on_change: OnChange | None = None,
    ) -> None:
        self._app, self._entry, self._ids, self._counts_itself = app, entry, ids, counts_itself
        self._count = count  # by the visit or the address
        self._allowed = allowed  # the methods of a path, for OPTIONS
        self.for_people = for_people
        self._on_change = on_change  # an organiser's change is about to be answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        client = scope.get("client")
        peer = client[0] if client else ""
        headers = scope["headers"]
        own_id = self._ids.of(headers, peer)  # type: ignore[arg-type]
        request_id.set(own_id.decode())
        reads = RequestReads()
        request_reads.set(reads)
        noted: list[Decision] = []
        counted.set(noted)
        forwarded = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
        ip = self._entry.ip_of(peer, forwarded)
        tagged = _Tagged(scope, send, own_id, functools.partial(self._limit_headers, noted, ip), reads, self._on_change)
        try:
            if not self._counts_itself.fullmatch(scope["path"]):
                self._count(EndpointRequest(headers, b"", peer))  # type: ignore[arg-type]
            check_host(headers)  # type: ignore[arg-type]
        except FrontrowError as error:
            request = EndpointRequest(headers, b"", peer)  # type: ignore[arg-type]
            page = self.for_people(scope["method"], request, error) if self.for_people else None
            await send_answer(page or problem_answer(error), scope, tagged.send)
            return
        allowed = self._allowed(scope["path"]) if scope["method"] == "OPTIONS" else ""
        if allowed:
            await send_answer(EndpointResponse(204, header_line("allow", allowed)), scope, tagged.send)
        else:
            await self._app(scope, receive, tagged.send)

    def _limit_headers(self, noted: list[Decision], ip: str, status: int) -> list[tuple[bytes, bytes]]:
        """What clients are told about the tightest of the limits that counted this request."""
        return limit_fields(self._entry, noted, ip, status)


def limit_fields(entry: EntranceLimits, noted: list[Decision], ip: str, status: int) -> list[tuple[bytes, bytes]]:
    """The headers of the limits that counted a request. One that was refused before it was counted is counted here."""
    if not noted and status >= 400:
        noted.append(entry.count_refused(ip))
    return entry.headers.fields(noted) if noted else []


class _Tagged:
    """Adds the request id and the limits to a response, and an entity tag to the JSON response of a GET; 304 if the
    client has it."""

    def __init__(
        self,
        scope: Scope,
        send: Send,
        own_id: bytes,
        limit_headers: Callable[[int], list[tuple[bytes, bytes]]],
        reads: RequestReads,
        on_change: OnChange | None,
    ) -> None:
        self._reads, self._on_change = reads, on_change
        self._limit_headers = limit_headers
        self._get = scope["method"] in ("GET", "HEAD")  # type: ignore[typeddict-item]
        self._given = next((value for name, value in scope["headers"] if name == b"if-none-match"), None)
        self._send, self._id = send, own_id
        self._held: Any = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if self._reads.organiser_id and self._on_change is not None:
                await self._on_change(self._reads.organiser_id)
            told = ((b"x-request-id", self._id), *self._limit_headers(message["status"]), *_as_of(self._reads))
            message["headers"] = [*message.get("headers", ()), *told]
            if self._get and message["status"] == 200 and _taggable(message["headers"]):
                self._held = message
                return
        elif self._held is not None and message["type"] == "http.response.body":
            start, self._held = self._held, None
            body = message.get("body", b"")
            if not message.get("more_body") and len(body) <= MAX_TAGGED_BYTES and body:
                tag = b'"' + hashlib.blake2s(body, digest_size=9).hexdigest().encode() + b'"'
                start["headers"] = [*start["headers"], (b"etag", tag)]
                if self._given is not None and tag in self._given:
                    kept = [pair for pair in start["headers"] if pair[0] not in (b"content-length", b"content-type")]
                    start |= {"status": 304, "headers": kept}
                    message = {"type": "http.response.body", "body": b"", "more_body": False}
            await self._send(start)
        await self._send(message)


def _as_of(reads: RequestReads) -> list[tuple[bytes, bytes]]:
    """The moment that a replica showed; nothing if everything was read from the primary."""
    return [(b"frontrow-as-of", time_text(reads.as_of_us).encode())] if reads.as_of_us else []


def _taggable(headers: Any) -> bool:
    kind, tagged = b"", False
    for name, value in headers:
        low = name.lower()
        kind = value if low == b"content-type" else kind
        tagged = tagged or low == b"etag"
    return not tagged and kind.startswith(b"application/json")
