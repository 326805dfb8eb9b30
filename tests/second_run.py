"""`python -m tests.second_run …`: pytest with these arguments; what fails runs once more, alone. For `.ci/run`.

What passes then is printed as `FLAKY: …` in the last lines: mend it in the next commit. What fails twice fails. If many
tests fail, the change is broken and none runs again. pytest's own closing line is printed in the end.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.pythons.runs import CLOSING, TOLD_AT_THE_END

MOST: Final = 20
ALONE_WITHIN_S: Final = 900
TESTS_FAILED: Final = 1  # pytest's exit code


def sort_failures(failed: Sequence[str], passes_alone: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Those that pass when they run alone, and the others. If there are more than `MOST`, none runs again."""
    if len(failed) > MOST:
        return [], list(failed)
    flaky = [test for test in failed if passes_alone(test)]
    return flaky, [test for test in failed if test not in flaky]


def closing_lines(closing: str, told: Sequence[str], flaky: Sequence[str], broken: Sequence[str]) -> list[str]:
    """What is printed in the end: pytest's own line first."""
    failed = [f"FAILED TWICE: {test}" for test in broken]
    if len(broken) > MOST:
        failed = [f"FAILED: {len(broken)} tests, too many to run them again"]
    return [closing, *told, *(f"FLAKY: {test} failed, and passed alone" for test in flaky), *failed]


def run_pytest(arguments: Sequence[str], failed_path: Path) -> tuple[int, str]:
    """pytest's exit code and output, which is printed meanwhile."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.failed_tests", *arguments]
    env = os.environ | {"FAILED_TESTS_FILE": str(failed_path)}
    env.pop("CLOSING_LINES_FILE", None)  # it is ours
    output = bytearray()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as running:
        assert running.stdout is not None
        while piece := os.read(running.stdout.fileno(), 65_536):
            output += piece
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    return running.returncode, output.decode(errors="replace")


def passes_alone(test: str) -> bool:
    print(f"once more, alone: {test}", flush=True)
    try:
        command = [sys.executable, "-m", "pytest", test]
        return subprocess.run(command, timeout=ALONE_WITHIN_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main(arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as kept:
        failed_path = Path(kept) / "failed"
        code, output = run_pytest(arguments, failed_path)
        failed = failed_path.read_text().splitlines() if failed_path.exists() else []
    flaky, broken = sort_failures(failed, passes_alone) if code == TESTS_FAILED else ([], failed)
    closing = (CLOSING.findall(output) or [f"pytest ended with {code} and without a closing line"])[-1]
    lines = closing_lines(closing, TOLD_AT_THE_END.findall(output), flaky, broken)
    print("", *lines, sep="\n", flush=True)
    if told := os.environ.get("CLOSING_LINES_FILE"):
        with Path(told).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
    return 0 if code == TESTS_FAILED and flaky and not broken else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
