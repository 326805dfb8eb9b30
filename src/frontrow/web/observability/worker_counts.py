"""What the other workers counted, so that `/metrics` of any of them shows the sum.

Each worker writes its counters to a small file of its own every second; a scrape adds the others' files to its own
numbers. The totals of a worker that died stay in the sum, its open streams do not.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from frontrow.waitingroom.service.metrics import OtherCounts

WRITE_EVERY_S = 1.0
FRESH_S = 10.0


class Counting(Protocol):
    """What is written: the endpoints."""

    @property
    def room(self) -> Any: ...

    @property
    def counts(self) -> Mapping[str, int]: ...

    @property
    def streams(self) -> Mapping[str, Any]: ...


class SharedCounts:
    """One worker's file among its siblings' in `folder`."""

    def __init__(self, folder: str | Path, counting: Counting) -> None:
        self._folder = Path(folder)
        self._path = self._folder / f"counts-{os.getpid()}.json"
        self._counting = counting

    @staticmethod
    def clear(folder: str | Path) -> None:
        """Forget the files of an earlier run; before any worker starts."""
        for path in Path(folder).glob("counts-*.json"):
            path.unlink(missing_ok=True)

    def write(self) -> None:
        counting = self._counting
        streams = {event: len(readers) for event, readers in counting.streams.items()}
        mine = OtherCounts(dict(counting.counts), dict(counting.room.counts), streams, time.time())
        draft = self._path.with_suffix(".new")
        draft.write_bytes(msgspec.json.encode(mine))
        draft.replace(self._path)

    def others(self) -> list[OtherCounts]:
        """The siblings' numbers; open streams only of those that still write."""
        found = []
        for path in self._folder.glob("counts-*.json"):
            if path != self._path:
                with contextlib.suppress(OSError, msgspec.MsgspecError):
                    other = msgspec.json.decode(path.read_bytes(), type=OtherCounts)
                    if time.time() - other.at_s > FRESH_S:
                        other.streams = {}
                    found.append(other)
        return found

    async def run(self) -> None:
        """Write until cancelled; a full disk costs the sum, not the service."""
        while True:
            with contextlib.suppress(OSError):
                self.write()
            await asyncio.sleep(WRITE_EVERY_S)
