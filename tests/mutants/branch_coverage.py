"""`python -m tests.mutants.branch_coverage`: branches of the pure rules that the tests which describe them never take.

Runs the tests of every subject of `pure_rules.py` once, with branch coverage of their modules. Ends with a table, and
with an error if anything was not covered that `NOT_COVERED` gives no reason for.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.mutants.pure_rules import NOT_COVERED, SUBJECTS, source
from tests.support.sources import ROOT

WITHIN_S: Final = 900


def measured(modules: Sequence[str], tests: Sequence[str], folder: Path) -> dict[str, list[str]]:
    """What these tests leave out of each module: lines, and branches as `from -> to`."""
    data, report = folder / "data", folder / "report.json"
    files = ",".join(str(source(module)) for module in modules)
    coverage = [sys.executable, "-m", "coverage"]
    run = [*coverage, "run", "--branch", f"--data-file={data}", f"--include={files}", "-m", "pytest", "-q", *tests]
    if subprocess.run(run, cwd=ROOT, check=False, timeout=WITHIN_S, stdout=sys.stderr).returncode:
        sys.exit("the tests did not pass, so what they cover says nothing")
    subprocess.run(
        [*coverage, "json", f"--data-file={data}", f"--include={files}", "-o", str(report)],
        cwd=ROOT,
        check=True,
        timeout=WITHIN_S,
        stdout=sys.stderr,
    )
    found = {(ROOT / name).resolve(): one for name, one in json.loads(report.read_text("utf-8"))["files"].items()}
    return {module: left_out(found.get(source(module).resolve())) for module in modules}


def left_out(one: dict[str, list[list[int]]] | None) -> list[str]:
    """What is missing of a file, from the report of `coverage`."""
    if one is None:
        return ["everything"]
    branches = [f"{begin} -> {'the end' if end < 0 else end}" for begin, end in one["missing_branches"]]
    return [str(line) for line in one["missing_lines"]] + branches


def unexplained(missing: dict[str, list[str]]) -> dict[str, list[str]]:
    """What is missing and has no reason. Reasons name the text of a line, not its number."""
    found = {}
    for module, places in missing.items():
        lines = source(module).read_text("utf-8").splitlines()
        wanted = {text for name, text in NOT_COVERED if name == module}
        left = [
            place for place in places if not (place[0].isdigit() and lines[int(place.split()[0]) - 1].strip() in wanted)
        ]
        if left:
            found[module] = left
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.branch_coverage", description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="a subject; repeatable")
    given = parser.parse_args()
    chosen = [one for one in SUBJECTS if not given.only or one.name in given.only]
    if not chosen:
        parser.error(f"the subjects are {', '.join(one.name for one in SUBJECTS)}")
    modules = [module for subject in chosen for module in subject.modules]
    tests = list(dict.fromkeys(test for subject in chosen for test in subject.tests))
    with tempfile.TemporaryDirectory(prefix="frontrow-coverage-") as folder:
        left = unexplained(measured(modules, tests, Path(folder)))
    for module in modules:
        print(f"{module:56} {'all' if module not in left else 'not covered: ' + ', '.join(left[module])}")
    print(f"\n{len(modules) - len(left)} of {len(modules)} modules are covered to the last branch")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
