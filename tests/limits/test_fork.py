"""A process that forks while its threads use limiters: the child gets its answers, and the parent keeps what it had."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits.fork_scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
SHARED = (
    "somebody_waits_in_acquire",
    "somebody_waits_in_aacquire",
    "connection_of_the_parent",
    "connection_of_the_parents_loop",
    "reservation_of_the_parent",
    "leased_units_of_the_parent",
    "many_forks",
)
IN_MEMORY = ("somebody_waits_in_acquire", "somebody_waits_in_aacquire")


def check_scenario(name: str, url: str) -> None:
    command = [sys.executable, "-X", "dev", "-m", "tests.limits.fork_scenarios", name, url]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, f"14: the child hung\n{ended.stderr}"
    assert "ResourceWarning" not in ended.stderr


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_forked_child_gets_its_answers(redis_url: str, name: str) -> None:
    check_scenario(name, redis_url)


@pytest.mark.parametrize("sql_url", ["postgresql", "sqlite"], indirect=True)
@pytest.mark.parametrize("name", SHARED)
def test_a_child_forked_while_sql_is_used_gets_its_answers(sql_url: str, name: str) -> None:
    check_scenario(name, sql_url)


@pytest.mark.parametrize("name", IN_MEMORY)
def test_a_child_forked_while_somebody_waits_in_memory_gets_its_turn(name: str) -> None:
    check_scenario(name, "memory://")


CANARY = "import os, runpy; os.register_at_fork = lambda **_: None; runpy.run_module('{}', run_name='__main__')"


def test_canary_a_process_that_does_nothing_when_it_forks_is_caught() -> None:
    script = CANARY.format("tests.limits.fork_scenarios")
    command = [sys.executable, "-c", script, "held_lock_of_permits", "memory://"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 14, ended.stderr
