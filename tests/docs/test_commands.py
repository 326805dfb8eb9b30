"""Every shell command of README.md, CONTRIBUTING.md and docs/ is run here, or read by the program it is for.

Each line of a `sh` block is one of these: a `frontrow` command that the real command line reads to the last option, and
that runs here if it needs nothing but a folder (RUN); a `make` target that exists; an installation of extras that
exist; or another program with its reason in OTHERS. Nothing else is accepted, so no line is skipped in silence. The
commands that serve are run by the tests in SERVED.
"""

import importlib
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from frontrow.cli.main import COMMANDS, GROUPS
from tests.docs.test_docs import ROOT

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
SHELL = ("sh", "bash", "shell", "console")
LOOKS_LIKE_SHELL = re.compile(r"\s*(\$ )?(frontrow|make|pip|\.venv/bin/\w+) ")
ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")
OTHERS = {  # programs of other people: what checks that the line is right
    "python3": "makes an environment; tests/test_packaging.py installs into one",
}
SERVED = {  # commands that serve until they are stopped -> the test that starts them
    "serve": "tests/docs/test_tutorial.py",
    "room serve": "tests/browser/test_other_shops.py",
    "demo": "tests/app/test_demo.py",
}
RUN = [  # in one folder, in this order; the rest needs a server, a ticket or an hour
    'organiser create "City Hall" --email ada@example.org --invite',
    "organiser list",
    "ledger migrate",
    "ledger backup 2026-11-15.backup",
    "event plan generate stadium --seats 50000 -o plan.json",
    "event plan export plan.json -o pretix.json",
    "event plan show plan.json --summary",
    "size --people 10000000 --seats 50000",
]


def shell_lines() -> list[tuple[str, str]]:
    """(where, command) of every command: continued lines joined, comments removed, pipes and `&&` taken apart."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            if match[2] not in SHELL:
                continue
            line = text.count("\n", 0, match.start(3)) + 1
            for number, written in enumerate(match[3].replace("\\\n", " ").splitlines()):
                for part in _parts(written.strip().removeprefix("$ ")):
                    found.append((f"{page.relative_to(ROOT)}:{line + number}", part))
    return found


def _parts(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    parts: list[list[str]] = [[]]
    for word in lexer:
        if word in ("|", "&&", "||", ";"):
            parts.append([])
        elif word not in ("<", ">", ">>", "&"):
            parts[-1].append(word)
    return [shlex.join(part) for part in parts if part]


LINES = shell_lines()


def command_of(words: list[str]) -> tuple[Any, str, list[str]]:
    """The command of the real command line that these words name, its name and its arguments."""
    name, rest = words[0], words[1:]
    assert name in COMMANDS | GROUPS, f"`frontrow {name}` does not exist"
    command: Any = typer.main.get_command(_app_of(name))
    while getattr(command, "commands", None):
        assert rest, f"`frontrow {name}` needs a command"
        assert rest[0] in command.commands, f"`frontrow {name} {rest[0]}` does not exist"
        command, name, rest = command.commands[rest[0]], f"{name} {rest[0]}", rest[1:]
    return command, name, rest


def check_line(line: str, folder: Path) -> None:
    """Raise if a line is not what it should be."""
    words = shlex.split(line)
    while words and ASSIGNMENT.fullmatch(words[0]):
        words.pop(0)
    program = words[0].rpartition("/")[2] if words else ""
    if program == "frontrow":
        if words[1] in ("--version", "--help", "--install-completion"):
            return
        command, name, rest = command_of(words[1:])
        for word in rest:  # files that a command reads must be there to be read
            if re.fullmatch(r"[\w-]+\.(json|csv|jsonl|toml|backup|bin)", word):
                (folder / word).touch()
        command.make_context(name, rest)
    elif program == "make":
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert {word for word in words[1:] if "=" not in word} <= targets
    elif program == "pip":
        extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
        named = {one for word in words for one in re.findall(r"\[([\w,-]+)\]", word)}
        assert {one for group in named for one in group.split(",")} <= extras
    else:
        assert program in OTHERS, f"{program}: run it, or say in OTHERS what checks the line"


@pytest.mark.parametrize(("where", "line"), LINES, ids=[f"{where} {line[:40]}" for where, line in LINES])
def test_a_command_of_the_docs_is_right(where: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_line(line, tmp_path)


def test_what_needs_only_a_folder_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FRONTROW_PEOPLE_ARGON2_MEMORY_KIB", "8")
    written = {line.removeprefix(".venv/bin/") for _, line in LINES}
    for text in RUN:
        words = shlex.split(text)
        assert shlex.join(["frontrow", *words]) in written, f"{text} is in no page"
        done = CliRunner().invoke(_app_of(words[0]), words[1:])
        assert done.exit_code == 0, f"{text}: {done.output}"
    assert json.loads((tmp_path / "pretix.json").read_text())["zones"]
    assert (tmp_path / "2026-11-15.backup").exists()


def _app_of(name: str) -> typer.Typer:
    if name in GROUPS:
        app: typer.Typer = importlib.import_module(GROUPS[name][0]).app
        return app
    app = typer.Typer()
    app.command()(getattr(importlib.import_module(COMMANDS[name][0]), name.replace("-", "_")))
    return app


@pytest.mark.parametrize("command", SERVED)
def test_a_command_that_serves_is_started_by_a_test(command: str) -> None:
    assert [line for _, line in LINES if re.search(rf"frontrow {command}\b", line)], "it is in the docs"
    assert command.split()[-1] in (ROOT / SERVED[command]).read_text()


def test_no_command_hides_in_a_block_without_a_language() -> None:
    hidden = []
    for page in PAGES:
        for match in FENCE.finditer(page.read_text("utf-8")):
            if match[2] not in (*SHELL, "python", "toml", "text", "json", "sql", "mermaid", "yaml", "html"):
                hidden += [f"{page.name}: {one}" for one in match[3].splitlines() if LOOKS_LIKE_SHELL.match(one)]
    assert hidden == []


@pytest.mark.parametrize(
    "line",
    ["frontrow serv", "frontrow serve --no-such-option", "frontrow ledger migrat", "make nothing", "rm -rf /"],
)
def test_a_wrong_line_would_be_caught(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception):  # noqa: B017  # an assertion, or the command line's own error
        check_line(line, tmp_path)
