"""The real faults for hours: every run of `bench.fault_runs` and `bench.network_partitions` in turn, again and again.

Each run is noted in a record when it ends. A long run that is stopped, or whose machine goes down, goes on after the
last run in the record until all runs together took `--hours`. The report beside the record is written after every run.

    python -m bench.long_run --hours 8                 # goes on where it stopped
    python -m bench.long_run --hours 8 --within-s 900  # and stops for today after a quarter of an hour
"""

import argparse
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.fault_runs import FAULTS

RECORD = Path("bench/out/long_run.jsonl")
RUN_WITHIN_S = 600.0
SKIPPED = 2  # exit code of a run that this machine cannot do
TOLD_CHARS = 2_000
COMMANDS = {fault.name: ["bench.fault_runs", "--only", fault.name] for fault in FAULTS}
COMMANDS["network_partitions"] = ["bench.network_partitions"]


class Run(msgspec.Struct, frozen=True):
    """One run that has ended: `code` 0 held, 2 could not be done here, else something was wrong."""

    name: str
    began_at: str
    commit: str
    took_s: float
    code: int
    said: str


Play = Callable[[str], tuple[int, str]]


def play(name: str) -> tuple[int, str]:
    """Do one run in a process of its own. Its exit code and what it said."""
    command = [sys.executable, "-m", *COMMANDS[name]]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=RUN_WITHIN_S
        )
    except subprocess.TimeoutExpired as late:
        return -1, f"it did not end within {RUN_WITHIN_S:g} s: {late.stdout!r}"[-TOLD_CHARS:]
    return done.returncode, done.stdout.strip()[-TOLD_CHARS:]


def read_record(path: Path) -> list[Run]:
    """The runs so far. A last line that was cut off is left out: that run is done again."""
    runs: list[Run] = []
    for line in filter(None, path.read_bytes().splitlines()) if path.exists() else ():
        try:
            runs.append(msgspec.json.decode(line, type=Run))
        except msgspec.DecodeError:
            continue
    return runs


def next_run(runs: Sequence[Run]) -> str:
    """The name of the run after the last one in the record."""
    names = list(COMMANDS)
    last = names.index(runs[-1].name) if runs and runs[-1].name in COMMANDS else -1
    return names[(last + 1) % len(names)]


def go_on(record: Path, hours: float, within_s: float, play: Play = play, commit: str = "") -> list[Run]:
    """Do runs until all in the record took `hours`, or this call took `within_s`."""
    record.parent.mkdir(parents=True, exist_ok=True)
    runs, began_s = read_record(record), time.monotonic()
    while sum(run.took_s for run in runs) < hours * 3600 and time.monotonic() - began_s < within_s:
        name, at, run_began_s = next_run(runs), datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
        code, said = play(name)
        run = Run(name, at, commit, round(time.monotonic() - run_began_s, 1), code, said)
        with record.open("ab") as file:  # the newline ends a line that was cut off
            file.write(b"\n" + msgspec.json.encode(run))
        runs.append(run)
        record.with_suffix(".md").write_text(describe(runs, hours))
        print(f"{run.name:32} {'held' if not code else 'NOT DONE HERE' if code == SKIPPED else 'WRONG'}", flush=True)
    return runs


def describe(runs: Sequence[Run], hours: float) -> str:
    """The report, in Markdown."""
    by_name: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_name[run.name].append(run)
    took_s, wrong = sum(run.took_s for run in runs), [run for run in runs if run.code not in (0, SKIPPED)]
    lines = [
        "# The long run",
        "",
        f"{len(runs)} runs in {took_s / 3600:.2f} of {hours:g} hours, {runs[0].began_at} to {runs[-1].began_at}: "
        f"{len(wrong)} wrong.",
        "",
        "| run | times | wrong | not done here |",
        "|---|---|---|---|",
    ]
    for name, own in by_name.items():
        bad, skipped = sum(run in wrong for run in own), sum(run.code == SKIPPED for run in own)
        lines.append(f"| {name} | {len(own)} | {bad} | {skipped} |")
    for run in wrong:
        lines += ["", f"## {run.name}, {run.began_at}, {run.commit}", "", "```", run.said, "```"]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=8.0, help="of all runs in the record")
    parser.add_argument("--within-s", type=float, default=float("inf"), help="begin no more runs after so long")
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    runs = go_on(options.record, options.hours, options.within_s, commit=commit)
    print(options.record.with_suffix(".md"))
    return int(any(run.code not in (0, SKIPPED) for run in runs))


if __name__ == "__main__":
    sys.exit(main())
