"""D1, O1: one line per Python, in the words of the commands themselves, and what did not run in the last line."""

import re
import tomllib
from pathlib import Path
from typing import TextIO

import pytest

from tests.pythons import runs
from tests.pythons.debian_roots import NotMade
from tests.pythons.runs import (
    ALL,
    DEMO,
    QUICK,
    TESTS,
    TRACE,
    TRACE_ARGUMENTS,
    Outcome,
    World,
    closing_lines,
    compare_traces,
    exit_code,
    run_commands,
    verdict,
)

ROOT = Path(__file__).parents[2]
TRIXIE = World("3.13", (DEMO, TESTS), "trixie")
SOLD = "1,504 bookings, 3,460 of 50,000 seats sold, 0 odd answers; ledger: nothing sold twice"
PASSED = "6673 passed in 402.71s (0:06:42)"


def scripted(*ended: tuple[int, str]) -> runs.Run:
    """A machine on which the commands end like this, one after the other."""
    left = iter(ended)

    def run(command: str, log: TextIO) -> int:
        code, output = next(left)
        log.write(output)
        return code

    return run


def ran(tmp_path: Path, *ended: tuple[int, str]) -> Outcome:
    return run_commands(Outcome(TRIXIE, "3.13.5"), scripted(*ended), tmp_path / "log")


def test_o1_a_python_is_one_line_with_what_its_commands_said(tmp_path: Path) -> None:
    outcome = ran(tmp_path, (0, f"A stadium …\n{SOLD}\n"), (0, f"....\n{PASSED}\n"))
    assert closing_lines([outcome]) == [
        f"Python 3.13.5 (minimal Debian trixie): make demo FOR=20s: {SOLD}; make test: {PASSED}"
    ]
    assert exit_code([outcome], quick=False) == exit_code([outcome], quick=True) == 0


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ([(0, "the sale ended early\n")], "FAILED: make demo FOR=20s ended with 0"),
        ([(2, f"{SOLD}\n")], "FAILED: make demo FOR=20s ended with 2"),
        ([(0, SOLD), (2, "FAILED tests/a.py::b\n3 failed, 6454 passed, 202 errors in 600.1s (0:10:00)\n")],
         "FAILED: make test ended with 2: 3 failed, 6454 passed, 202 errors in 600.1s (0:10:00)"),
        ([(0, SOLD), (124, "it was ended after 5400 s\n")], "FAILED: make test ended with 124: no closing line"),
    ],
)  # fmt: skip
def test_o1_a_command_that_fails_fails_its_python(tmp_path: Path, ended: list[tuple[int, str]], said: str) -> None:
    outcome = ran(tmp_path, *ended)
    assert outcome.line().endswith(said)
    assert exit_code([outcome], quick=True) == exit_code([outcome], quick=False) == 1


def test_o1_a_demo_is_not_judged_by_what_another_command_printed_before(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"{SOLD}\n{PASSED}\n")
    assert ran(tmp_path, (0, "nothing\n")).failed


def test_o1_what_did_not_run_stands_in_the_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_archive(*_: object) -> Outcome:
        raise NotMade("debootstrap got no trixie from http://mirror in 3 tries")

    monkeypatch.setattr(runs, "_run_in_debian", no_archive)
    missing = runs.run_world(TRIXIE, ROOT, tmp_path / "logs" / "log")
    other = ran(tmp_path, (0, SOLD), (0, PASSED))
    lines = closing_lines([missing, other])
    assert lines[-1] == "NOT RUN ON 3.13: debootstrap got no trixie from http://mirror in 3 tries"
    assert len(lines) == 2
    assert exit_code([missing, other], quick=True) == 0, "an archive that is away is not a defect of the change"
    assert exit_code([missing, other], quick=False) == 1, "whoever asked for it must see that it did not run"


def test_a_python_that_nobody_installed_is_said_and_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = runs.run_world(World("3.12", (DEMO,)), ROOT, tmp_path / "log")
    assert missing.line() == "NOT RUN ON 3.12: there is no python3.12 on this machine, and no Debian has it"
    assert exit_code([missing], quick=False) == 0


def test_a_program_of_that_name_that_is_another_python_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyenv puts programs on the path that only say that they are not chosen."""
    shim = tmp_path / "python3.12"
    for body, found in (("exit 127", None), ("echo 3.11.7", None), ("echo 3.12.1", str(shim))):
        shim.write_text(f"#!/bin/sh\n{body}\n")
        shim.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        assert runs.installed_python("3.12") == found


def test_flaky_and_unchecked_are_told_with_their_python(tmp_path: Path) -> None:
    told = f"FLAKY: tests/a.py::b failed, and passed alone\nNOT CHECKED ON THIS MACHINE: the moon\n{PASSED}\n"
    lines = closing_lines([ran(tmp_path, (0, SOLD), (0, told))])
    assert lines[:2] == [
        "FLAKY: tests/a.py::b failed, and passed alone [Python 3.13]",
        "NOT CHECKED ON THIS MACHINE: the moon [Python 3.13]",
    ]


def test_pytests_own_closing_line_is_found_whatever_it_counts() -> None:
    for line in (
        PASSED,
        "1 failed in 0.10s",
        "2 passed, 1 warning in 12.30s",
        "1 error in 3.20s",
        "3 failed, 2 errors in 9.1s",
    ):
        assert verdict(TESTS, 0, f"..F\n12 things in a row\n{line}\nmore\n")[0] == f"make test: {line}"


def test_o1_every_promised_python_runs_here_or_in_a_debian() -> None:
    """The classifiers list what runs: the oldest is this machine's suite (README), the others are worlds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = {one.rpartition(" ")[2] for one in project["classifiers"] if re.search(r"Python :: 3\.\d+$", one)}
    oldest = project["requires-python"].removeprefix(">=")
    assert promised == {oldest, *(world.python for world in ALL)}
    assert {world.python for world in QUICK} == {"3.13", "3.14"}


def test_d1_the_worlds_run_readmes_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    commands = re.findall(r"^(make (?:demo|test))\b", readme, re.MULTILINE)
    assert commands == ["make demo", "make test"]
    for world in ALL:
        assert [command.split(" FOR=")[0] for command in world.commands if command != TRACE] == commands


def test_q1_a_python_whose_simulation_has_another_trace_fails(tmp_path: Path) -> None:
    """The same seeds are the same histories on every Python (docs/simulation.md)."""
    same, other = ("trace of 10 seeds: 5290e67d", "trace of 10 seeds: 98e8ca87")

    def traced(trace: str) -> Outcome:
        world = World("3.14", (TRACE,), "sid")
        return run_commands(Outcome(world, "3.14.0"), scripted((0, f"made\n{trace}\n")), tmp_path / "log")

    assert exit_code(compare_traces([traced(same), traced(same)], same), quick=True) == 0
    assert exit_code(compare_traces([traced(same), traced(same)], ""), quick=True) == 0
    for outcomes in (compare_traces([traced(same), traced(other)], ""), compare_traces([traced(other)], same)):
        assert outcomes[-1].line().endswith(f"{other}; FAILED: another trace than elsewhere ({same})")
        assert exit_code(outcomes, quick=True) == 1


def test_a_simulation_that_ends_without_a_trace_fails_its_python(tmp_path: Path) -> None:
    world = World("3.14", (TRACE,), "sid")
    for ended in ((0, "nothing\n"), (2, "trace of 10 seeds: 5290e67d\n")):
        assert run_commands(Outcome(world), scripted(ended), tmp_path / "log").failed


def test_q1_every_world_replays_the_simulation() -> None:
    assert all(TRACE in world.commands for world in (*ALL, *QUICK))
    recipe = re.search(r"^simulate-trace:.*\n\t(.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    assert recipe[1] == f"$(BIN)/python {' '.join(TRACE_ARGUMENTS)}"
