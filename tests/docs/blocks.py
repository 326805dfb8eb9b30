"""The code blocks of README.md and docs/."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"(?P<before>[^\n]*\n)?^```(?P<kind>\w+)[^\n]*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
NO_RUN = re.compile(r"<!-- no-run: \S.{5,} -->")
REDIS_URL = "redis://127.0.0.1:6379/0"
POSTGRES_URL = re.compile(r"postgresql://\w+@127\.0\.0\.1:5432/\w+")


def blocks(kind: str) -> list[tuple[Path, int, str, str]]:
    """(page, line, the line before, code) of every block of a language."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in BLOCK.finditer(text):
            if match["kind"] == kind:
                line = text.count("\n", 0, match.start("code")) + 1
                found.append((page, line, match["before"] or "", match["code"]))
    return found


PYTHON = blocks("python")
RUN = [(page, line, code) for page, line, before, code in PYTHON if not NO_RUN.search(before)]
