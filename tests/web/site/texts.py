"""Finds every text of the pages that is to be translated: `_` in templates, `N_` in Python, `t` in scripts."""

import ast
import re
from pathlib import Path

import frontrow.web

WEB = Path(frontrow.web.__file__).parent
CALL = re.compile(r"""(?<![\w.])(?:_|N_|t|words)\(\s*(?:"((?:[^"\\]|\\.)+)"|'((?:[^'\\]|\\.)+)')""")


def texts_of(path: Path) -> set[str]:
    """The texts of one file."""
    source = path.read_text("utf-8")
    found = {ast.literal_eval(f'"{double}"') if double else single for double, single in CALL.findall(source)}
    return found - {"…"}  # in a docstring


def all_texts() -> dict[str, str]:
    """Text -> the file it stands in."""
    files = [
        *sorted((WEB / "templates").rglob("*.html")),
        WEB / "templates" / "room.js",
        *sorted((WEB / "static" / "js").rglob("*.js")),
        *sorted((WEB / "site").rglob("*.py")),
        WEB / "room" / "page_parts.py",
        WEB / "room" / "page.py",
        WEB / "server" / "overflow_page.py",
    ]
    return {text: path.name for path in files for text in sorted(texts_of(path))}
