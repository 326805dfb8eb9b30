"""Q5: docs/proof.md is true: what it names exists, no requirement is missing, and people find the page."""

import ast
import importlib.util
import re

import pytest

from bench.fault_runs import FAULTS
from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs/proof.md").read_text("utf-8")
NAMED = re.findall(r"`([^`\n]+)`", PAGE)
TESTS = sorted({name for name in NAMED if name.startswith("tests/")})
COMMANDS = sorted({name for name in NAMED if name.startswith(("make ", "python -m "))})
REQUIREMENTS = ["N4", *(f"F{number}" for number in range(1, 10)), *(f"Q{number}" for number in range(1, 6))]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
FIRST_SCREEN_LINES = 32


def functions_of(source: str) -> set[str]:
    found = ast.walk(ast.parse(source))
    return {one.name for one in found if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}


def exists(name: str) -> bool:
    path, _, test = name.partition("::")
    if not (ROOT / path).exists():
        return False
    return not test or test.rpartition("::")[2] in functions_of((ROOT / path).read_text("utf-8"))


def runs(command: str) -> bool:
    """Whether the target or module is there, and the fault that it names."""
    first, _, rest = command.partition(" ")
    if first == "make":
        return rest.split()[0] in TARGETS
    module = rest.split()[1]
    spec = importlib.util.find_spec(module)
    faults = re.findall(r"--only (\w+)", command)
    return spec is not None and set(faults) <= {fault.name for fault in FAULTS}


@pytest.mark.parametrize("name", TESTS)
def test_every_test_that_the_page_names_exists(name: str) -> None:
    assert exists(name)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_the_page_names_exists(command: str) -> None:
    assert runs(command)


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_every_promise_has_a_row_that_says_how_it_is_tested(requirement: str) -> None:
    [row] = [line for line in PAGE.splitlines() if line.startswith(f"| {requirement} |")]
    _, promise, how = (part.strip() for part in row.strip("| ").split(" | ", 2))
    assert promise
    assert re.search(r"`(tests/|make |python -m )", how)


def test_a_test_or_command_that_does_not_exist_is_noticed() -> None:
    """The canary."""
    assert not exists("tests/docs/test_proof.py::test_that_nobody_wrote")
    assert not exists("tests/docs/test_nothing.py")
    assert not runs("make nothing")
    assert not runs("python -m bench.nothing")
    assert not runs("python -m bench.fault_runs --only no_such_fault")
    assert len(TESTS) > 30
    assert len(COMMANDS) > 8


def test_every_figure_has_its_command_and_its_date() -> None:
    table = PAGE.partition("## Figures of the last runs")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) >= 5
    for row in rows:
        assert re.match(r"\| `(make |python -m )[^`]+` \| 20\d\d-\d\d-\d\d \| \S", row), row


def test_the_page_is_on_the_first_screen_of_the_readme_and_in_the_site() -> None:
    first_screen = (ROOT / "README.md").read_text("utf-8").splitlines()[:FIRST_SCREEN_LINES]
    assert any("(docs/proof.md)" in line for line in first_screen)
    assert ": proof.md" in (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "(proof.md)" in (ROOT / "docs/contents.md").read_text("utf-8")
