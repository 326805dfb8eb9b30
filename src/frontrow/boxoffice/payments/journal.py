"""The simulated provider with a memory: what happened is appended to a file, and a new process goes on from there.

So the embedded server can be restarted, and a test can kill a process between a call and its answer, without the
"provider" forgetting whose money it holds. One JSON line a call; a line cut off by a crash is a call that never was.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from frontrow.boxoffice.model.intents import Intent, ProviderRefund, ProviderRefused, ProviderUnknown
from frontrow.boxoffice.payments.simulated import Answer, SimulatedProvider
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
        self._load(path)
        self._file = path.open("ab", buffering=0)

    def _load(self, path: Path) -> None:
        if not path.exists():
            return
        *lines, rest = path.read_bytes().split(b"\n")
        if rest:  # cut off in the middle: forget it, also on disk
            path.write_bytes(b"".join(line + b"\n" for line in lines))
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

    async def _do(self, operation: str, key: str, asked: str, act: Callable[[], Answer]) -> Answer:
        known = key in self._answers
        try:
            return await super()._do(operation, key, asked, act)
        finally:
            if key and not known and key in self._answers:
                self._append(key, asked)

    def finish_action(self, ref: str) -> None:
        super().finish_action(ref)
        self._append("", ref)

    def _append(self, key: str, asked: str) -> None:
        answer = self._answers[key][1] if key else None
        ref = answer.ref if isinstance(answer, Intent) else asked.split()[0]
        kind, encoded = _encoded(answer)
        line = Line(
            self.next_number, key, asked, kind, msgspec.Raw(encoded), self._authorised_at_us.get(ref, 0),
            self.objects.get(ref), self._refunds_of(ref),
        )  # fmt: skip
        self._file.write(msgspec.json.encode(line) + b"\n")

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
