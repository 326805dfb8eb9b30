"""Which tests share a worker."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.worker_groups import SHARED, group_of

ROOT = Path(__file__).parents[2]
CARD = "tests/journeys/test_card_form.py"


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/browser/test_gate.py::test_b10", "tests/browser/test_gate.py"),
        (f"{CARD}::test_a_guest_pays[embedded-return]", f"{CARD} embedded"),
        (f"{CARD}::test_away[clustered]", f"{CARD} clustered"),
        (f"{CARD}::test_letters[ja-clustered]", f"{CARD} clustered"),
        (f"{CARD}::test_the_click", f"{CARD} "),
        ("tests/app/test_settings_used.py::test_one[server.host]", "settings"),
        ("tests/shared/test_money.py::test_a[embedded]", "tests/shared/test_money.py::test_a[embedded]"),
    ],
)
def test_the_group_of_a_test(nodeid: str, group: str) -> None:
    assert group_of(nodeid) == group


def test_the_files_named_are_there() -> None:
    assert [file for file in SHARED if not (ROOT / file).exists()] == []


TESTS = """
import os
import pytest

@pytest.mark.parametrize("form", ["embedded", "clustered"])
@pytest.mark.parametrize("number", range(6))
def test_it(form, number):
    print(f"{form} ran in {os.environ['PYTEST_XDIST_WORKER']}")
"""


def test_the_groups_reach_the_workers(tmp_path: Path) -> None:
    """A version of xdist or pytest that breaks the groups, as one did, would be seen here."""
    folder = tmp_path / "tests" / "journeys"
    folder.mkdir(parents=True)
    (folder / "test_two.py").write_text(TESTS)
    plugins = ["-p", "xdist", "-p", "tests.support.worker_groups"]
    command = [sys.executable, "-m", "pytest", *plugins, "-n", "2", "--dist", "loadgroup", "-rP", "-q", folder]
    env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    ran = set(re.findall(r"(\w+) ran in (\w+)", done.stdout))
    assert {form for form, _ in ran} == {"embedded", "clustered"}, done.stdout[-2000:] + done.stderr[-2000:]
    assert len(ran) == 2, "each form in one worker"
