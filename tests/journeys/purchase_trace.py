"""What one real purchase runs: the functions of Frontrow that are called from the claim of a place to the mail.

A profiler in the server's threads notes who calls whom. An idle server calls functions too (leaders, sweepers, polls),
so what ran in a quiet moment before is left out. Of the rest, a file is

- a **step** if it hands the purchase on: one of its functions calls a function of another file;
- a **look-up** if it only answers: values, pure rules, formats.

Libraries of the house (`core`, `shared`, `limits`, `settings`) count as neither, as third parties' do.
"""

import inspect
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

HOUSE: Final = "src/frontrow/"
LIBRARIES: Final = ("core/", "limits/", "settings/", "shared/")
NOBODY: Final = ""


class Call(NamedTuple):
    """A function of one file called from another file of ours, or from none (`caller` is empty)."""

    caller: str
    callee: str
    function: str
    by_callback: bool  # the event loop calls it, or it is a closure that another file calls


@dataclass
class Trace:
    """The calls of one purchase, in the order in which they were first made."""

    calls: list[Call]
    idle_files: set[str]  # what an idle server runs, too

    @property
    def files(self) -> set[str]:
        return {call.callee for call in self.calls if not call.callee.startswith(LIBRARIES)}

    def hops(self, among: set[str]) -> set[tuple[str, str]]:
        """From which file to which the purchase goes."""
        return {(c.caller, c.callee) for c in self.calls if c.caller != c.callee and {c.caller, c.callee} <= among}

    @property
    def steps(self) -> set[str]:
        return {caller for caller, _ in self.hops(self.files)}

    def turns(self, among: set[str]) -> set[str]:
        """The files that are entered through a callback instead of a call."""
        return {call.callee for call in self.calls if call.by_callback and call.callee in among}


class Recorder:
    """Notes the calls in every thread that starts while it is installed."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        self._noted: dict[Call, CodeType] = {}
        self._idle: set[CodeType] = set()
        self._listening = ""
        self._new_at_s = 0.0

    @contextmanager
    def installed(self) -> Iterator["Recorder"]:
        threading.setprofile(self._note)
        try:
            yield self
        finally:
            threading.setprofile(None)

    @contextmanager
    def listening(self, kind: str) -> Iterator[None]:
        """Note what runs now: "idle" or "purchase"."""
        self._listening, self._new_at_s = kind, time.monotonic()
        try:
            yield
        finally:
            self._listening = ""

    def is_settled(self, quiet_s: float) -> bool:
        """Whether the idle server has run nothing new for this long: all its loops have turned."""
        return time.monotonic() - self._new_at_s >= quiet_s

    def trace(self) -> Trace:
        calls = [call for call, code in self._noted.items() if code not in self._idle]
        return Trace(calls, {self._path(code.co_filename) for code in self._idle})

    def _path(self, filename: str) -> str:
        found = self._paths.get(filename)
        if found is None:
            _, house, path = filename.rpartition(HOUSE)
            found = self._paths[filename] = path if house else NOBODY
        return found

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self._listening:
            return
        code = frame.f_code
        callee = self._path(code.co_filename)
        if not callee or code.co_name == "<module>":
            return
        if self._listening == "idle":
            if code not in self._idle:
                self._idle.add(code)
                self._new_at_s = time.monotonic()
            return
        caller, at = NOBODY, frame.f_back
        while at is not None and not caller:
            caller, at = self._path(at.f_code.co_filename), at.f_back
        is_resumed = bool(code.co_flags & (inspect.CO_COROUTINE | inspect.CO_GENERATOR))
        by_loop = not is_resumed and frame.f_back is not None and "asyncio" in frame.f_back.f_code.co_filename
        is_closure = code.co_name == "<lambda>" or (".<locals>." in code.co_qualname and code.co_name[0] != "<")
        call = Call(caller, callee, code.co_qualname, by_loop or (is_closure and caller not in (callee, NOBODY)))
        self._noted.setdefault(call, code)
