"""Connections of a server that was told to stop: whoever has sent a request, or is sending one, gets the answer.

uvicorn closes at once every connection it is not answering on. Here a request that is still arriving is let in, and an
idle connection is kept for a moment, because its next request may be on its way; each is closed with that answer. A
connection becomes another class only then, so it costs the hot lane nothing before.
"""

from typing import Any, Final

LINGER_S: Final = 0.5  # how long an idle connection may still bring a request
LOOK_EVERY_S: Final = 0.05


def leaving(protocol: type[Any]) -> type[Any]:
    """The lane's protocol class with this way of ending."""

    class Leaving(protocol):  # type: ignore[misc]
        """A connection whose next answer is its last."""

        def _write(self, answer: Any, keep_alive: bool) -> None:
            super()._write(answer, False)

        def _pass_on(self) -> None:
            super()._pass_on()
            if self.cycle is not None:
                self.cycle.keep_alive = False

        def shutdown(self) -> None:
            """Told already."""

        def leave(self, until_s: float) -> None:
            """Close when nothing is going on here any more; the server's drain and `request_within_s` bound it."""
            if self._gone or self.transport.is_closing():
                return
            if self.cycle is not None and not self.cycle.response_complete:
                self.cycle.keep_alive = False  # the answer under way closes the connection
            elif not self._in_head and self._handler is None and self.loop.time() >= until_s:
                self.transport.close()
                return
            self.loop.call_later(LOOK_EVERY_S, self.leave, until_s)

    class Staying(protocol):  # type: ignore[misc]
        """A connection of a server that goes on, until it does not."""

        def shutdown(self) -> None:
            """The server stops: finish what is on this connection, then close it."""
            self.__class__ = Leaving
            self.leave(self.loop.time() + LINGER_S)

    return Staying
