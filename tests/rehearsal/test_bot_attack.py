"""`frontrow rehearse --red-team`: each check leaves bots a smaller share of the places, and people lose little."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from frontrow.cli.rehearse import make_limit
from frontrow.core.errors import InvalidInput
from frontrow.rehearsal.bot_attack import BotAttack, LayerResult, play_attack

SMALL = BotAttack(people=5_000, bots=5_000, addresses=250, cores=1)


def run(*args: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "frontrow.cli.main", "rehearse", *args]
    environment = os.environ | {"COLUMNS": "120"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


def test_no_layer_gives_bots_a_larger_share_and_the_last_leaves_them_nearly_none() -> None:
    results = list(play_attack(SMALL, make_limit))
    assert results[0] == LayerResult("nothing", 15_000, 5_000)
    assert all(after.bot_share <= before.bot_share for before, after in pairwise(results))
    assert results[-1].bot_share < 0.02
    assert results[-2].people_places > 0.95 * SMALL.people, "before codes, nearly all people keep their place"


def after(plan: BotAttack, layer: str) -> LayerResult:
    return next(one for one in play_attack(plan, make_limit) if one.layer.startswith(layer))


def test_a_tight_limit_per_address_stops_bots_that_share_addresses() -> None:
    tight = after(BotAttack(people=5_000, bots=5_000, addresses=5, per_ip="10/minute"), "limit per address")
    assert tight.bot_places < 2_500
    assert tight.people_places > 4_950


def test_bots_without_processors_cannot_pay_for_a_proof_of_work_and_listed_ones_still_less() -> None:
    plan = BotAttack(people=5_000, bots=5_000, addresses=250, cores=1, hashes_per_core_s=100_000, listed=0.9)
    easy, hard = after(plan, "proof of work"), after(plan, "… harder for listed")
    assert easy.bot_places == 1 * 100_000 * 1_800 // 25_000
    assert hard.bot_places < easy.bot_places / 2
    assert hard.people_places == 5_000, "a person's browser solves its own work"


def test_the_same_seed_is_the_same_attack_and_progress_reaches_the_end() -> None:
    heard: list[float] = []
    assert list(play_attack(SMALL, make_limit, heard.append)) == list(play_attack(SMALL, make_limit))
    assert heard == sorted(heard)
    assert heard[-1] == 1.0


def test_wrong_settings_are_named() -> None:
    for wrong in ({"bots": 0}, {"listed": 1.5}, {"people": 10**9}, {"tries": 10**8}, {"colour": 1}):
        with pytest.raises(InvalidInput):
            BotAttack.from_dict(wrong)


def test_the_command_prints_the_table(tmp_path: Path) -> None:
    config = tmp_path / "frontrow.toml"
    config.write_text("[rehearsal.bot_attack]\npeople = 2000\nbots = 2000\naddresses = 100\n")
    done = run("--red-team", "-c", str(config))
    assert done.returncode == 0, done.stderr
    assert "2,000 bots with 100 addresses against 2,000 people" in done.stdout
    assert "75.0%" in done.stdout
    assert "Verified-Fan codes" in done.stdout


@pytest.mark.parametrize("option", [["--bots", "0.5"], ["--chaos"]])
def test_options_of_other_rehearsals_are_refused(option: list[str]) -> None:
    done = run("--red-team", *option)
    assert done.returncode == 2
    assert "is not for --red-team" in done.stderr
