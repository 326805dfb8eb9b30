"""`python -m tests.simulation SEED` replays one seed; `--seeds N` plays many; `--for S` goes on with a soak;
`--canaries` plants each law's bug in turn and says in how many of the seeds it was caught."""

import argparse
import sys
from pathlib import Path

from frontrow.simulation.loop import Trace
from frontrow.simulation.runs import replay_command
from frontrow.simulation.world import run_seed
from tests.simulation.canaries import CANARIES, planted
from tests.simulation.soak import combined_trace, play_and_tell, soak, tell_canaries, tell_ci
from tests.simulation.soak_report import write_report

OUT = Path("bench/out")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", help="replay this seed")
    parser.add_argument("--seeds", type=int, default=0, help="play this many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--for", type=float, default=0.0, dest="for_s", help="seconds: go on after the last soak")
    parser.add_argument("--trace", action="store_true", help="print one hash of the traces of --seeds")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--bug", default="", help="plant the canary of this law, and check only this law")
    parser.add_argument("--canaries", action="store_true", help="in how many of --seeds (40) each law's bug is caught")
    parser.add_argument("--lines", action="store_true", help="print the whole trace")
    given = parser.parse_args(arguments)
    bug = planted(given.bug) if given.bug else ""
    if given.seed is not None:
        return _replay(given.seed, bug, lines=given.lines)
    if given.canaries:
        missed = tell_canaries(sorted(CANARIES), given.seeds or 40, given.jobs)
        print(f"{len(CANARIES) - len(missed)} of {len(CANARIES)} planted bugs were caught")
        return 1 if missed else 0
    if given.trace:
        print(f"trace of {given.seeds} seeds: {combined_trace(range(given.first, given.first + given.seeds))}")
        return 0
    if given.for_s:
        record = OUT / "simulation.jsonl"
        tally = soak(given.for_s, given.jobs, given.first, record)
        print(f"The report: {write_report(record)}")
    else:
        tally = play_and_tell(range(given.first, given.first + given.seeds), given.jobs, bug)
    for seed in tally.failed:
        print(f"replay: {replay_command(seed)}")
    print(tally.closing_line())
    tell_ci(tally.closing_line())
    return 1 if tally.failed or tally.missing else 0


def _replay(seed: int, bug: str, *, lines: bool) -> int:
    trace = Trace(keep=lines)
    result = run_seed(seed, bug=bug, only=bug.partition(":")[2], trace=trace)
    for line in trace.lines or ():
        print(line)
    for name, count in sorted((result.reached + result.faults).items()):
        print(f"{count:6} {name}")
    print(f"seed {seed}: trace {result.trace}, {result.steps:,} callbacks")
    print(result.broken or "every law holds")
    return 1 if result.broken else 0


if __name__ == "__main__":
    sys.exit(main())
