"""One metrics page for several workers: each writes its numbers to a file, and the one that is scraped adds them up.

Counters and histograms are summed, including those of workers that died: a sum that falls would look like a restart to
Prometheus. Gauges of one process are summed over the living workers. Gauges of the shared stores are the same
everywhere, so the largest counts. See ADR 0096 for why prometheus_client's multiprocess mode does not do this.

Process numbers repeat: the first process of every container is number 1, and after a restart it is so again. A process
is therefore named by its number and its start, and a server also by its host and its namespace of process numbers.
"""

import contextlib
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

MAX_FILES: Final = 256
MAX_BYTES: Final = 8 * 1024 * 1024
KEPT_AFTER_DEATH: Final = ("counter", "histogram")
KEPT_S: Final = 3_600.0  # a living server writes every two seconds


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One line of the page."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


class Family(msgspec.Struct, array_like=True):
    """One metric: `add` is "sum" or "max" (over workers)."""

    name: str
    kind: str
    about: str
    add: str
    samples: list[Sample] = []


_decode = msgspec.msgpack.Decoder(list[Family]).decode


class Board:
    """The files of one server's workers in `folder`; without a folder there is only one worker."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._name = f"{process_name(os.getpid())}-{uuid.uuid4().hex}.bin"

    @staticmethod
    def of_workers(data: Path, workers: int) -> "Board":
        """The board shared by all workers of this process' parent. Boards that nobody writes to are removed."""
        if workers <= 1:
            return Board(None)
        root = data / "metrics"
        own = root / f"{socket.gethostname()}-{_namespace()}@{process_name(os.getppid())}"
        own.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in root.iterdir():
            with contextlib.suppress(OSError):
                if old != own and time.time() - old.stat().st_mtime > KEPT_S:
                    shutil.rmtree(old, ignore_errors=True)
        return Board(own)

    @property
    def has_readers(self) -> bool:
        """Whether there are other workers to write for."""
        return self._folder is not None

    def write(self, families: Sequence[Family]) -> None:
        """Write this worker's numbers for the others, atomically."""
        if self._folder is None:
            return
        part = self._folder / f"{self._name}.part"
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # whoever emptied the folder
            part.write_bytes(msgspec.msgpack.encode(list(families)))
            part.replace(self._folder / self._name)

    def joined(self, own: Sequence[Family]) -> list[Family]:
        """This worker's numbers with those of the other workers."""
        return merged([own, *self._others()])

    def _others(self) -> Iterable[list[Family]]:
        if self._folder is None:
            return
        for file in sorted(self._folder.glob("*.bin"))[:MAX_FILES]:
            if file.name == self._name:
                continue
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                if file.stat().st_size <= MAX_BYTES:
                    families = _decode(file.read_bytes())
                    alive = is_running(file.name.rpartition("-")[0])
                    yield [family for family in families if alive or family.kind in KEPT_AFTER_DEATH]


def process_name(pid: int) -> str:
    """A name that no other process of this machine ever has: its number and its start."""
    return f"{pid}-{_started(str(pid))}"


def is_running(name: str) -> bool:
    """Whether the process of this name runs, and not another one with its number."""
    pid, _, started = name.partition("-")
    return started != "" and started == _started(pid)


def _namespace() -> int:
    """The number of this container's own process numbers; 0 where the system has none."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


def _started(pid: str) -> str:
    """When a process started, in ticks since the machine did; empty when there is none."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return status.rpartition(")")[2].split()[19]  # the program's name is in brackets and may contain anything


def merged(pages: Iterable[Sequence[Family]]) -> list[Family]:
    """Add up the pages of several workers."""
    families: dict[str, Family] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for page in pages:
        for family in page:
            families.setdefault(family.name, family)
            totals = values.setdefault(family.name, {})
            for sample in family.samples:
                key = (sample.name, sample.labels)
                if key not in totals:
                    totals[key] = sample.value
                elif family.add == "max":
                    totals[key] = max(totals[key], sample.value)
                else:
                    totals[key] += sample.value
    joined = []
    for name, family in families.items():
        samples = [Sample(sample, labels, value) for (sample, labels), value in values[name].items()]
        joined.append(Family(family.name, family.kind, family.about, family.add, samples))
    return joined


def text(families: Iterable[Family]) -> bytes:
    """The page in Prometheus' text format."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {family.about}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for sample in family.samples:
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels)
            lines.append(f"{sample.name}{{{labels}}} {sample.value:.17g}" if labels else _plain(sample))
    return ("\n".join(lines) + "\n").encode()


def _plain(sample: Sample) -> str:
    return f"{sample.name} {sample.value:.17g}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
