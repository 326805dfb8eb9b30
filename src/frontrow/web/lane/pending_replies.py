"""What the hot lane's handlers answer, and what stands in for an answer that is still being made."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from frontrow.web.endpoints.messages import Answer, Arriving, Ask, Later

PLAIN_ERROR = Answer(500, b"content-type: text/plain\r\ncache-control: no-store\r\n", b"Internal Server Error")

log = logging.getLogger("frontrow.web.lane.protocol")


class Takeover:
    """An answer that keeps the connection: `take(transport, connections, lines)` returns the protocol that goes on.

    That protocol keeps itself in uvicorn's set of connections and has `shutdown()`, which is all uvicorn asks for.
    """

    __slots__ = ("take",)

    def __init__(self, take: Callable[[asyncio.Transport, set[Any], bytes], asyncio.Protocol]) -> None:
        self.take = take


Reply = Answer | Takeover
Handler = Callable[[Ask], "Reply | Later | Arriving | Awaitable[Reply]"]
Finish = Callable[["asyncio.Future[Any]"], Reply]
Routes = Mapping[tuple[bytes, bytes], Handler]
Shapes = Callable[[bytes, bytes], "Handler | None"]
RequestId = Callable[[Sequence[tuple[bytes, bytes]], str], bytes]


def shapes_of(routes: Routes) -> Any:
    """How a table finds addresses with a parameter, if it has any."""
    found = getattr(routes, "shaped", None)
    return staticmethod(found) if found is not None else None


def result_of(done: "asyncio.Future[Reply]") -> Reply:
    """The plain way to finish: the future's own result."""
    return done.result()


class Answering(Protocol):
    """What a pending answer needs of the lane."""

    def known_id(self) -> str: ...

    def answer_late(self, reply: Reply, keep_alive: bool) -> None: ...


class Pending:
    """Stands where uvicorn keeps its cycle while a hot answer is being made, so pipelined requests queue behind it."""

    __slots__ = ("_finish", "_protocol", "disconnected", "keep_alive", "response_complete")

    def __init__(self, protocol: "Answering", keep_alive: bool, finish: "Finish | None" = None) -> None:
        self._protocol = protocol
        self._finish = finish
        self.keep_alive = keep_alive
        self.response_complete = False
        self.disconnected = False

    @property
    def message_event(self) -> "Pending":
        return self

    def set(self) -> None:
        """uvicorn wakes a waiting app by this; nobody waits here."""

    def done(self, future: "asyncio.Future[Any]") -> None:
        """The answer is there, or an error in its place; whoever asked may have left."""
        try:
            assert self._finish is not None
            reply = self._finish(future)
        except (Exception, asyncio.CancelledError):
            log.exception("a hot handler failed", extra={"request_id": self._protocol.known_id()})
            reply = PLAIN_ERROR
        self.response_complete = True
        if not self.disconnected:
            self._protocol.answer_late(reply, self.keep_alive)

    def arrived(self, answer: Answer) -> None:
        """The answer came without a future."""
        self.response_complete = True
        if not self.disconnected:
            self._protocol.answer_late(answer, self.keep_alive)
