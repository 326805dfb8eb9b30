"""`python -m tests.mutants`: plant each bug of the corpus in turn and run the tests that must catch it.

Ends with a table and with an error if one of them survives, or if its test fails without it.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence

from tests.mutants.corpus import corpus
from tests.mutants.mutant import Mutant
from tests.mutants.runner import Outcome, Verdict, judge_all
from tests.support.memory_files import keep_files_in_memory

BAR = 30


class Progress:
    """A bar on a terminal, a line per planted bug elsewhere."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0

    def tell(self, outcome: Outcome) -> None:
        self._done += 1
        if not sys.stdout.isatty():
            print(
                f"{self._done}/{self._total} {outcome.verdict} {outcome.mutant.name} {outcome.took_s:.1f} s", flush=True
            )
            return
        filled = BAR * self._done // self._total
        bar = "#" * filled + "." * (BAR - filled)
        print(f"\r[{bar}] {self._done}/{self._total} {outcome.mutant.name[:60]:60}", end="", flush=True)
        if self._done == self._total:
            print()


def chosen(only: Sequence[str]) -> dict[str, list[Mutant]]:
    """The planted bugs of these areas, or with these names; all without a choice."""
    found = {
        area: [one for one in mutants if not only or area in only or one.name in only]
        for area, mutants in corpus().items()
    }
    return {area: mutants for area, mutants in found.items() if mutants}


def table(areas: dict[str, list[Mutant]], outcomes: Sequence[Outcome]) -> list[str]:
    """A line per planted bug with who caught it, then a line per area."""
    by_name = {outcome.mutant.name: outcome for outcome in outcomes}
    lines = []
    for area, mutants in areas.items():
        lines += ["", area]
        for one in (by_name[mutant.name] for mutant in mutants):
            what = one.test.rpartition("::")[2] if one.verdict is Verdict.CAUGHT else one.verdict
            lines.append(f"  {one.mutant.name:60} {one.took_s:5.1f} s  {what}")
    lines.append("")
    for area, mutants in areas.items():
        counts = Counter(by_name[mutant.name].verdict for mutant in mutants)
        lines.append(f"{area:28} {counts[Verdict.CAUGHT]:3} of {len(mutants):3} caught")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="the name of a planted bug, or an area; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="how many at the same time")
    given = parser.parse_args()
    areas = chosen(given.only)
    mutants = [mutant for group in areas.values() for mutant in group]
    if not mutants:
        parser.error(f"there is nothing named {', '.join(given.only)}; the areas are {', '.join(corpus())}")
    keep_files_in_memory()
    outcomes = judge_all(mutants, max(1, min(given.jobs, len(mutants))), Progress(len(mutants)).tell)
    print(*table(areas, outcomes), sep="\n")
    wrong = [outcome for outcome in outcomes if outcome.verdict is not Verdict.CAUGHT]
    for outcome in wrong:
        print(f"\n{outcome.verdict}: {outcome.mutant.name}: {outcome.mutant.law}\n{outcome.output}")
    print(f"\n{len(outcomes) - len(wrong)} of {len(outcomes)} planted bugs were caught")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
