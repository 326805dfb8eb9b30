"""A live stream behind the framework: the same events as on the fast path."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from litestar.types import Receive, Scope, Send

from frontrow.web.http.messages import EndpointResponse
from frontrow.web.http.takeover import TAKE_OVER, Takeover
from frontrow.web.streams.positions import STREAM_HEAD, Streams


class StreamApp:
    """An ASGI app that sends a reader's stream: the same events as the fast path's.

    Under our own protocol it only writes the head: then the connection is taken over as in the fast path, and the app
    ends. Else its task goes on, and a reader who does not take an event within `slow_s` is dropped.
    """

    def __init__(
        self,
        events: Callable[[], AsyncGenerator[bytes, None]],
        slow_s: float | None = None,
        takeover: Takeover | None = None,
    ) -> None:
        self._events, self._slow_s, self._takeover = events, slow_s, takeover

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = [(n.encode(), v.encode()) for n, v in EndpointResponse(200, STREAM_HEAD).headers()]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        offer: Any = (scope.get("extensions") or {}).get(TAKE_OVER)
        if self._takeover is not None and offer is not None and offer["call"](self._takeover):
            return
        writing = asyncio.ensure_future(self._write(send))
        try:
            while not writing.done():
                left = asyncio.ensure_future(receive())
                await asyncio.wait((left, writing), return_when=asyncio.FIRST_COMPLETED)
                gone = left.done() and left.result()["type"] == "http.disconnect"
                left.cancel()
                if gone:
                    break
        finally:
            writing.cancel()

    async def _write(self, send: Send) -> None:
        async with aclosing(self._events()) as events:  # a reader who left stops counting at once
            async for event in events:
                try:
                    async with asyncio.timeout(self._slow_s):
                        await send({"type": "http.response.body", "body": event, "more_body": True})
                except TimeoutError:
                    return
        await send({"type": "http.response.body", "body": b"", "more_body": False})  # the stream itself has ended


def stream_app(streams: Streams, address: str) -> StreamApp:
    """The stream of a room for a reader of this address."""
    return StreamApp(
        lambda: streams.events(address), takeover=Takeover(functools.partial(streams.take, address=address))
    )
