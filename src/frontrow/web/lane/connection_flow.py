"""Back-pressure of one connection: who does not read its answers is not read either.

uvicorn's flow control stops writing when the client does not read, but reads on. A client that sends requests and never
reads an answer would fill the server's memory. Here a connection rests while its answers have not left, while an
earlier part of its input still waits to be parsed, and while uvicorn or the overload gate pauses it.
"""

import asyncio

from uvicorn.protocols.http.flow_control import FlowControl


class ConnectionFlow(FlowControl):
    """uvicorn's flow control of a connection, with every reason to rest in one place."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self.has_unparsed = self._resting = False

    def pause_reading(self) -> None:
        self.read_paused = True
        self._apply()

    def resume_reading(self) -> None:
        self.read_paused = False
        self._apply()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._apply()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._apply()

    def set_unparsed(self, waiting: bool) -> None:
        """Whether input that has arrived waits to be parsed."""
        self.has_unparsed = waiting
        self._apply()

    def _apply(self) -> None:
        rest = self.read_paused or self.write_paused or self.has_unparsed
        if rest is self._resting or self._transport.is_closing():
            return
        self._resting = rest
        if rest:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
