"""O1: what fails in `.ci/run` runs once more, alone: what passes then is flaky and said so, what fails twice fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.second_run import MOST, closing_lines, sort_failures

ROOT = Path(__file__).parents[1]
SOMETIMES = """
import pathlib

def test_sometimes():
    tried = pathlib.Path({tried!r})
    tried.write_text(tried.read_text() + "x" if tried.exists() else "x")
    assert len(tried.read_text()) > 1

def test_always():
    assert {always}
"""


def test_what_passes_alone_is_flaky_and_the_rest_is_broken_in_order() -> None:
    asked: list[str] = []

    def passes_alone(test: str) -> bool:
        asked.append(test)
        return test in "bd"

    assert sort_failures(["a", "b", "c", "d"], passes_alone) == (["b", "d"], ["a", "c"])
    assert asked == ["a", "b", "c", "d"], "each once"


@pytest.mark.parametrize(("count", "tried"), [(MOST, MOST), (MOST + 1, 0)])
def test_when_many_fail_none_runs_again(count: int, tried: int) -> None:
    asked: list[str] = []
    _, broken = sort_failures([str(number) for number in range(count)], lambda test: bool(asked.append(test)))
    assert len(asked) == tried
    assert len(broken) == count
    assert (closing_lines("x", [], [], broken)[-1] == f"FAILED: {count} tests, too many to run them again") is (
        tried == 0
    )


@pytest.mark.parametrize(("always", "code"), [(True, 0), (False, 1)])
def test_a_run_ends_with_pytests_own_line_and_with_what_was_flaky(tmp_path: Path, always: bool, code: int) -> None:
    """The real thing, with a test that fails the first time."""
    test_file = tmp_path / "test_weather.py"
    test_file.write_text(SOMETIMES.format(tried=str(tmp_path / "tried"), always=always))
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\naddopts = -q\n")
    command = [sys.executable, "-m", "tests.second_run", "-n", "2"]
    env = {"CLOSING_LINES_FILE": str(tmp_path / "closing"), "PYTHONPATH": str(ROOT), "PATH": os.defpath}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    lines = (tmp_path / "closing").read_text().splitlines()
    assert done.stdout.splitlines()[-len(lines) :] == lines
    assert lines[0].startswith("1 failed, 1 passed in" if always else "2 failed in")
    assert [line for line in lines if line.startswith("FLAKY: ")] == [
        f"FLAKY: {test_file.name}::test_sometimes failed, and passed alone"
    ]
    twice = [line for line in lines if line.startswith("FAILED TWICE: ")]
    assert twice == ([] if always else [f"FAILED TWICE: {test_file.name}::test_always"])


MAKE = """#!/bin/sh
echo "$@" >>"$0.asked"
case "$1" in
  test-twice) echo "6700 passed in 400.00s" >>"$CLOSING_LINES_FILE"; exit CODE ;;
  test-pythons) echo "NOT RUN ON 3.13: away" >>"$CLOSING_LINES_FILE" ;;
esac
"""


@pytest.mark.parametrize(
    ("code", "asked", "last"),
    [
        (
            0,
            ["check", "test-twice", "simulate SEEDS=1000", "test-pythons QUICK=1"],
            "NOT RUN ON 3.13: away",
        ),
        (3, ["check", "test-twice"], "6700 passed in 400.00s"),
    ],
)
def test_o1_ci_runs_other_pythons_after_the_suite_and_ends_with_the_closing_lines(
    tmp_path: Path, code: int, asked: list[str], last: str
) -> None:
    """The script itself, with a `make` that writes down what it was asked for."""
    make = tmp_path / "make"
    make.write_text(MAKE.replace("CODE", str(code)))
    make.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        ["bash", ROOT / ".ci" / "run"], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code
    assert (tmp_path / "make.asked").read_text().splitlines() == asked
    assert done.stdout.splitlines()[0] == "6700 passed in 400.00s", "pytest's own closing line"
    assert done.stdout.splitlines()[-1] == last
    assert sorted(path.name for path in tmp_path.iterdir()) == ["make", "make.asked"], "nothing stays behind"
