"""The site's own files: read and compressed once at start-up, then served from memory.

All of them have addresses under one hash (`/static/<hash>/…`), so relative imports between modules keep working and
every answer may be cached for a year. An installed wheel has them minified (setup.py), a clone as they are written. A
module's texts for translation (`t("…")`) are found here too.
"""

import gzip
import hashlib
import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

KINDS: Final = {
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "png": "image/png",
    "woff2": "font/woff2",
    "wasm": "application/wasm",
    "json": "application/json",
    "webmanifest": "application/manifest+json",
    "txt": "text/plain",
}
PACKED: Final = frozenset({"png", "woff2"})
# A style sheet that is served as one file but written as several.
SHEETS: Final = {"css/site.css": ("css/tokens.css", "css/base.css", "css/parts.css", "css/fans.css", "css/seats.css")}
MIN_GZIP_BYTES: Final = 400
THEME: Final = "theme"  # in the place of the files' hash
_IMPORT: Final = re.compile(r"""(?:from|import)\s*\(?\s*"(\.{1,2}/[^"]+\.js)\"""")
_TEXT: Final = re.compile(r"""\btn?\(\s*"((?:[^"\\]|\\.)+)\"""")


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is sent."""

    body: bytes
    gzipped: bytes | None
    kind: str


class Assets:
    """Every file under `static/`, by its path."""

    def __init__(self, folder: Traversable) -> None:
        raw = dict(_walk(folder, ""))
        for sheet, parts in SHEETS.items():
            raw[sheet] = b"\n".join(raw[part] for part in parts)
        own = {path: body.decode() for path, body in raw.items() if path.endswith(".js") and not _is_vendored(path)}
        self._texts = {path: texts_in(source) for path, source in own.items()}
        self._imports = {path: _imports(path, body.decode()) for path, body in raw.items() if path.endswith(".js")}
        digest = hashlib.sha256()
        for path, body in sorted(raw.items()):
            digest.update(f"{path} {len(body)}\n".encode() + body)
        self.hash = digest.hexdigest()[:16]
        self.files = {path: _packed(path, body) for path, body in sorted(raw.items())}

    def url(self, path: str) -> str:
        """The address of a file. An unknown file is a mistake in a template."""
        if path not in self.files:
            raise KeyError(f"there is no static file {path}")
        return f"/static/{self.hash}/{path}"

    def with_imports(self, path: str) -> list[str]:
        """A module and everything it imports, each once, the module first."""
        found: list[str] = []
        todo = [path]
        while todo:
            one = todo.pop(0)
            if one not in found:
                found.append(one)
                todo += self._imports.get(one, ())
        return found

    def texts(self, path: str) -> frozenset[str]:
        """The texts of a module and its imports."""
        return frozenset(text for one in self.with_imports(path) for text in self._texts.get(one, ()))


@lru_cache
def theme_asset(style: str) -> tuple[str, Asset]:
    """The address and the file of a theme's style."""
    body = style.encode()
    return f"/static/{THEME}/{hashlib.sha256(body).hexdigest()[:16]}.css", _packed("theme.css", body)


@lru_cache(1)
def site_assets() -> Assets:
    """The files of this package."""
    return Assets(files("frontrow.web") / "static")


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for one in folder.iterdir():
        path = f"{prefix}{one.name}"
        if one.is_dir():
            found += _walk(one, f"{path}/")
        elif one.name.rpartition(".")[2] in KINDS:
            found.append((path, one.read_bytes()))
    return found


def _is_vendored(path: str) -> bool:
    return path.startswith("vendor/")


def _packed(path: str, body: bytes) -> Asset:
    ending = path.rpartition(".")[2]
    small = None
    if ending not in PACKED and len(body) >= MIN_GZIP_BYTES:
        small = gzip.compress(body, 9, mtime=0)
    return Asset(body, small, KINDS[ending])


def texts_in(source: str) -> list[str]:
    """The texts of a script: every `t("…")`, and the singular of every `tn("…", "…", n)`."""
    return [text.replace('\\"', '"') for text in _TEXT.findall(source)]


def _imports(path: str, source: str) -> list[str]:
    base = posixpath.dirname(path)
    return [posixpath.normpath(posixpath.join(base, name)) for name in _IMPORT.findall(source)]
