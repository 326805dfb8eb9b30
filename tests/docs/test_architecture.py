"""Every file and folder named in docs/architecture.md, docs/from-the-design.md and CONTRIBUTING.md exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = (
    ROOT / "src" / "frontrow",
    ROOT / "packages" / "limits" / "src" / "frontrow",
    ROOT / "packages" / "limits-service" / "src" / "frontrow",
)
PAGES = [ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "from-the-design.md"]
QUOTED = re.compile(r"`([^`\n]+)`")
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
TREE = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"[\w./*-]+\.(py|pyx|pyi|js|css|html|json|lua|sql|po|toml|md|yml|yaml|conf|txt)")
FOLDER = re.compile(r"[\w.-]+(/[\w.-]+)*/|(tests|docs|bench|deploy|src)/[\w./-]+")
MIN_PATHS = {"from-the-design.md": 20}  # of other pages: 40


def mentioned_paths(text: str) -> list[str]:
    """Paths between backticks, without those in code blocks."""
    quoted = QUOTED.findall(BLOCK.sub("", text))
    return [word for word in quoted if FILE.fullmatch(word) or FOLDER.fullmatch(word)]


def tree_paths(text: str) -> list[str]:
    """Folders of the indented listings: two spaces per level, the name first."""
    paths, parents = [], []
    for block in TREE.findall(text):
        for line in block.splitlines():
            name = line.split()[0].rstrip("/")
            depth = (len(line) - len(line.lstrip())) // 2
            parents[depth:] = [name]
            paths.append("/".join(parents))
    return paths


def missing(paths: list[str]) -> list[str]:
    """The paths that exist neither in the repository's root nor in a package."""
    return [path for path in paths if not any(any(base.glob(path.rstrip("/"))) for base in (ROOT, *SOURCES))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_on_the_page_exists(page):
    text = page.read_text("utf-8")
    paths = mentioned_paths(text) + tree_paths(text)
    assert len(paths) >= MIN_PATHS.get(page.name, 40)
    assert not missing(paths)


def test_the_tree_shows_every_folder_of_the_package():
    shown = set(tree_paths(PAGES[0].read_text("utf-8")))
    top = {path.name for source in SOURCES for path in source.iterdir() if (path / "__init__.py").exists()}
    below = {
        f"{system}/{path.name}"
        for system in ("limits", "waitingroom", "boxoffice", "web")
        for source in SOURCES
        for path in (source / system).glob("*/")
        if (path / "__init__.py").exists()
    }
    assert not (top | below) - shown


def test_a_wrong_path_would_be_caught():
    text = "`core/clock.py`, `core/clocks.py`, `boxoffice/nothing/`, `HoldPlaced`, `make test`"
    assert missing(mentioned_paths(text)) == ["core/clocks.py", "boxoffice/nothing/"]
    assert missing(tree_paths("```text\ncore/  x\nweb/  x\n  lame/  x\n```\n")) == ["web/lame"]


def test_every_method_on_the_page_is_in_the_file_that_its_step_names():
    """`Class.method` in a step is defined in one of the files of that step."""
    steps = re.split(r"^\d+\. ", PAGES[0].read_text("utf-8"), flags=re.MULTILINE)
    found = 0
    for step in steps[1:]:
        files = [path for path in mentioned_paths(step) if path.endswith(".py")]
        found_files = [source / path for path in files for source in SOURCES if (source / path).exists()]
        text = "".join(path.read_text("utf-8") for path in found_files)
        for owner, method in re.findall(r"`([A-Z]\w+)\.(\w+)`", step):
            found += 1
            assert re.search(rf"^class {owner}\b", text, re.MULTILINE), (owner, files)
            assert re.search(rf"^    (?:async )?def {method}\b", text, re.MULTILINE), (owner, method, files)
    assert found >= 2
