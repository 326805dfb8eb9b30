"""The simulated provider with a memory: what happened is appended to a file, and a new process goes on from there.

So the embedded server can be restarted, and a test can kill a process between a call and its answer, without the
"provider" forgetting whose money it holds. One JSON line a call; a line cut off by a crash is a call that never was.
Several processes (servers and `frontrow work`) may use one file: each call reads what the others wrote, under a lock.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from frontrow.boxoffice.adapters.payments.simulated import Answer, SimulatedProvider
from frontrow.boxoffice.model.provider_intents import Intent, ProviderRefund, ProviderRefused, ProviderUnknown
from frontrow.core.clock import Clock


class Line(msgspec.Struct):
    """What one call left behind."""

    next_number: int
    key: str
    asked: str
    kind: str  # of the stored answer: intent, refund, refused, unknown or none
    answer: msgspec.Raw
    authorised_at_us: int = 0
    found: dict[str, Any] | None = None
    refunds: list[dict[str, Any]] = []


class JournaledProvider(SimulatedProvider):
    """See SimulatedProvider; `path` is read at the start and appended to by every call that changes something."""

    def __init__(self, clock: Clock, path: Path, **options: Any) -> None:
        super().__init__(clock, **options)
        self._file = path.open("a+b", buffering=0)
        self._read_bytes = 0  # how much of the file this process knows
        with self._lock():
            pass

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Nobody else writes meanwhile, and all that others wrote is known."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            self._catch_up()
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _catch_up(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        if size == self._read_bytes:
            return
        *lines, rest = os.pread(self._file.fileno(), size - self._read_bytes, self._read_bytes).split(b"\n")
        self._read_bytes = size - len(rest)
        if rest:  # cut off by a crash in the middle: forget it, also on disk
            self._file.truncate(self._read_bytes)
        for text in lines:
            self._take(msgspec.json.decode(text, type=Line))

    def _take(self, line: Line) -> None:
        if line.found is not None:
            ref = line.found["id"]
            self.objects[ref] = line.found
            self._authorised_at_us[ref] = line.authorised_at_us
            for refund in line.refunds:
                self.refunds[refund["id"]] = refund
            self._refunded[ref] = [refund["id"] for refund in line.refunds]
        if line.key:
            self._answers[line.key] = (line.asked, _decoded(line.kind, line.answer))
        self.next_number = line.next_number

    def _arrived(self, operation: str, key: str, asked: str, act: Callable[[], Answer], number: int) -> Answer:
        with self._lock():
            known = key in self._answers
            try:
                return super()._arrived(operation, key, asked, act, number)
            finally:
                if key and not known and key in self._answers:
                    self._append(key, asked)

    def confirm_in_browser(self, ref: str, method: str) -> Intent:
        with self._lock():
            intent = super().confirm_in_browser(ref, method)
            self._append("", ref)
            return intent

    def finish_action(self, ref: str) -> None:
        with self._lock():
            super().finish_action(ref)
            self._append("", ref)

    def settle_refund(self, refund_ref: str, status: str) -> None:
        with self._lock():
            super().settle_refund(refund_ref, status)
            self._append("", self.refunds[refund_ref]["payment_intent"])

    def _append(self, key: str, asked: str) -> None:
        answer = self._answers[key][1] if key else None
        ref = answer.ref if isinstance(answer, Intent) else asked.split()[0]
        kind, encoded = _encoded(answer)
        line = Line(
            self.next_number, key, asked, kind, msgspec.Raw(encoded), self._authorised_at_us.get(ref, 0),
            self.objects.get(ref), self._refunds_of(ref),
        )  # fmt: skip
        self._read_bytes += self._file.write(msgspec.json.encode(line) + b"\n")

    async def aclose(self) -> None:
        self._file.close()


def _encoded(answer: Any) -> tuple[str, bytes]:
    match answer:
        case Intent():
            return "intent", msgspec.json.encode(answer)
        case ProviderRefund():
            return "refund", msgspec.json.encode(answer)
        case ProviderRefused():
            return "refused", msgspec.json.encode([answer.message, answer.reason])
        case ProviderUnknown():
            return "unknown", msgspec.json.encode(answer.message)
        case _:
            return "none", b"null"


def _decoded(kind: str, encoded: msgspec.Raw) -> Any:
    match kind:
        case "intent":
            return msgspec.json.decode(encoded, type=Intent)
        case "refund":
            return msgspec.json.decode(encoded, type=ProviderRefund)
        case "refused":
            return ProviderRefused(*msgspec.json.decode(encoded))
        case _:
            return ProviderUnknown(msgspec.json.decode(encoded), answered=True)
