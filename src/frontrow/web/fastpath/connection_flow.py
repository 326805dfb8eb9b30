"""uvicorn's flow control of a connection, which pauses reading for the guard's reasons too."""

import asyncio

from uvicorn.protocols.http.flow_control import FlowControl

from frontrow.web.guard.reading_pauses import ReadingPauses


class ConnectionFlow(FlowControl):
    """Pauses and resumes reading through `pauses`, and does not read while answers have not left."""

    def __init__(self, transport: asyncio.Transport, pauses: ReadingPauses) -> None:
        super().__init__(transport)
        self.pauses = pauses

    def pause_reading(self) -> None:
        self.read_paused = self.pauses.app = True
        self.pauses.apply()

    def resume_reading(self) -> None:
        self.read_paused = self.pauses.app = False
        self.pauses.apply()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.pauses.writing = True
        self.pauses.apply()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.pauses.writing = False
        self.pauses.apply()
