"""Q1: many seeds are played in processes, a soak goes on where it stopped, and a run that reaches little fails."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from frontrow.simulation.runs import ENOUGH, INTERESTING, RARE, RARE_ENOUGH, Tally
from frontrow.simulation.world import Result
from tests.simulation import soak as runs
from tests.simulation.soak_report import write_report

EVERYTHING = Counter(INTERESTING)
BROKEN = Result(10_003, "f00d", EVERYTHING, Counter({"crash": 2}), "caps_per_person_hold at 3.000 s: five", 100, 0.5)


def played(seeds: range, jobs: int, bug: str = "") -> Tally:
    """What `play_and_tell` says of these seeds, of which one breaks a law."""
    tally = Tally(seeds.start)
    for seed in seeds:
        broken = BROKEN.broken if seed == BROKEN.seed else ""
        tally.add(Result(seed, "f00d", EVERYTHING, Counter({"crash": 2}), broken, 100, 0.5))
    tally.took_s = 4.0
    return tally


def test_many_seeds_run_in_processes_and_end_with_one_line(tmp_path: Path) -> None:
    closing = tmp_path / "closing"
    command = [sys.executable, "-m", "tests.simulation", "--seeds", "2", "--jobs", "2"]
    env = os.environ | {"CLOSING_LINES_FILE": str(closing)}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    line = ran.stdout.splitlines()[-1]
    assert line.startswith("simulation: 2 seeds, 0 failed, ")
    assert closing.read_text() == f"{line}\n"


def test_a_law_that_breaks_prints_the_command_that_replays_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runs, "play_many", lambda *_: [BROKEN])
    tally = runs.play_and_tell(range(10_003, 10_004), 1)
    assert tally.failed == {10_003: BROKEN.broken}
    assert "replay: frontrow rehearse --chaos --histories 1 --seed 10003" in capsys.readouterr().out


def test_a_long_run_that_misses_a_state_says_which() -> None:
    tally = Tally(seeds=ENOUGH, reached=EVERYTHING - Counter(["event cancelled"]))
    assert tally.missing == ["event cancelled"]
    assert tally.closing_line().endswith("NOT REACHED: event cancelled")
    assert Tally(seeds=ENOUGH, reached=EVERYTHING).missing == []
    assert Tally(seeds=ENOUGH - 1).missing == [], "so few seeds need not reach everything"


def test_the_table_says_in_how_many_seeds_each_planted_bug_was_caught(capsys: pytest.CaptureFixture[str]) -> None:
    assert runs.tell_canaries(["no_dead_letters", "jobs_never_fail"], 2, 1) == []
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["no_dead_letters", "broken", "in", "2", "of", "2", "seeds"]
    assert second.startswith("jobs_never_fail")


def test_rare_states_must_be_reached_by_long_runs_alone() -> None:
    tally = Tally(seeds=RARE_ENOUGH, reached=EVERYTHING)
    assert tally.missing == list(RARE)
    tally.faults.update(RARE)
    assert tally.missing == []
    assert Tally(seeds=RARE_ENOUGH - 1, reached=EVERYTHING).missing == []


def test_a_soak_goes_on_after_the_last_seed_that_was_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "out" / "simulation.jsonl"
    monkeypatch.setattr(runs, "play_and_tell", played)
    moments = iter((0.0, 1.0, 2.0, 9.0, 0.0, 1.0, 9.0))
    monkeypatch.setattr(runs.time, "monotonic", lambda: next(moments))
    assert runs.soak(5.0, 2, 10_000, record).seeds == 40
    with record.open("a") as file:
        file.write('\n{"first": 10040, "se')  # the machine was switched off
    assert runs.soak(5.0, 2, 10_000, record).failed == {}, "the seed that failed is not played again"
    pieces = runs.read_record(record)
    assert [(one.first, one.seeds) for one in pieces] == [(10_000, 20), (10_020, 20), (10_040, 20)]
    assert pieces[0].failed == {10_003: BROKEN.broken}
    assert pieces[0].faults == {"crash": 40}


def test_the_report_of_a_soak_has_its_figures_its_failures_and_a_picture(tmp_path: Path) -> None:
    record = tmp_path / "simulation.jsonl"
    for first in (10_000, 10_020):
        piece = played(range(first, first + 20), 2)
        piece.commit = "abc1234"
        with record.open("a") as file:
            file.write(json.dumps(vars(piece)) + "\n")
    text = write_report(record).read_text()
    assert "simulation: 40 seeds, 1 failed, 300 seeds/min" in text
    assert (
        "- seed 10003: caps_per_person_hold at 3.000 s: five (`frontrow rehearse --chaos --histories 1 --seed 10003`)"
        in text
    )
    assert "| crash | 80 |" in text
    assert "commits abc1234" in text
    assert (tmp_path / "simulation.png").read_bytes().startswith(b"\x89PNG")
