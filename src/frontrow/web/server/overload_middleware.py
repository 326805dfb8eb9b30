"""The overload gate around the framework: requests in flight, deadlines and latency of all that the app answers.

Admission is decided before (`web/guard/connection_guard.py`). A response that has not begun at its deadline becomes a
503. One that has begun may go on (a live stream, a long download), and a stream is no longer in flight.
"""

import asyncio
import logging
import time
from typing import Any, Final

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from frontrow.core.background_tasks import start_loop
from frontrow.web.guard.overload import OverloadGate, Rank, rank_of
from frontrow.web.guard.overload_watch import SLOW_NS, Watch
from frontrow.web.guard.route_metrics import OTHER
from frontrow.web.http.asgi import send_answer

APP: Final = "app"
WAITS_FOR_ROOM: Final = "page_enter"  # it waits for the waiting room on purpose: that is no sign of a queue here

log = logging.getLogger("frontrow.web")


class GuardedApp:
    """Put it around the app that uvicorn runs."""

    def __init__(self, app: ASGIApp, watch: Watch) -> None:
        self._app, self._watch, self._gate = app, watch, watch.gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._live(scope, receive, send)
            return
        rank = rank_of(scope["method"].encode(), scope.get("raw_path", b"") or scope["path"].encode())
        settings = self._gate.settings
        deadline = asyncio.timeout(settings.pay_deadline_s if rank >= Rank.PAY else settings.deadline_s)
        answer = _Answer(send, self._gate, deadline)
        try:
            async with deadline:
                await self._app(scope, receive, answer.send)
        except TimeoutError:
            if not deadline.expired() or answer.status:
                raise
            self._gate.late += 1
            await send_answer(self._watch.deadline_response, scope, answer.send)
        finally:
            answer.over()
            self._count(scope, rank, answer)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The app's lifespan, with the watch running beside it."""
        watching = start_loop(self._watch.run, "overload watch")
        try:
            await self._app(scope, receive, send)
        finally:
            watching.cancel()

    def _count(self, scope: Scope, rank: Rank, answer: "_Answer") -> None:
        handler: Any = scope.get("route_handler")
        route = getattr(handler, "operation_id", None) or OTHER
        ns = answer.took_ns or time.perf_counter_ns() - answer.began_ns
        self._watch.traffic.of(route if isinstance(route, str) else OTHER, APP).took(ns, answer.status or 500)
        if rank < Rank.PAY and route != WAITS_FOR_ROOM:
            self._gate.wait.saw(ns / 1e9)
        if answer.status >= 500 or ns > SLOW_NS:
            about = {"route": route, "status": answer.status, "took_ms": ns // 1_000_000}
            log.warning("slow or failed request", extra=about)


class _Answer:
    """What is seen of an answer as it goes out."""

    __slots__ = ("_deadline", "_gate", "_in_flight", "_send", "began_ns", "status", "took_ns")

    def __init__(self, send: Send, gate: OverloadGate, deadline: asyncio.Timeout) -> None:
        self._send, self._gate, self._deadline = send, gate, deadline
        self.began_ns, self.took_ns, self.status = time.perf_counter_ns(), 0, 0
        self._in_flight = True
        gate.began()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.took_ns = time.perf_counter_ns() - self.began_ns
            if not self._deadline.expired():
                self._deadline.reschedule(None)
            if any(value.startswith(b"text/event-stream") for name, value in message["headers"] if len(name) == 12):
                self.over()
        await self._send(message)

    def over(self) -> None:
        if self._in_flight:
            self._in_flight = False
            self._gate.ended()
