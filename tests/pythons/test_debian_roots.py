"""D1, O1: how a minimal Debian is found, kept and entered. `make test-pythons` makes real ones."""

import contextlib
import io
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pythons import debian_roots
from tests.pythons.debian_roots import (
    APART,
    ENTER,
    KEEP_S,
    PAUSE_S,
    DebianRoot,
    NotMade,
    archive_of,
    cache_folder,
    clone_project,
    debian_archive,
    debian_root,
    environment,
    is_fresh,
    try_again,
)
from tests.pythons.runs import changed_files
from tests.support.eventually import eventually_sync

STANZA = """Types: deb
URIs: http://mirror.example.org/debian-security
Suites: bookworm-security
Components: main

Types: deb
URIs: http://mirror.example.org/debian/
Suites: bookworm bookworm-updates
Components: main
"""


@pytest.mark.parametrize(
    ("sources", "archive"),
    [
        ("deb http://mirror.example.org/debian bookworm main\n", "http://mirror.example.org/debian"),
        ("# deb http://old.example.org/debian jessie main\n", None),
        (
            "deb [signed-by=/k.gpg arch=amd64] https://m.example.org/debian/ sid contrib main",
            "https://m.example.org/debian",
        ),
        ("deb https://tools.example.org/apt stable main\n", None),
        ("deb http://archive.example.org/ubuntu noble main universe\n", None),
        (STANZA, "http://mirror.example.org/debian"),
        ("", None),
    ],
)
def test_the_archive_is_the_one_that_this_machines_sources_name(sources: str, archive: str | None) -> None:
    assert archive_of(sources) == archive


def test_both_forms_of_sources_are_read_and_the_environment_comes_first(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "a.list").write_text("deb https://tools.example.org/apt stable main\n")
    with pytest.raises(NotMade, match="set DEBIAN_ARCHIVE"):
        debian_archive({}, tmp_path)
    (tmp_path / "sources.list.d" / "debian.sources").write_text(STANZA)
    assert debian_archive({}, tmp_path) == "http://mirror.example.org/debian"
    assert debian_archive({"DEBIAN_ARCHIVE": "http://mine"}, tmp_path) == "http://mine"


@pytest.mark.parametrize(
    ("answers", "succeeds", "asked"), [([True], 1, 1), ([False, False, True], 1, 3), ([False] * 5, 0, 3)]
)
def test_an_archive_that_does_not_answer_is_asked_three_times(answers: list[bool], succeeds: int, asked: int) -> None:
    pauses: list[float] = []
    left = iter(answers)
    assert try_again(lambda: next(left), sleep=pauses.append) is bool(succeeds)
    assert len(answers) - len(list(left)) == asked
    assert pauses == [PAUSE_S] * (asked - 1)


def test_a_kept_root_is_used_for_a_week_and_lies_where_only_its_owner_writes(tmp_path: Path) -> None:
    archive = tmp_path / "trixie.tar"
    assert not is_fresh(archive, 0)
    archive.touch()
    made_s = archive.stat().st_mtime
    assert is_fresh(archive, made_s + KEEP_S - 1)
    assert not is_fresh(archive, made_s + KEEP_S)
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "frontrow" / "debian-roots"
    assert cache_folder({}).is_relative_to(Path.home())


def test_a_stranger_gets_the_way_to_registries_and_nothing_else_of_ours() -> None:
    ours = {
        "PATH": "/opt/ours",
        "HOME": "/home/ours",
        "FRONTROW_SERVER_PORT": "1",
        "PYTHONPATH": "/x",
        "LD_PRELOAD": "x",
    }
    ways = {
        "https_proxy": "http://p",
        "NO_PROXY": "a",
        "PIP_INDEX_URL": "i",
        "UV_DEFAULT_INDEX": "i",
        "npm_config_registry": "n",
    }
    given = environment(ours | ways)
    assert given | ways == given
    assert given["HOME"] == "/home/stranger"
    assert given["PATH"] == "/usr/bin:/bin"
    assert not {"FRONTROW_SERVER_PORT", "PYTHONPATH", "LD_PRELOAD"} & given.keys()


def test_who_is_not_root_is_told_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NotMade, match="sudo make test-pythons"), debian_root("trixie", io.StringIO()):
        pass


def test_an_archive_that_answers_nothing_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """debootstrap is a program that always fails, as it does without an archive."""
    programs, kept = tmp_path / "bin", tmp_path / "tmp"
    programs.mkdir()
    kept.mkdir()
    (programs / "debootstrap").write_text("#!/bin/sh\nexit 1\n")
    (programs / "debootstrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DEBIAN_ARCHIVE", "http://127.0.0.1:1/debian")
    monkeypatch.setattr(debian_roots.tempfile, "tempdir", str(kept))
    monkeypatch.setattr(debian_roots, "PAUSE_S", 0)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(debian_roots, "APART", ["env"])
    monkeypatch.setattr(debian_roots, "OWN_MOUNTS", [])
    refused = pytest.raises(NotMade, match=r"got no trixie from .* in 3 tries")
    with refused, (tmp_path / "log").open("w") as log, debian_root("trixie", log):
        pass
    assert (tmp_path / "log").read_text().count("$ debootstrap --variant=minbase") == 3
    assert list(kept.iterdir()) == []
    assert not (tmp_path / "cache").exists()


def test_d1_a_stranger_gets_the_last_commit_and_shares_nothing(tmp_path: Path) -> None:
    project, git = tmp_path / "project", ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    project.mkdir()
    for number in (1, 2):
        (project / "file").write_text(f"version {number}")
        for words in (["init", "--quiet"], ["add", "file"], ["commit", "--quiet", "-m", f"version {number}"]):
            subprocess.run([*git, *words], cwd=project, check=True)
    (project / "file").write_text("not committed")
    clone_project(project, tmp_path / "clone")
    assert (tmp_path / "clone" / "file").read_text() == "version 2"
    assert not list((tmp_path / "clone" / ".git" / "objects" / "info").glob("alternates"))
    assert changed_files(project) == [" M file"]


def test_d1_a_command_that_takes_too_long_ends_with_everything_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, not_checked: Callable[[str], None]
) -> None:
    """In this machine's own root, which has its mounts, as an account without rights. A killed run once went on inside,
    because who changes accounts is no longer told that the parent died."""
    if os.geteuid() != 0 or subprocess.run([*APART, "true"], capture_output=True).returncode:
        not_checked("that a run in a Debian root ends as a whole (it needs root and namespaces)")
        return
    monkeypatch.setattr(debian_roots, "ENTER", ENTER[ENTER.index("root=$1") :])
    marked = f"sleep 3{os.getpid()}"
    with (tmp_path / "log").open("w+") as log:
        assert DebianRoot(Path("/")).run("exit 7", 60, log, who="65534") == 7
        assert DebianRoot(Path("/")).run(f"id -u; {marked} & {marked}", 2, log, who="65534") == 124
    assert "65534\n" in (tmp_path / "log").read_text()
    eventually_sync(lambda: _processes(marked), until=lambda left: left == [])


def _processes(command: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if path.read_bytes().replace(b"\0", b" ").strip() == command.encode():
                found.append(path.parent.name)
    return found
