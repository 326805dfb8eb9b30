"""A journal for the simulated provider: each change is appended to a file, and a new process continues from there.

So an embedded server can be restarted, and a test can kill a process between a call and its answer, without the
"provider" forgetting whose money it holds. The file has one JSON line per call. A line that was cut off by a crash is a
call that never happened, and so is one that found the disk full. Several processes (servers and `frontrow work`) may
share one file: whoever handles calls takes a lock and first reads what the others wrote.
"""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from frontrow.boxoffice.adapters.payments.simulated import ProviderState
from frontrow.boxoffice.payments.model.provider_intents import Intent, ProviderRefund, ProviderRefused, ProviderUnknown


class JournalLine(msgspec.Struct):
    """What one call changed."""

    next_number: int
    key: str
    asked: str  # the request
    kind: str  # of the stored answer: intent, refund, refused, unknown or none
    answer: msgspec.Raw
    authorised_at_us: int = 0
    found: dict[str, Any] | None = None  # the PaymentIntent
    refunds: list[dict[str, Any]] = []


class PaymentJournal:
    """See simulated.Journal. One process opens a file once."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+b", buffering=0)
        self._read_bytes = 0  # how much of the file was applied to the state

    @contextlib.contextmanager
    def lock(self, state: ProviderState) -> Iterator[None]:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            self._catch_up(state)
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def line(self, state: ProviderState, key: str, request: str) -> bytes:
        answer = state.answers[key][1] if key else None
        ref = answer.ref if isinstance(answer, Intent) else request.split()[0]
        kind, encoded = _encoded(answer)
        line = JournalLine(
            state.next_number,
            key,
            request,
            kind,
            msgspec.Raw(encoded),
            state.authorised_at_us.get(ref, 0),
            state.objects.get(ref),
            state.refunds_of(ref),
        )
        return msgspec.json.encode(line) + b"\n"

    def write(self, state: ProviderState, lines: Sequence[bytes]) -> None:
        text = b"".join(lines)
        if not text:
            return
        try:
            written = self._file.write(text)
            if written != len(text):  # a full disk takes the first part and says nothing
                raise OSError(errno.ENOSPC, "no space left for the journal")
        except OSError as error:
            self._undo(state)
            raise ProviderUnknown(f"the call was not carried out: {error.strerror}") from error
        self._read_bytes += len(text)

    def _undo(self, state: ProviderState) -> None:
        """The calls never happened: remove what was written of them and go back to what the file says."""
        with contextlib.suppress(OSError):  # else the next reader removes the torn line
            self._file.truncate(self._read_bytes)
        state.clear()
        self._read_bytes = 0
        self._catch_up(state)

    def close(self) -> None:
        self._file.close()

    def _catch_up(self, state: ProviderState) -> None:
        """Apply the lines that other processes, or an earlier run, appended."""
        size = os.fstat(self._file.fileno()).st_size
        if size == self._read_bytes:
            return
        *lines, rest = os.pread(self._file.fileno(), size - self._read_bytes, self._read_bytes).split(b"\n")
        self._read_bytes = size - len(rest)
        if rest:  # a line that was cut off by a crash: remove it
            self._file.truncate(self._read_bytes)
        for text in lines:
            _apply(msgspec.json.decode(text, type=JournalLine), state)


def _apply(line: JournalLine, state: ProviderState) -> None:
    if line.found is not None:
        ref = line.found["id"]
        state.objects[ref] = line.found
        state.authorised_at_us[ref] = line.authorised_at_us
        for refund in line.refunds:
            state.refunds[refund["id"]] = refund
        state.refund_ids[ref] = [refund["id"] for refund in line.refunds]
    if line.key:
        state.answers[line.key] = (line.asked, _decoded(line.kind, line.answer))
    state.next_number = line.next_number


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
