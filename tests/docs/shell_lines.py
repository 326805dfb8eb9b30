"""The shell commands of README.md, CONTRIBUTING.md and docs/, line by line."""

import re
from dataclasses import dataclass

from tests.docs.blocks import ROOT

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
SHELL = ("sh", "bash", "shell", "console")


@dataclass(frozen=True, slots=True)
class Line:
    """One command of a page; `text` as it is written, on one line."""

    page: str
    number: int
    text: str

    @property
    def plain(self) -> str:
        """Without the folder of the program."""
        return re.sub(r"^(\.venv|frontrow-tutorial)/bin/", "", self.text)


def shell_lines() -> list[Line]:
    """Every command: continued lines joined, comments on lines of their own left out."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            if match[2] not in SHELL:
                continue
            number = text.count("\n", 0, match.start(3)) + 1
            joined = re.sub(r"\\\n\s*", lambda _: "\0", match[3])
            for written in joined.splitlines():
                line = written.strip().removeprefix("$ ").replace("\0", " ")
                if line and not line.startswith("#"):
                    found.append(Line(str(page.relative_to(ROOT)), number, line))
                number += 1 + written.count("\0")
    return found


LINES = shell_lines()
