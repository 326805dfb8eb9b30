"""A reply that keeps its connection: a live stream that goes on writing where uvicorn's protocol stops."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

TAKE_OVER: Final = "frontrow.take_over"  # the extension of an ASGI scope: its `call` accepts a `Takeover`, or is False


class Takeover:
    """A reply that keeps the connection: `take(transport, connections, lines)` returns the protocol that goes on.

    It writes the head with these `lines`; None means that the app behind the fast path has written the head already.
    That protocol keeps itself in uvicorn's set of connections and has `shutdown()`, which is all that uvicorn needs.
    """

    __slots__ = ("take",)

    def __init__(self, take: Callable[[asyncio.Transport, set[Any], bytes | None], asyncio.Protocol]) -> None:
        self.take = take
