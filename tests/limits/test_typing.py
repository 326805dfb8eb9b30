"""A type checker finds the mistakes of `mistyped_calls.py`, each of them and nothing else."""

import subprocess
import sys
from pathlib import Path

CALLS = Path(__file__).with_name("mistyped_calls.py")


def test_a_type_checker_finds_every_mistake_and_no_other(tmp_path: Path) -> None:
    options = ["--strict", "--no-error-summary", "--hide-error-context", "--no-pretty", f"--cache-dir={tmp_path}"]
    mypy = [sys.executable, "-m", "mypy", *options, "--follow-imports=silent", str(CALLS)]
    done = subprocess.run(mypy, capture_output=True, text=True, cwd=CALLS.parents[2])
    assert not done.stderr, done.stderr
    errors = [line.split(":", 3) for line in done.stdout.splitlines() if ": error:" in line]
    found = sorted({int(number) for _, number, *_ in errors})
    lines = CALLS.read_text().splitlines()
    wanted = [at for at, line in enumerate(lines, 1) if line.endswith("# wrong")]
    assert found == wanted, done.stdout
