"""Many seeds with a line for CI, and as a soak that goes on where it stopped."""

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from frontrow.simulation.loop import Trace
from frontrow.simulation.runs import Tally, play_many, replay_command
from frontrow.simulation.world import run_seed
from tests.simulation.canaries import planted

AT_ONCE: Final = 20  # seeds that a soak notes together


def play_and_tell(seeds: range, jobs: int, bug: str = "") -> Tally:
    """Play these seeds. Whatever fails is printed at once, with the command that replays it."""
    tally, began_s = Tally(seeds.start), time.perf_counter()
    for result in play_many(seeds, jobs, bug):
        tally.add(result)
        if result.broken:
            print(f"{result.broken}\nreplay: {replay_command(result.seed)}\n", flush=True)
    tally.took_s = time.perf_counter() - began_s
    return tally


def combined_trace(seeds: Iterable[int]) -> str:
    """One hash of the traces of several seeds. Every Python and every machine has the same."""
    whole = Trace()
    for seed in seeds:
        result = run_seed(seed)
        whole.add(f"{seed} {result.trace} {result.broken}")
    return whole.digest()


def tell_canaries(canaries: Iterable[str], seeds: int, jobs: int) -> list[str]:
    """Play each planted bug in so many seeds, and say in how many of them its law was broken. The laws that no seed
    broke."""
    missed = []
    for law in canaries:
        broken = sum(bool(one.broken) for one in play_many(range(seeds), jobs, planted(law)))
        print(f"{law:42} broken in {broken:3} of {seeds} seeds", flush=True)
        if not broken:
            missed.append(law)
    return missed


# A soak


def soak(for_s: float, jobs: int, first: int, record: Path) -> Tally:
    """Play seeds for so long, beginning after the last one of the record, and note each piece in it."""
    record.parent.mkdir(parents=True, exist_ok=True)
    ends_s = time.monotonic() + for_s
    whole, commit = Tally(first), current_commit()
    while time.monotonic() < ends_s:
        begin = next_seed(read_record(record), first)
        piece = play_and_tell(range(begin, begin + AT_ONCE), jobs)
        piece.commit = commit
        with record.open("a") as file:
            file.write("\n" + json.dumps(vars(piece)))  # a line that was cut off stays apart
        whole.join(piece)
    return whole


def read_record(record: Path) -> list[Tally]:
    """The pieces of all soaks so far. A line that was cut off by a crash is left out; its seeds are played again."""
    pieces = []
    for line in record.read_text().splitlines() if record.exists() else ():
        try:
            one: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        failed = {int(seed): why for seed, why in one.pop("failed").items()}
        counters = {name: Counter(one[name]) for name in ("reached", "faults")}
        pieces.append(Tally(**{**one, **counters, "failed": failed}))
    return pieces


def next_seed(pieces: Iterable[Tally], first: int) -> int:
    """The seed after the last that was played."""
    return max((one.first + one.seeds for one in pieces), default=first)


def current_commit() -> str:
    told = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return told.stdout.strip()


def tell_ci(line: str) -> None:
    """Put a line among the last ones of `.ci/run`."""
    if told := os.environ.get("CLOSING_LINES_FILE"):
        with Path(told).open("a") as file:
            file.write(f"{line}\n")
