"""Finds every text of the pages that is to be translated.

Templates say `_("…")` and `_.ngettext("…", "…", n)`, Python says `N_("…")`, scripts say `t("…")` and `tn("…", "…", n)`.
"""

import ast
import re
from functools import cache
from pathlib import Path

import frontrow.web

WEB = Path(frontrow.web.__file__).parent
QUOTED = r"""(?:"((?:[^"\\]|\\.)+)"|'((?:[^'\\]|\\.)+)')"""
TEXT = re.compile(rf"(?<![\w.])(?:_|N_|t|words)\(\s*{QUOTED}")
PLURAL = re.compile(rf"(?:\.ngettext|\btn)\(\s*{QUOTED}\s*,\s*{QUOTED}")
SHARED = "shared"
# The catalogue of a file, by the beginning of its path. Everything else that fans see is in `fans`.
CATALOGUES = {
    "templates/organiser/": "organiser",
    "static/js/organiser/": "organiser",
    "site/organiser/": "organiser",
    "templates/console/": "console",
    "static/js/console/": "console",
    "site/console/": "console",
    "templates/gate": "gate",
    "static/js/gate/": "gate",
    "site/gate/": "gate",
    "templates/room.": "room",
    "templates/overflow.": "room",
    "site/fans/waiting_room.": "room",
    "endpoints/room/": "room",
    "http/overflow_page.": "room",
    "templates/base.": SHARED,
    "templates/maintenance.": SHARED,
    "templates/problem.": SHARED,
    "templates/style-guide.": SHARED,
    "static/js/words.": SHARED,
    "site/error_pages.": SHARED,
    "site/event_display.": SHARED,
}


def _unquoted(double: str, single: str) -> str:
    return str(ast.literal_eval(f'"{double}"')) if double else single


def texts_of(path: Path) -> set[str]:
    """The texts of one file."""
    found = {_unquoted(*quoted) for quoted in TEXT.findall(path.read_text("utf-8"))}
    return found - {"…"}  # in a docstring


def plurals_of(path: Path) -> dict[str, str]:
    """The texts of one file that depend on a number: singular -> plural."""
    pairs = ((_unquoted(*found[:2]), _unquoted(*found[2:])) for found in PLURAL.findall(path.read_text("utf-8")))
    return {one: many for one, many in pairs if one != "…"}  # in a docstring


def source_files() -> list[Path]:
    """Every file that says something to people."""
    return [
        *sorted((WEB / "templates").rglob("*.html")),
        WEB / "templates" / "room.js",
        *sorted((WEB / "static" / "js").rglob("*.js")),
        *sorted((WEB / "site").rglob("*.py")),
        WEB / "endpoints" / "room" / "page_texts.py",
        WEB / "endpoints" / "room" / "page.py",
        WEB / "http" / "overflow_page.py",
    ]


@cache
def all_texts() -> dict[str, str]:
    """Text -> the file it stands in. A text with a plural is known by its singular."""
    return {text: path.name for path in source_files() for text in sorted({*texts_of(path), *plurals_of(path)})}


@cache
def all_plurals() -> dict[str, str]:
    """Singular -> plural."""
    return {one: many for path in source_files() for one, many in plurals_of(path).items()}


def catalogue_of_texts() -> dict[str, str]:
    """Text -> the name of the catalogue it belongs to: the pages that say it, `shared` if there are several."""
    found: dict[str, set[str]] = {}
    for path in source_files():
        name = path.relative_to(WEB).as_posix()
        catalogue = next((one for start, one in CATALOGUES.items() if name.startswith(start)), "fans")
        for text in (*texts_of(path), *plurals_of(path)):
            found.setdefault(text, set()).add(catalogue)
    return {text: names.pop() if len(names) == 1 else SHARED for text, names in found.items()}
