"""The ports of the live map: the log that numbers its frames for all servers, and who caches the owners of seats."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from frontrow.boxoffice.holds.model.claims import TakenSeat
from frontrow.boxoffice.seats.model.map_format import Frame


class Exchange(NamedTuple):
    """The last number of the log, and the frames the caller missed; None when the log no longer has them."""

    epoch: int
    seq: int
    frames: tuple[Frame, ...] | None


class FrameLog(Protocol):
    """The numbered frames of one event.

    - The n-th frame of an epoch has seq n and prev n-1, whoever appends it, also with many callers at once.
    - A log that lost its content begins a new epoch, greater than all before.
    """

    async def exchange(self, body: str, epoch: int, seq: int) -> Exchange:
        """Append `body` unless it is empty. Then return all frames after (epoch, seq), including its own; None when the
        epoch differs, the log no longer reaches back, or `seq` is not in it. One atomic step, so every server sees the
        same order."""
        ...

    async def listen(self, on_frame: Callable[[Frame], None], on_ready: Callable[[], None]) -> None:
        """Call back for each frame appended after it began, in order, possibly missing some, until cancelled. Raises
        when the connection is lost."""
        ...


class FrameLogs(Protocol):
    """The frame logs of all events, over shared connections."""

    def log_of(self, event_id: str) -> FrameLog: ...

    async def aclose(self) -> None: ...


class OwnerCache(Protocol):
    """Caches the owners of seats while it wants them."""

    @property
    def wants_owners(self) -> bool: ...

    def add_owners(self, taken: Iterable[TakenSeat], now_us: int) -> None: ...
