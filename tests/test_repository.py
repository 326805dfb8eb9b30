"""Rules of the house that a machine can check."""

import ast
import graphlib
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import django
from django.conf import settings

import frontrow
from tests.support.sources import ROOT, sources


def test_the_limiter_alone_imports_no_third_party_package() -> None:
    """`pip install frontrow-limits` gives the limiter with no dependency, and it uses nothing of the platform."""
    code = (
        "import sys; before = set(sys.modules);"
        "import frontrow.limits, frontrow.limits.http.asgi, frontrow.limits.http.wsgi, frontrow.testing.limits;"
        "import frontrow.limits.adaptive.asgi, frontrow.limits.adaptive.wsgi;"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names) - {'frontrow', '_cython_3_3_1', 'cython_runtime'}))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=_bare(), check=True)
    assert done.stdout.strip() == "[]"


def _bare() -> dict[str, str]:
    return {"PYTHONPATH": f"{ROOT / 'packages' / 'limits' / 'src'}:{ROOT / 'src'}", "PATH": ""}


def test_every_module_says_what_it_owns() -> None:
    if (
        not settings.configured
    ):  # Django REST framework reads them when it is imported; blocks of the docs use them later
        apps = ["django.contrib.auth", "django.contrib.contenttypes"]
        settings.configure(SECRET_KEY="only for tests", ALLOWED_HOSTS=["*"], USE_TZ=True, INSTALLED_APPS=apps)
        django.setup()
    for module in pkgutil.walk_packages(frontrow.__path__, "frontrow."):
        if (
            module.name.endswith(("__main__", "migrations.env"))
            or "_kernel" in module.name
            or ".versions." in module.name
        ):
            continue
        assert importlib.import_module(module.name).__doc__, f"{module.name} has no docstring"


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    forbidden = re.compile(r"pytest\.(mark\.)?(skip|xfail|importorskip)")
    for path in sources("tests"):
        if path.suffix == ".py" and path != Path(__file__):
            assert not forbidden.search(path.read_text()), path


def test_no_machine_path_stands_in_the_project() -> None:
    forbidden = re.compile(r"/work/|/root/|/opt/pypi")
    for path in sources():
        if path != Path(__file__) and path.suffix not in (".png", ".gif", ".woff2", ".sqlite", ".db", ".wasm"):
            assert not forbidden.search(path.read_text(errors="replace")), path


def test_packages_of_the_web_form_no_cycle() -> None:
    """Imports for type checking count too. `pyproject.toml` says which package may import which."""
    found: dict[str, set[str]] = {}
    web = ROOT / "src" / "frontrow" / "web"
    for path in sources("src/frontrow/web/**/*.py"):
        package = path.relative_to(web).parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [f"{node.module}.{one.name}" for one in node.names] if isinstance(node, ast.ImportFrom) else []
            found.setdefault(package, set()).update(
                name.split(".")[2] for name in names if name.startswith("frontrow.web.")
            )
    with_imports = {package: sorted(others & found.keys() - {package}) for package, others in found.items()}
    order = list(graphlib.TopologicalSorter(with_imports).static_order())  # raises `CycleError`
    assert order[0] == "http"
    assert order[-1] == "server"


def test_templates_can_be_read() -> None:
    """The rule for templates: 200 characters per line, unless a line is one text. The waiting room's page is exempt: it
    must fit into 14 KB."""
    for path in sources("src/frontrow/**/*.html"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            short = len(line) <= 200 or re.fullmatch(r'\s*"[^"]*",?', line) or path.name == "room.html"
            assert short, f"{path}:{number}"


def test_a_public_class_name_means_one_thing() -> None:
    """Outside the Python client, whose classes are named as the server's, and the limiter, which can be used alone.

    A middleware is called the same for ASGI and WSGI.
    """
    found: dict[str, list[str]] = {}
    for path in sources("src/frontrow", "packages"):
        if path.suffix == ".py" and not {"client", "limits", "limits_service"} & set(path.relative_to(ROOT).parts):
            for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(), re.MULTILINE):
                found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    found.pop("PassMiddleware")
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


def test_what_a_service_needs_is_named_in_the_ports_of_its_domain() -> None:
    """In the box office every Protocol is in a `ports` module. Adapters may have seams of their own."""
    box_office = ROOT / "src/frontrow/boxoffice"
    for path in sources("src/frontrow/boxoffice"):
        where = path.relative_to(box_office)
        if path.suffix == ".py" and where.parts[0] != "adapters" and "ports" not in {*where.parts, path.stem}:
            assert "Protocol" not in path.read_text(), path


def test_only_the_ledger_names_sql_statements() -> None:
    """Above the ledger, a write for somebody else's transaction is a `PlannedWrite` that a book has made. The
    simulation plays the ledger's server."""
    ledger = ROOT / "src/frontrow/boxoffice/adapters/ledger"
    for path in sources("src/frontrow"):
        if path.suffix == ".py" and not path.is_relative_to(ledger) and "simulation" not in path.parts:
            assert "engine.queries" not in path.read_text(), path


def test_sql_statements_fit_the_line() -> None:
    """The rule for SQL: 120 characters per line. A header (`-- name: …`) is one line, whatever its length."""
    for path in sources("src/frontrow/**/*.sql"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert len(line) <= 120 or line.startswith("-- name:"), f"{path}:{number}"


def test_every_page_of_the_docs_is_in_the_navigation_of_the_site() -> None:
    """ADRs have an index of their own."""
    nav = set(re.findall(r"^ +- (?:.+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    pages = {str(path.relative_to(ROOT / "docs")) for path in sources("docs/*.md") if "docs/adr/0" not in str(path)}
    lines = "\n".join(f"      - A title: {path}" for path in sorted(pages - nav))
    assert not lines, f"add these lines where they belong under `nav` of mkdocs.yml:\n{lines}"


# Who starts tasks by asyncio itself, and who hears of their errors. All others use `core.background_tasks`.
OWN_TASKS = {
    "app/demo.py": "awaited",
    "boxoffice/adapters/bus/redis.py": "awaited when the reader closes",
    "boxoffice/adapters/claims/memory.py": "the result goes to the caller's slot",
    "boxoffice/adapters/claims/redis.py": "the result goes to the caller's slot",
    "boxoffice/holds/hold_service.py": "the caller's future",
    "boxoffice/holds/plain_attempt.py": "the caller's future",
    "boxoffice/events/event_art.py": "awaited by who wants the art",
    "boxoffice/tickets/ticket_renderer.py": "awaited by who wants the file",
    "cli/work.py": "awaited",
    "core/background_tasks.py": "the one way",
    "limits/reservations.py": "awaited by who settles, also if that one is cancelled",
    "limits_service/http_connection.py": "answers the request itself, whatever happens",
    "limits_service/limit_service.py": "awaited by the request; the event loop's handler hears it if that is cancelled",
    "limits_service/limit_stores.py": "awaited by the request; the event loop's handler hears it if that is cancelled",
    "limits_service/server.py": "awaited",
    "limits/stores/resilient.py": "awaited by who asked",
    "shared/jobs.py": "awaited; each runs `keep_running`",
    "shared/coalescer.py": "errors go to the callers' slots",
    "limits/stores/redis_asyncio.py": "errors go to the callers' futures",
    "limits/stores/sql_asyncio.py": "errors go to the callers' futures",
    "waitingroom/service/loops.py": "awaited by who asked for a refresh",
    "web/api/idempotency.py": "awaited by the request, or logged",
    "web/server/app.py": "awaited; runs the jobs",
    "web/endpoints/event_details.py": "awaited by the requests",
    "web/endpoints/event_list.py": "awaited by the requests",
    "web/fastpath/protocol.py": "the connection reads its result",
    "web/streams/stream_app.py": "of one connection",
    "web/server/head_requests.py": "awaited",
}


def test_o3_tasks_that_nobody_waits_for_are_started_in_one_way() -> None:
    starts = re.compile(r"(create_task|ensure_future|TaskGroup)\(")
    found = {
        path.as_posix().partition("/src/frontrow/")[2]
        for path in sources("src", "packages")
        if path.suffix in (".py", ".pyx")
        and starts.search(path.read_text())
        and not {"rehearsal", "simulation"} & {*path.parts}
    }
    assert found == set(OWN_TASKS), "start it by core.background_tasks, or say here who hears of its error"


IMPURE = {
    "asyncio",
    "time",
    "random",
    "secrets",
    "os",
    "socket",
    "threading",
    "logging",
    "subprocess",
    "sqlite3",
    "pathlib",
}


def impurities(path: Path) -> list[str]:
    """What a module imports or does that depends on more than its arguments."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.partition(".")[0] in IMPURE]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in IMPURE:
            found.append(str(node.module))
        elif isinstance(node, ast.AsyncFunctionDef | ast.Await):
            found.append(f"async in line {node.lineno}")
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"open", "print", "input"}
        ):
            found.append(node.func.id)
        elif isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}:
            found.append(f".{node.attr} in line {node.lineno}")
    return found


def test_the_models_of_the_box_office_are_pure() -> None:
    """No I/O, clock, randomness or async: what a model decides depends on its arguments alone."""
    models = [path for path in sources("src/frontrow/boxoffice") if path.suffix == ".py" and is_model(path)]
    assert len(models) > 40
    assert {path.name: impurities(path) for path in models if impurities(path)} == {}
    assert impurities(ROOT / "src/frontrow/boxoffice/holds/expiry.py"), "the check finds what is not pure"


def is_model(path: Path) -> bool:
    return "model" in (path.parent.name, path.stem)
