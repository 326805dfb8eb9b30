"""Finds code that nobody calls: `python -m tests.dead_code`, part of `make check`.

vulture compares the names that are defined with the names that are used in src, packages, tests, bench and examples.
Names that occur in templates, or as a string in the packages (a route's handler, a forward reference), count as used.
Fields of classes are not checked: they are JSON bodies, settings and rows, and their readers are elsewhere. Everything
else must be used, or be in ALLOWED with a reason.
"""

import ast
import re
import sys
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "src" / "frontrow", ROOT / "packages" / "limits" / "src" / "frontrow")
READ = [ROOT / name for name in ("src", "packages", "tests", "bench", "examples")]
DECORATORS = ["@*.command", "@*.callback"]  # typer calls them
ALLOWED = {
    "down_revision": "Alembic reads it",
    "exec_module": "importlib calls it",
    "tb": "the third argument of __exit__",
    "acharge": "public API of the limiter",
    "renew_pass": "public API of the client",
    "get_room": "public API of the client",
    "make_api_key": "public API of the client",
    "door_bundle": "public API of the client",
    "get_buffer": "asyncio calls it",
    "buffer_updated": "asyncio calls it",
    "message_event": "uvicorn reads it",
    "total_requests": "uvicorn reads it",
    "_should_upgrade": "uvicorn calls it",
    "_client_async": "the Stripe client reads it",
    "request_body": "Litestar reads it",
    "core_fonts_encoding": "fpdf2 reads it",
    "readable": "io calls it",
    "readinto": "io calls it",
    "process_view": "Django calls it",
    "on_app_init": "Litestar calls it",
    "_fulfils_ports": "mypy checks the protocols with it",
}


def class_fields(path: Path) -> set[int]:
    """Lines of annotated or assigned names directly inside classes."""
    classes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ClassDef)]
    return {line.lineno for node in classes for line in node.body if isinstance(line, ast.AnnAssign | ast.Assign)}


def texts_of(pattern: str) -> str:
    """All files of the packages with such a name."""
    return " ".join(path.read_text("utf-8") for source in SOURCES for path in source.rglob(pattern))


def dead_code() -> list[str]:
    """One line per definition in the packages that nobody uses."""
    scan = Vulture(ignore_decorators=DECORATORS)
    scan.scavenge([str(path) for path in READ], exclude=["*/node_modules/*"])
    named = set(re.findall(r"\w+", texts_of("*.html"))) | set(re.findall(r'"(\w+)"', texts_of("*.py")))
    found = []
    for item in scan.get_unused_code(min_confidence=60):
        path = Path(item.filename).resolve()
        known = item.name in ALLOWED or item.name in named or item.name.startswith("__")
        if not set(SOURCES) & set(path.parents) or known:
            continue
        if item.typ == "variable" and item.first_lineno in class_fields(path):
            continue
        found.append(f"{path.relative_to(ROOT)}:{item.first_lineno}: {item.typ} {item.name}")
    return found


if __name__ == "__main__":
    dead = dead_code()
    print("\n".join(dead) or "No dead code.")
    sys.exit(bool(dead))
