"""F8: the run on hosts of its own: it says loudly where it cannot run, and a kept history can be checked again."""

import json
import os
from pathlib import Path

import pytest

from bench import network_hosts, network_partitions
from bench.network_partitions import read_history, report, write_history
from tests.faults.linearizability import Act, Call

SOLD = [Call(Act.TAKE, 1, "a", 0, 1), Call(Act.SELL, 1, "a", 2, 3), Call(Act.SEE, 1, "a", 4, 5)]


def test_without_root_the_run_says_that_nothing_was_checked_and_does_not_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(network_hosts.shutil, "which", lambda tool: f"/bin/{tool}")
    monkeypatch.setattr("sys.argv", ["network_partitions"])
    assert network_partitions.main() == 2
    assert capsys.readouterr().out == (
        "NOT CHECKED ON THIS MACHINE: network partitions (network namespaces need root)\n"
    )


def test_a_kept_history_is_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out" / "history.jsonl"
    write_history(file, SOLD)
    assert read_history(file) == SOLD
    assert [json.loads(line)["act"] for line in file.read_text().splitlines()] == ["take", "sell", "see"]
    monkeypatch.setattr("sys.argv", ["network_partitions", "--check", str(file)])
    assert network_partitions.main() == 0
    write_history(file, [*SOLD, Call(Act.TAKE, 1, "b", 6, 7)])
    assert network_partitions.main() == 1


def test_a_history_in_which_nobody_bought_proves_nothing() -> None:
    with pytest.raises(SystemExit, match="proves nothing"):
        report(SOLD[:1])


def test_a_checker_that_accepts_everything_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run plants a second sale of a sold seat into its own history."""
    accepted = network_partitions.check_linearizable(SOLD)
    monkeypatch.setattr(network_partitions, "check_linearizable", lambda calls: accepted)
    with pytest.raises(SystemExit, match="canary"):
        report(SOLD)
