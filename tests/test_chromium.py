"""The browser of the tests comes with `make setup`; no machine needs one of its own (D1)."""

import os
from pathlib import Path

import pytest
from playwright._impl._driver import compute_driver_executable

from tests.support.chromium import NODE, UNPACKED, NoBrowser, browser_env, chromium


def a_program(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_the_browser_is_the_unpacked_one_whatever_the_system_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        a_program(tmp_path / name, "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert chromium({}) == str(UNPACKED / "chromium")


def test_frontrow_chromium_names_another_browser(tmp_path: Path) -> None:
    mine = a_program(tmp_path / "mine", "echo Chromium 1")
    assert chromium({"FRONTROW_CHROMIUM": mine}) == mine


def test_a_missing_browser_is_one_sentence_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoBrowser, match="run `make setup`, or set FRONTROW_CHROMIUM"):
        chromium({}, tmp_path)
    with pytest.raises(NoBrowser, match="FRONTROW_CHROMIUM names .*/nowhere, which is no file"):
        chromium({"FRONTROW_CHROMIUM": str(tmp_path / "nowhere")})


def test_a_browser_that_does_not_start_is_one_sentence_with_its_reason(tmp_path: Path) -> None:
    broken = a_program(tmp_path / "broken", "echo cannot open libnss3.so >&2; exit 127")
    with pytest.raises(NoBrowser, match="broken does not start: cannot open libnss3.so; set FRONTROW_CHROMIUM"):
        browser_env(broken)


def test_a_browser_without_system_libraries_starts_with_the_unpacked_ones(tmp_path: Path) -> None:
    needy = a_program(tmp_path / "needy", 'test -n "$LD_LIBRARY_PATH" && test -e "$LD_LIBRARY_PATH/libnss3.so"')
    assert browser_env(needy)["LD_LIBRARY_PATH"] == str(UNPACKED / "al2023" / "lib")


def test_d1_playwright_is_driven_by_the_node_of_the_wheel() -> None:
    """Its own needs libatomic.so.1, which a minimal Debian does not have."""
    assert compute_driver_executable()[0] == os.environ["PLAYWRIGHT_NODEJS_PATH"] == str(NODE)
    assert b"libatomic.so" not in NODE.read_bytes()
