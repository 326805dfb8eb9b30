"""Links of the Markdown pages, made right for the site.

In the repository a page may link to any file. On the site, README and its neighbours are pages, and any other file is a
page that shows its text (`source/…`), so every link leads somewhere without a code host.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = "docs"
PAGES: Final = {  # files of the repository that are pages of the site
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "examples/README.md": "examples.md",
}
_FENCE: Final = re.compile(r"(^```.*?^```[^\n]*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"(?<=\]\()(?!https?:|mailto:|#|data:)([^)\s#]+)(#[^)\s]*)?(?=\))")


def site_path(path: str) -> str:
    """Where a file of the repository is on the site."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith(f"{DOCS}/"):
        return path.removeprefix(f"{DOCS}/")
    return f"source/{path.rstrip('/')}.md"


def local_links(text: str, path: str) -> Iterator[tuple[str, str]]:
    """(file or folder of the repository, anchor) of every local link on the page `path`."""
    for match in _LINK.finditer(_FENCE.sub("", text)):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1])), (match[2] or "")[1:]


def with_site_links(text: str, path: str) -> str:
    """The page `path` of the repository with links for the site."""
    here = posixpath.dirname(site_path(path))

    def changed(match: "re.Match[str]") -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1]))
        return posixpath.relpath(site_path(target), here or ".") + (match[2] or "")

    return _outside_code(text, lambda prose: _LINK.sub(changed, prose))


def source_page(path: str) -> str:
    """The page that shows a file of the repository, or lists a folder."""
    found = ROOT / path
    if found.is_dir():
        names = sorted(one.name for one in found.iterdir() if not one.name.startswith(("__", ".")))
        return f"# {path}\n\n" + "\n".join(f"- `{name}`" for name in names) + "\n"
    kind = {"py": "python", "toml": "toml", "yaml": "yaml", "yml": "yaml", "json": "json", "conf": "nginx"}
    fence = "`" * 4
    return f"# {path}\n\n{fence}{kind.get(found.suffix[1:], 'text')}\n{found.read_text('utf-8').rstrip()}\n{fence}\n"


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts = _FENCE.split(text)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))
