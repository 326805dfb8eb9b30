"""Architecture decisions: one form, all in the index, and every reference to one leads to a file."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "adr"
ADRS = sorted(FOLDER.glob("[0-9]*.md"))
NUMBERS = {path.name[:4] for path in ADRS}
STATUS = re.compile(r"accepted(, supersedes \d{4}(, \d{4})*)?|superseded by \d{4}")
SECTIONS = ["## Context", "## Decision", "## Consequences"]
MIN_LINES, MAX_LINES = 15, 50
REFERENCE = re.compile(r"ADRs? \[?(\d{3,4})\b|adr/(\d{4})-")
SUFFIXES = {".py", ".md", ".sql", ".lua", ".js", ".html", ".css", ".toml", ".yml", ".yaml", ".conf"}


def references(text: str) -> set[str]:
    """The numbers in `ADR 0001`, `ADR [0001](…)` and `adr/0001-…`."""
    return {first or second for first, second in REFERENCE.findall(text)}


@pytest.mark.parametrize("path", ADRS, ids=lambda path: path.name[:4])
def test_every_adr_has_the_one_form(path):
    lines = path.read_text("utf-8").splitlines()
    assert re.fullmatch(rf"# {path.name[:4]}: \S.*", lines[0])
    assert STATUS.fullmatch(lines[2].removeprefix("Status: "))
    assert [line for line in lines if line.startswith("## ")] == SECTIONS
    assert MIN_LINES <= len(lines) <= MAX_LINES


def test_the_index_shows_every_adr_once_with_its_title_and_status():
    index = (FOLDER / "README.md").read_text("utf-8")
    for path in ADRS:
        title, _, status = path.read_text("utf-8").splitlines()[:3]
        row = f"| [{path.name[:4]}]({path.name}) | {title[8:]} | {status.removeprefix('Status: ')} |"
        assert index.count(row) == 1, row


def test_every_adr_that_is_mentioned_exists():
    unknown = {}
    for folder in ("src", "packages", "tests", "docs", "bench", "deploy", "examples"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in SUFFIXES and "node_modules" not in path.parts and path != Path(__file__):
                unknown[path] = references(path.read_text("utf-8")) - NUMBERS
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml"):
        unknown[ROOT / name] = references((ROOT / name).read_text("utf-8")) - NUMBERS
    assert not {str(path.relative_to(ROOT)): found for path, found in unknown.items() if found}


def test_a_reference_to_a_missing_adr_would_be_caught():
    assert references("see ADR 0001, ADR [0002](adr/0002-x.md) and ADR 9999") == {"0001", "0002", "9999"}
