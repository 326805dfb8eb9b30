"""`frontrow` imports what the command at hand needs and nothing else, and says what is missing."""

import importlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from frontrow.cli.main import COMMANDS, GROUPS

SLOW = ("litestar", "sqlalchemy", "stripe", "asyncpg", "httpx", "jinja2", "cryptography", "icalendar", "redis", "babel")
# tells on the last line which of the slow libraries were imported
PROGRAM = """
import sys
from frontrow.cli.main import main
sys.modules.update(dict.fromkeys({missing}))
sys.argv = ["frontrow", {words}]
try:
    main()
finally:
    print("imported:", *sorted(set(sys.modules) & {slow}))
"""


def run(*words: str, missing: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    program = PROGRAM.format(words=", ".join(map(repr, words)), slow=set(SLOW), missing=missing)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)


def test_help_lists_every_command_and_imports_none_of_them() -> None:
    done = run("--help")
    assert done.returncode == 0, done.stderr
    assert [name for name in (*COMMANDS, *GROUPS) if f" {name} " not in done.stdout] == []
    assert done.stdout.splitlines()[-1] == "imported:"


def test_a_command_of_the_limiter_imports_no_platform() -> None:
    done = run("limits", "--help")
    assert "show" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "imported:"


def test_a_missing_library_is_named_with_what_to_install() -> None:
    done = run("ledger", "status", missing=("msgspec",))
    assert (done.returncode, done.stderr.strip()) == (
        1,
        "`frontrow ledger` needs msgspec, which is not installed: pip install 'frontrow[boxoffice]'",
    )


def test_ctrl_c_while_modules_load_is_no_traceback(tmp_path: Path) -> None:
    """As a person presses it: the signal comes in the middle of an import."""
    (tmp_path / "msgspec.py").write_text("raise KeyboardInterrupt")
    command = [sys.executable, "-m", "frontrow.cli.main", "serve"]
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_version_is_that_of_the_package() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, f"frontrow {version('frontrow')}")


@pytest.mark.parametrize(("words", "wanted"), [("frontrow re", "rehearse"), ("frontrow limits sh", "show")])
def test_the_shell_completes_commands(words: str, wanted: str) -> None:
    env = os.environ | {"_FRONTROW_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [str(Path(sys.executable).parent / "frontrow")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert wanted in done.stdout.split(), done.stderr


@pytest.mark.parametrize("name", GROUPS)
def test_the_line_of_a_group_is_its_own(name: str) -> None:
    module, line, _ = GROUPS[name]
    assert importlib.import_module(module).app.info.help == line


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_command_is_its_own(name: str) -> None:
    module, line, _ = COMMANDS[name]
    told = getattr(importlib.import_module(module), name.replace("-", "_")).__doc__
    assert " ".join(told.partition("\n\n")[0].split()) == line
