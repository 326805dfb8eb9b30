"""Which changes a session notices: in a fork, or in a process of its own if only an import shows them."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.sources import ROOT

RULES = """
def fee(minor):
    return minor + 1


def doubled(minor):
    return minor * 2


def unused(minor):
    return minor - 1


def hasty(minor):
    while minor > 0:
        minor -= 1
    return minor


MOST = doubled(4)
"""
CHECKS = """
from shop.rules import MOST, fee, hasty


def test_the_fee_is_paid():
    assert fee(2) == 3


def test_there_is_a_bound():
    assert MOST == 8


def test_it_ends():
    assert hasty(3) == 0
"""
SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/shop/rules.py"]
pytest_add_cli_args_test_selection = ["checks"]
use_git_change_detection = false
also_copy = ["checks"]
"""


def test_each_change_is_noticed_by_a_fork_or_alone_or_by_nobody(tmp_path: Path) -> None:
    for name, text in {
        "src/shop/__init__.py": "",
        "src/shop/rules.py": RULES,
        "checks/test_rules.py": CHECKS,
        "pyproject.toml": SETTINGS,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    command = [sys.executable, "-m", "tests.mutants.mutation_session", "--jobs", "2", "--least-cpu-s", "1", "checks"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=150
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    listed = json.loads((tmp_path / "mutants/src/shop/rules.py.meta").read_text("utf-8"))["exit_code_by_key"]
    codes: dict[str, set[int]] = {}
    for change, code in listed.items():
        codes.setdefault(change.rpartition(".")[2].partition("__mutmut")[0].removeprefix("x_"), set()).add(code)
    assert codes.pop("hasty") >= {1}, "one of them never ends"
    assert codes == {"fee": {1}, "doubled": {1}, "unused": {33}}
