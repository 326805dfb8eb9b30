"""`frontrow rehearse --chaos`: the simulation for anybody, with their own room and sale."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from frontrow.cli.rehearse import read_scene, rehearse
from frontrow.core.errors import ConfigError, FrontrowError
from frontrow.simulation.scene import Scene
from frontrow.simulation.world import run_seed

OWN = """
[room]
capacity = 2
window_size = 1
rate_per_s = 5

[rehearsal]
people = 1000

[rehearsal.chaos]
fans = 3
hold_s = 30
card_tries = 3
"""


def command(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(rehearse)
    return CliRunner().invoke(app, ["--chaos", *arguments], env={"COLUMNS": "200"})


def test_q1_anybody_plays_sales_in_which_things_fail_and_sees_what_happened() -> None:
    done = command("--histories", "2", "--seed", "5", "--jobs", "1")
    assert done.exit_code == 0, done.output
    assert "What failed meanwhile" in done.output
    assert "simulation: 2 seeds, 0 failed" in done.output


def test_the_own_room_and_the_own_sale_are_played(tmp_path: Path) -> None:
    config = tmp_path / "frontrow.toml"
    config.write_text(OWN)
    scene = read_scene(str(config), {"window_size": 2}, {"seats": 8})
    assert (scene.room.capacity, scene.room.window_size, scene.seats) == (2, 2, 8)
    assert (scene.fans, scene.hold_s, scene.card_tries) == (3, 30, 3)
    result = run_seed(3, scene)
    assert not result.broken
    assert result.trace != run_seed(3).trace
    done = command("--config", str(config), "--histories", "1", "--jobs", "1")
    assert done.exit_code == 0, done.output


def test_a_law_that_breaks_ends_with_1_and_says_how_to_replay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from frontrow.simulation import runs
    from tests.simulation.canaries import planted

    bug = planted("one_active_booking_per_seat")
    monkeypatch.setattr(
        runs, "play_many", lambda seeds, jobs, scene: (run_seed(seed, scene, bug=bug) for seed in seeds)
    )
    done = command("--histories", "3")
    assert done.exit_code == 1
    assert "replay: frontrow rehearse --chaos --histories 1 --seed " in done.output
    assert "1 failed" in done.output or "2 failed" in done.output or "3 failed" in done.output


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"fans": 0}, "fans must be a number from 1 to 100, not 0"),
        ({"seats": 100_000}, "seats must be a number from 4 to 400"),
        ({"hold_s": "long"}, "hold_s must be a number from 10"),
        ({"fault_rate": 3.0}, "fault_rate must be from 0 to 0.5, not 3.0"),
        ({"per_person": "often"}, "often"),
    ],
)
def test_what_cannot_be_played_is_a_clear_error(wrong: dict[str, object], said: str) -> None:
    with pytest.raises((ConfigError, FrontrowError), match=said):
        Scene(**wrong)  # type: ignore[arg-type]


def test_an_unknown_field_and_an_option_of_the_other_rehearsal_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "frontrow.toml"
    config.write_text("[rehearsal.chaos]\nfan = 3\n")
    said = command("--config", str(config))
    assert said.exit_code == 2
    assert "no field fan; it knows" in said.output
    assert "--people is not for --chaos" in command("--people", "5").output
