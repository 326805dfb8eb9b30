"""F1-F8: the long run of real faults goes on where it stopped and keeps its report."""

from pathlib import Path

import pytest

from bench.long_run import COMMANDS, go_on, read_record

NAMES = list(COMMANDS)


class Down(Exception):
    """The machine goes down in the middle of a run."""


class Player:
    """Plays so many runs, then goes down."""

    def __init__(self, most: int, wrong: str = "") -> None:
        self.played: list[str] = []
        self._most, self._wrong = most, wrong

    def __call__(self, name: str) -> tuple[int, str]:
        if len(self.played) == self._most:
            raise Down
        self.played.append(name)
        return int(name == self._wrong), f"what {name} said"


def test_a_long_run_goes_on_after_the_last_run_in_its_record(tmp_path: Path) -> None:
    record, first, second = tmp_path / "out" / "long.jsonl", Player(3, wrong=NAMES[1]), Player(2)
    with pytest.raises(Down):
        go_on(record, 1.0, 60.0, first)
    with record.open("ab") as file:
        file.write(b'\n{"name": "cut off')
    with pytest.raises(Down):
        go_on(record, 1.0, 60.0, second)
    assert first.played + second.played == NAMES[:5]
    assert [run.code for run in read_record(record)] == [0, 1, 0, 0, 0]
    report = record.with_suffix(".md").read_text()
    assert "1 wrong" in report
    assert f"what {NAMES[1]} said" in report


def test_it_ends_when_all_runs_together_took_their_hours(tmp_path: Path) -> None:
    """The canary of `Player(0)`: it goes down at once if anything is played."""
    assert go_on(tmp_path / "long.jsonl", 0.0, 60.0, Player(0)) == []
    with pytest.raises(Down):
        go_on(tmp_path / "long.jsonl", 1.0, 60.0, Player(0))


def test_a_bounded_call_begins_nothing_after_its_time(tmp_path: Path) -> None:
    assert go_on(tmp_path / "long.jsonl", 8.0, 0.0, Player(0)) == []


def test_after_the_last_run_comes_the_first_again(tmp_path: Path) -> None:
    player = Player(len(NAMES) + 1)
    with pytest.raises(Down):
        go_on(tmp_path / "long.jsonl", 1.0, 60.0, player)
    assert player.played == [*NAMES, NAMES[0]]
