"""Back-pressure of one connection: a client that does not read its answers is not read either.

uvicorn stops writing when the client does not read, but goes on reading. A client that sends requests and never reads
an answer would fill the server's memory. Here a connection is read only while there is no reason to pause it.
"""

import asyncio


class ReadingPauses:
    """The reasons why a connection is not read at the moment. Set one, then call `apply`."""

    __slots__ = ("_paused", "_transport", "app", "shed", "unparsed", "writing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._paused = False
        self.app = False  # uvicorn pauses it: the app has not taken the body, or requests are queued
        self.writing = False  # answers have not left
        self.unparsed = False  # input that has arrived is put aside
        self.shed = False  # the overload gate refused its last request

    @property
    def any(self) -> bool:
        return self.app or self.writing or self.unparsed or self.shed

    def apply(self) -> None:
        """Pause or resume the transport."""
        paused = self.app or self.writing or self.unparsed or self.shed
        if paused is self._paused or self._transport.is_closing():
            return
        self._paused = paused
        if paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
