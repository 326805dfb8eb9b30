"""Free-threaded Python (3.13t, 3.14t): the limiter leaves the interpreter lock off and counts exactly.

Every free-threaded Python on the path runs the scenarios too. Without one, they run here with the store that such a
Python gets, the choice of that store is tested by itself, and the run says what it did not check. A job of the test
workflow has each of them and demands it by `FRONTROW_FREE_THREADED`. docs/limits-deployment.md says what was run.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCENARIOS = Path(__file__).with_name("thread_scenarios.py")
FREE = [found for name in ("python3.13t", "python3.14t", "python3.15t") if (found := shutil.which(name))]
WANTED = os.environ.get("FRONTROW_FREE_THREADED", "")  # like 3.14t: this one must be here
CHOICE = """
import sys
sys._is_gil_enabled = lambda: False
from frontrow.limits import Limiter
print(type(Limiter("1/minute")._store).__name__, "frontrow.limits.stores._kernel" in sys.modules)
"""


def run(python: str, *words: str) -> str:
    env = os.environ | {"PYTHONPATH": str(ROOT / "packages" / "limits" / "src")}
    done = subprocess.run([python, *words], env=env, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("python", [sys.executable, *FREE])
def test_threads_that_check_at_once_admit_exactly_the_quota(python: str) -> None:
    version, lock, store = run(python, "-W", "error", str(SCENARIOS)).split()
    assert (version[0], store) == ("3", "MemoryStore")
    assert lock == ("locked" if python == sys.executable else "free")


def test_a_free_threaded_python_gets_the_store_with_a_lock_and_never_loads_the_compiled_one() -> None:
    assert run(sys.executable, "-c", CHOICE) == "MemoryStore False"


def test_a_run_without_a_free_threaded_python_says_so(not_checked: Callable[[str], None]) -> None:
    assert not WANTED or f"python{WANTED}" in {Path(found).name for found in FREE}, f"python{WANTED} is not on the path"
    if not FREE:
        not_checked("the limiter on a free-threaded Python (no python3.13t, python3.14t or python3.15t on the path)")


def test_the_docs_name_the_pythons_that_the_workflow_runs_this_on() -> None:
    job = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["free-threaded"]
    versions = job["strategy"]["matrix"]["python"]
    assert versions == ["3.13t", "3.14t"]
    assert job["env"]["FRONTROW_FREE_THREADED"] == "${{ matrix.python }}"
    page = (ROOT / "docs" / "limits-deployment.md").read_text()
    statement = page.partition("## Free-threaded Python")[2].partition("\n## ")[0]
    assert all(f"`python{version}`" in statement for version in versions)
