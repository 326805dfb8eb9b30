"""The hook before a commit: a subject is short, imperative and about one change."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commit_subject import faults

ROOT = Path(__file__).parents[1]
GOOD = [
    "checkout: keep a slow capture from blocking others",
    "web, room: send X-RateLimit fields beside the IETF ones",
    "jobs: process what is due\n\nThe body may say anything; it was left alone.",
    "ledger: embed the schema number in the guides",
    'Revert "checkout: keep a slow capture from blocking others"',
]
BAD = [
    ("checkout: keep " + "seats " * 12, "characters"),
    ("keep seats", "is not `area: imperative`"),
    ("", "is not `area: imperative`"),
    ("worker: a payment that is captured is not read twice", "no imperative"),
    ("bench: formatted", "no imperative"),
    ("docs: adding a page", "no imperative"),
    ("api: transfers a ticket", "no imperative"),
    ("docs: add a page; bench: format it", "two changes"),
    ("docs: add a page.", "full stop"),
]


@pytest.mark.parametrize("message", GOOD)
def test_a_good_subject_passes(message: str) -> None:
    assert faults(message) == []


@pytest.mark.parametrize(("message", "what"), BAD)
def test_a_bad_subject_is_told_what_is_wrong(message: str, what: str) -> None:
    assert [fault for fault in faults(message) if what in fault]


def test_git_refuses_a_commit_with_a_bad_subject(tmp_path: Path) -> None:
    """With the hooks of `.pre-commit-config.yaml` installed, as CONTRIBUTING.md says."""
    binaries = Path(sys.executable).parent
    config = (ROOT / ".pre-commit-config.yaml").read_text().replace(".venv/bin/", f"{binaries}/")
    (tmp_path / ".pre-commit-config.yaml").write_text(config)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "commit_subject.py").write_text((ROOT / "tests" / "commit_subject.py").read_text())
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PRE_COMMIT_HOME": str(tmp_path / "home")}

    def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)

    assert run("git", "init", "--quiet").returncode == 0
    installed = run(binaries / "pre-commit", "install")
    assert "commit-msg" in installed.stdout, installed.stdout + installed.stderr
    commit = ("git", "-c", "user.name=A", "-c", "user.email=a@b.invalid", "commit", "--allow-empty", "-m")
    refused = run(*commit, "docs: added a page")
    assert refused.returncode != 0
    assert "no imperative" in refused.stdout + refused.stderr
    assert run(*commit, "docs: add a page").returncode == 0
