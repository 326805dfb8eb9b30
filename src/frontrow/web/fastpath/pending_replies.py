"""What the fast path's handlers answer, and what stands in for a reply that is still being made."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from frontrow.web.http.messages import EndpointRequest, EndpointResponse, FutureResponse, PendingResponse
from frontrow.web.http.takeover import Takeover

if TYPE_CHECKING:
    from frontrow.web.guard.overload_watch import WaitingReply, Watch

PLAIN_ERROR = EndpointResponse(
    500, b"content-type: text/plain\r\ncache-control: no-store\r\n", b"Internal Server Error"
)

log = logging.getLogger("frontrow.web.fastpath.protocol")


Reply = EndpointResponse | Takeover
Handler = Callable[[EndpointRequest], "Reply | PendingResponse | FutureResponse | Awaitable[Reply]"]
Routes = Mapping[tuple[bytes, bytes], Handler]
Shapes = Callable[[bytes, bytes], "Handler | None"]


def shapes_of(routes: Routes) -> Any:
    """How a table finds addresses with a parameter, if it has any."""
    found = getattr(routes, "shaped", None)
    return staticmethod(found) if found is not None else None


class Connection(Protocol):
    """What a pending reply needs of its connection."""

    def logged_id(self) -> str: ...

    def write_late(self, reply: Reply, keep_alive: bool) -> None: ...


class PendingReply:
    """Stands where uvicorn keeps its cycle while a hot reply is being made, so that pipelined requests queue behind it.

    With a `watch` the reply counts as in flight and has a deadline; whichever comes first, the reply or the deadline,
    answers. `line` is the watch's list of waiting replies that this one belongs to.
    """

    __slots__ = (
        "_began_s",
        "_connection",
        "_future",
        "_line",
        "_make",
        "_watch",
        "disconnected",
        "keep_alive",
        "response_complete",
    )

    def __init__(
        self,
        connection: Connection,
        keep_alive: bool,
        future: "asyncio.Future[Any] | None" = None,
        watch: "Watch | None" = None,
        line: "dict[WaitingReply, float] | None" = None,
        make: "Callable[[asyncio.Future[Any]], Reply] | None" = None,
    ) -> None:
        self._connection, self._future, self._make = connection, future, make
        self._watch, self._line = watch, line
        self.keep_alive = keep_alive
        self.response_complete = False
        self.disconnected = False
        if watch is not None and line is not None:
            line[self] = self._began_s = time.monotonic()
            watch.gate.began()

    @property
    def message_event(self) -> "PendingReply":
        return self

    def set(self) -> None:
        """uvicorn wakes a waiting app by this; nobody waits here."""

    def done(self, future: "asyncio.Future[Any]") -> None:
        """The reply is there, or an error in its place. The caller may have left, or heard of the deadline."""
        if self._line is not None and not self._end_wait():
            if not future.cancelled():
                future.exception()  # retrieved, so that asyncio does not report it as forgotten
            return
        try:
            reply = future.result() if self._make is None else self._make(future)
        except (Exception, asyncio.CancelledError):
            log.exception("a hot handler failed", extra={"request_id": self._connection.logged_id()})
            reply = PLAIN_ERROR
        self.arrived(reply)

    def made(self, reply: Reply) -> None:
        """The reply is there. The caller may have heard of the deadline."""
        if self._line is None or self._end_wait():
            self.arrived(reply)

    def arrived(self, reply: Reply) -> None:
        """Write the reply, unless the caller has left."""
        self.response_complete = True
        if not self.disconnected:
            self._connection.write_late(reply, self.keep_alive)

    def expire(self) -> None:
        """Give up waiting. The work is cancelled if it is a task of its own, or an attempt to hold seats."""
        watch = self._watch
        if watch is None or not self._end_wait():
            return
        watch.gate.late += 1
        if self._future is not None and (self._make is not None or isinstance(self._future, asyncio.Task)):
            self._future.cancel()
        self.arrived(watch.deadline_response)

    def _end_wait(self) -> bool:
        """Stop counting this reply as in flight; False if it was ended before."""
        watch, line = self._watch, self._line
        assert watch is not None and line is not None  # noqa: PT018
        if line.pop(self, None) is None:
            return False
        watch.gate.ended()
        if line is watch.waiting:
            watch.gate.wait.saw(time.monotonic() - self._began_s)
        return True
