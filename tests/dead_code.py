"""Finds what nobody uses: `python -m tests.dead_code`, part of `make check`.

Whatever is in src must be used by src. A test is no user: what only tests call is dead. The finders:

- vulture compares the names that are defined with the names that are used. Names that occur in templates, or as a
  string in src (a route's handler, a forward reference), count as used. Fields of classes are not checked: they are
  JSON bodies, settings and rows, and their readers are elsewhere. An attribute may be a count that tests read.
- `method_uses` looks at classes: `task.cancel()` is no use of `Ledger.cancel`.
- Every statement of `*_statements.sql` is named in Python, every setting is read there, and every template is named, by
  its file name, in Python or in a template.
- Every class, id and custom property of our style sheets occurs in a template, a script or Python, and every exported
  name of a script in another script or a test of it.

What others use is in PUBLIC (packages for applications) or in ALLOWED, by name or as `Class.method`, with a reason.
Texts that no page says are found by tests/web/site/test_languages.py.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from vulture import Vulture
from vulture.core import Item

from tests.method_uses import Uses, template_words

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "frontrow"
LIMITER = ROOT / "packages" / "limits" / "src" / "frontrow"  # with the basics that the platform uses too
SERVICE = ROOT / "packages" / "limits-service" / "src" / "frontrow"
READ = [ROOT / name for name in ("src", "packages", "tests", "bench", "examples")]
DECORATORS = ["@*.command", "@*.callback"]  # typer calls them
PUBLIC = ("client", "limits", "waitingroom/protect", "testing", "rehearsal/history.py")  # the last: docs/seats.md
# classes that are put together: the colours of price tiers, and the methods in the page of the API's document
PUT_TOGETHER = {
    *(f"t{tier}" for tier in range(6)),
    *(f"opblock-{m}" for m in ("delete", "get", "patch", "post", "put")),
}
ALLOWED = {
    # called or read by a library
    "down_revision": "Alembic reads it",
    "exec_module": "importlib calls it",
    "tb": "the third argument of __exit__",
    "get_buffer": "asyncio calls it",
    "buffer_updated": "asyncio calls it",
    "run_in_executor": "asyncio calls it",
    "shutdown_default_executor": "asyncio calls it",
    "_timer_handle_cancelled": "asyncio calls it",
    "_write_to_self": "asyncio calls it",
    "_process_events": "asyncio calls it",
    "_run_once": "asyncio calls it",
    "RemoteLedgerStore.beat": "a replica calls it",
    "connection_made": "asyncio calls it",
    "connection_lost": "asyncio calls it",
    "data_received": "asyncio calls it",
    "pause_writing": "asyncio calls it",
    "pause_reading": "uvicorn calls it",
    "resume_reading": "uvicorn calls it",
    "resume_writing": "asyncio calls it",
    "on_message_begin": "httptools calls it",
    "on_header": "httptools calls it",
    "on_headers_complete": "httptools calls it",
    "on_body": "httptools calls it",
    "on_message_complete": "httptools calls it",
    "on_response_complete": "uvicorn calls it",
    "handle_exit": "uvicorn calls it",
    "shutdown": "uvicorn calls it",
    "message_event": "uvicorn reads it",
    "total_requests": "uvicorn reads it",
    "_should_upgrade": "uvicorn calls it",
    "collect": "the Prometheus client calls it",
    "_client_async": "the Stripe client reads it",
    "_get_request_args_kwargs": "the Stripe client calls it",
    "_send_packed_command": "redis-py calls it",
    "request_body": "Litestar reads it",
    "core_fonts_encoding": "fpdf2 reads it",
    "readable": "io calls it",
    "readinto": "io calls it",
    "process_view": "Django calls it",
    "on_app_init": "Litestar calls it",
    "storm_token": "cli/main.py loads it by the name of its module",
    "_fulfils_ports": "mypy checks the protocols with it",
    # public API of the limiter and the client
    "acharge": "public API of the limiter",
    "renew_pass": "public API of the client",
    "get_room": "public API of the client",
    "make_api_key": "public API of the client",
    "door_bundle": "public API of the client",
    # documented, or a way to look at and to turn what otherwise runs by itself
    "Ledger.confirm": "docs/ledger.md: an application that takes the money itself sells with it",
    "SqlLedger.confirm": "docs/ledger.md",
    "ManualClock": "for tests of applications",
    "ManualClock.sleep": "for tests of applications",
    "CanBeExamined.examination": "a provider of one's own has it",
    "SimulatedProvider.open_dispute": "what a bank does, for tests of applications",
    "SimulatedProvider.close_dispute": "what a bank does, for tests of applications",
    "SimulatedProvider.confirm_in_browser": "what a buyer does at the provider, for tests of applications",
    "SimulatedProvider.finish_action": "what a buyer does at the provider, for tests of applications",
    "SimulatedProvider.finish_refund": "what a bank does, for tests of applications",
    "Checkout.work": "one turn of the payment worker",
    "DeliveryWorker.drain": "one turn of the delivery worker",
    "DoorLimits.settle": "the end of what is counted in the background",
    "SqlMessageBook.delivery_counts": "what became of the deliveries of a kind",
    "RoomStore.live": "what a store keeps of a visit; the contract of the stores compares it",
    "MemoryRoomStore.live": "as RoomStore.live",
    "RedisRoomStore.live": "as RoomStore.live",
    "LaneState.window": "the specification of what service/room_cache.py computes in place",
    "Window.state_of": "as LaneState.window",
    "Window.ahead_of": "as LaneState.window",
    "Gate.sync": "the specification of the offline gate in gate/gate-check.js; a test compares the two",
}


def dead_code() -> list[str]:
    """One line for everything in src that src does not use."""
    python = (*_unused_names(), *_unused_methods(), *_unused_statements(), *_unused_settings())
    return sorted({*python, *_unused_templates(), *_unused_styles(), *_unused_exports()})


def _unused_names() -> Iterator[str]:
    """Names that nobody uses, and names that only tests, benchmarks and examples use."""
    used_words = _words(SOURCE.rglob("*.html"))
    used_words |= set(re.findall(r'"(\w+)"', _text(_modules())))
    for item in (*_scan(READ), *(one for one in _scan([ROOT / "src", ROOT / "packages"]) if one.typ != "attribute")):
        path = Path(item.filename).resolve()
        if not {SOURCE, LIMITER, SERVICE} & set(path.parents) or item.name.startswith("__") or item.name in ALLOWED:
            continue
        if item.name in used_words or _is_public(path) or (item.typ == "method" and _is_allowed_method(item.name)):
            continue
        if item.typ == "variable" and item.first_lineno in class_fields(path):
            continue
        yield f"{path.relative_to(ROOT)}:{item.first_lineno}: {item.typ} {item.name}"


def _scan(folders: list[Path]) -> list[Item]:
    scan = Vulture(ignore_decorators=DECORATORS)
    scan.scavenge([str(path) for path in folders], exclude=["*/node_modules/*"])
    return list(scan.get_unused_code(min_confidence=60))


def class_fields(path: Path) -> set[int]:
    """Lines of annotated or assigned names directly inside classes."""
    classes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ClassDef)]
    return {line.lineno for node in classes for line in node.body if isinstance(line, ast.AnnAssign | ast.Assign)}


def _is_public(path: Path) -> bool:
    [base] = {SOURCE, LIMITER, SERVICE} & set(path.parents)
    return path.relative_to(base).as_posix().startswith(PUBLIC)


def _modules() -> list[Path]:
    """Every module of the platform and the limiter."""
    return [*SOURCE.rglob("*.py"), *LIMITER.rglob("*.py"), *SERVICE.rglob("*.py")]


def _is_allowed_method(name: str) -> bool:
    return any(one.endswith(f".{name}") for one in ALLOWED)


def _unused_methods() -> Iterator[str]:
    in_templates = template_words([*SOURCE.rglob("*.html"), *SOURCE.rglob("*.txt")])
    uses = Uses(ROOT / "src", sorted(_modules()))
    for path, line, owner, method in uses.unused_methods():
        allowed = method in ALLOWED or f"{owner}.{method}" in ALLOWED or method in in_templates
        if not allowed and not _is_public(path):
            yield f"{path.relative_to(ROOT)}:{line}: method {owner}.{method}"


def _unused_statements() -> Iterator[str]:
    python = _text(_modules())
    strings = set(re.findall(r"[\"'](\w+)[\"']", python))
    made = [re.compile(re.sub(r"\{[^}]*\}", r"\\w+", one)) for one in re.findall(r'Query\(f"([^"]+)"', python)]
    for path in sorted(SOURCE.rglob("*.sql")):
        for name in re.findall(r"^-- name: (\w+)", path.read_text("utf-8"), re.M):
            if name not in strings and not any(one.fullmatch(name) for one in made):
                yield f"{path.relative_to(ROOT)}: statement {name}"


def _unused_settings() -> Iterator[str]:
    """Settings (`name: kind = setting(…)`) that nobody reads."""
    read = set(re.findall(r"[.\"](\w+)\b", _text(_modules())))  # as an attribute, or by its name
    for path in sorted(SOURCE.rglob("*.py")):
        for name in re.findall(r"^    (\w+): [^=\n]+ = setting\(", path.read_text("utf-8"), re.M):
            if name not in read:
                yield f"{path.relative_to(ROOT)}: setting {name}"


def _unused_templates() -> Iterator[str]:
    text = _text([*SOURCE.rglob("*.py"), *SOURCE.rglob("*.html")])
    for path in sorted((SOURCE / "web" / "templates").rglob("*.*")):
        if path.name not in text:
            yield f"{path.relative_to(ROOT)}: template"


def _unused_styles() -> Iterator[str]:
    users = [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.html"), *SOURCE.rglob("*.js")]
    words = set(re.findall(r"[\w-]+", _text(users)))
    sheets = {path: re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.S) for path in _ours("css")}
    values = {name for sheet in sheets.values() for name in re.findall(r"var\(\s*(--[\w-]+)", sheet)}
    for path, sheet in sheets.items():
        selectors = " ".join(re.findall(r"([^{};]+)\{", sheet))
        for name in sorted(set(re.findall(r"[.#]([A-Za-z][\w-]*)", selectors)) - words - PUT_TOGETHER):
            yield f"{path.relative_to(ROOT)}: selector {name}"
        for name in sorted(set(re.findall(r"(--[\w-]+)\s*:", sheet)) - values - words):
            yield f"{path.relative_to(ROOT)}: property {name}"


def _unused_exports() -> Iterator[str]:
    tests = [*(ROOT / "tests" / "node").glob("*.*js"), *(ROOT / "tests").rglob("*.py")]
    pages = [*_ours("js"), *SOURCE.rglob("*.html"), *(path for path in tests if "node_modules" not in path.parts)]
    words = {path: _words([path]) for path in pages}
    for path in _ours("js"):
        elsewhere = set[str]().union(*(found for other, found in words.items() if other != path))
        exported = re.findall(r"export (?:async )?(?:function\*?|const|let|class) (\w+)", path.read_text("utf-8"))
        for name in sorted(set(exported) - elsewhere):
            yield f"{path.relative_to(ROOT)}: export {name}"


def _ours(kind: str) -> list[Path]:
    """Our own scripts or style sheets, without other people's."""
    return sorted(path for path in (SOURCE / "web" / "static").rglob(f"*.{kind}") if "vendor" not in path.parts)


def _text(paths: Iterable[Path]) -> str:
    return "\n".join(path.read_text("utf-8") for path in paths)


def _words(paths: Iterable[Path]) -> set[str]:
    return set(re.findall(r"\w+", _text(paths)))


if __name__ == "__main__":
    dead = dead_code()
    print("\n".join(dead) or "No dead code.")
    sys.exit(bool(dead))
