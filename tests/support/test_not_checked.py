"""D1: what a bare machine cannot check is said in the last lines, also when workers run the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
def test_one(not_checked):
    not_checked("the moon (no rocket)")

def test_two(not_checked):
    not_checked("the moon (no rocket)")
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_d1_the_run_ends_with_what_was_not_checked(tmp_path: Path, workers: list[str]) -> None:
    (tmp_path / "test_moon.py").write_text(CODE)
    plugins = ["-p", "tests.support.not_checked", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, *workers, "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("NOT CHECKED ON THIS MACHINE: the moon (no rocket)\n") == 1
