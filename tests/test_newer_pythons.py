"""What Python 3.12, 3.13 and 3.14 changed, as rules that hold on every Python that runs them.

The suite runs on those Pythons too (`make test-pythons`). These rules find the same mistakes on the oldest one.
"""

import ast
import re
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest

from tests.support.sources import ROOT, sources

GONE = {
    "get_event_loop": "makes a loop no more since 3.14: use get_running_loop",
    "get_event_loop_policy": "is deprecated since 3.14",
    "set_event_loop_policy": "is deprecated since 3.14: give the loop to asyncio.Runner",
    "utcnow": "is deprecated since 3.12: use now(UTC)",
    "utcfromtimestamp": "is deprecated since 3.12: use fromtimestamp(…, UTC)",
}


def calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    """The calls of `….name(…)` in a piece of code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            yield node


def endless_gathers(tree: ast.AST) -> list[int]:
    """Lines that wait in a `while` loop, by `gather`, for tasks that exist already.

    Since 3.12, `gather` of finished tasks does not let the loop run. If callbacks of these tasks end the `while`, it
    never ends. `asyncio.wait` always lets the loop run.
    """
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.While)]
    gathers = [call for loop in loops for part in loop.body for call in calls(part, "gather")]
    kept = (ast.Name, ast.Attribute)
    return [
        call.lineno
        for call in gathers
        if any(isinstance(given.value if isinstance(given, ast.Starred) else given, kept) for given in call.args)
    ]


def of_the_old_ways(tree: ast.AST) -> list[str]:
    """Uses of what newer Pythons deprecate, with line and reason."""
    found = [
        f"line {node.lineno}: {node.attr} {GONE[node.attr]}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in GONE
    ]
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "iscoroutinefunction"
            and ast.unparse(node.value) == "asyncio"
        ):
            found.append(f"line {node.lineno}: asyncio.iscoroutinefunction is deprecated since 3.14: use inspect's")
    for call in calls(tree, "Process"):
        if ast.unparse(call.func) == "multiprocessing.Process":
            found.append(f"line {call.lineno}: forks or not, depending on the Python: use get_context('spawn')")
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func).rpartition(".")[2]
        if name == "ProcessPoolExecutor" and not any(given.arg == "mp_context" for given in call.keywords):
            found.append(f"line {call.lineno}: a pool forks or not, depending on the Python: give it an mp_context")
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.With | ast.AsyncWith)):
        for item in node.items:
            if ast.unparse(item.context_expr).startswith("sqlite3.connect("):
                found.append(f"line {node.lineno}: `with` ends a transaction, not a connection: use contextlib.closing")
    return found


FILTER = re.compile(r'"ignore:[^"]+:(\w+):([\w.]+)",  # ([\w-]+) ([\w.]+)')


def wrong_filters(lines: str, installed: Callable[[str], str]) -> list[str]:
    """Filters of warnings that are not a deprecation in another project's module, at the version that is installed."""
    wrong = []
    for line in (line.strip() for line in lines.splitlines() if '"ignore' in line or '"default' in line):
        found = FILTER.fullmatch(line)
        if found is None:
            wrong.append(f"{line}: write message, category, module, and behind it the project and its version")
        elif found[1] not in ("DeprecationWarning", "PendingDeprecationWarning"):
            wrong.append(f"{line}: only deprecations of others may pass")
        elif found[2].partition(".")[0] in ("frontrow", "tests", "bench", "examples", "docsite"):
            wrong.append(f"{line}: this is ours: mend it")
        elif installed(found[3]) != found[4]:
            wrong.append(f"{line}: {found[3]} is {installed(found[3])} now: is the filter still needed?")
    return wrong


def texts_with(*words: str) -> Iterator[tuple[Path, str]]:
    """Our Python files that have one of these words. Few files need to be parsed then."""
    for path in sources("src", "packages", "bench", "examples", "tests", "docsite"):
        if path.suffix == ".py" and any(word in (text := path.read_text()) for word in words):
            yield path, text


def test_o1_no_wait_of_ours_keeps_the_loop_from_running_what_would_end_it() -> None:
    found = {
        str(path.relative_to(ROOT)): lines
        for path, text in texts_with("gather(")
        if (lines := endless_gathers(ast.parse(text)))
    }
    assert found == {}


def test_o1_nothing_of_ours_uses_what_newer_pythons_deprecate() -> None:
    found = {
        str(path.relative_to(ROOT)): lines
        for path, text in texts_with(
            *GONE, "iscoroutinefunction", "Process(", "ProcessPoolExecutor(", "sqlite3.connect("
        )
        if (lines := of_the_old_ways(ast.parse(text)))
    }
    assert found == {}


def test_o1_only_deprecations_of_others_pass_by_name_and_version() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    filters = text[text.index("filterwarnings = [") :].partition("]\n")[0]
    assert wrong_filters(filters, metadata.version) == []
    assert '"error",' in filters


@pytest.mark.parametrize(
    "line",
    [
        '"ignore::DeprecationWarning",',
        '"ignore:x:DeprecationWarning:frontrow.core",  # frontrow 1.0',
        '"ignore:x:ResourceWarning:redis.client",  # redis 1.0',
        '"ignore:x:DeprecationWarning:redis.client",  # redis 0.9',
        '"default:x:DeprecationWarning:redis.client",  # redis 1.0',
    ],
)
def test_the_rule_finds_a_filter_that_is_too_wide_ours_or_old(line: str) -> None:
    assert wrong_filters(f'"error",\n    {line}\n', lambda project: "1.0")
    assert wrong_filters('"ignore:x:DeprecationWarning:redis.client",  # redis 1.0', lambda project: "1.0") == []


@pytest.mark.parametrize(
    "code",
    [
        "async def f():\n while tasks:\n  await asyncio.gather(*tasks)",
        "async def f(self):\n while self.t:\n  if self.t:\n   await asyncio.gather(*self.t, return_exceptions=True)",
        "async def f(self):\n while not one.done():\n  await gather.gather(one)",
    ],
)
def test_the_rule_finds_a_wait_that_may_not_yield(code: str) -> None:
    assert endless_gathers(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "asyncio.get_event_loop()",
        "datetime.utcnow()",
        "asyncio.iscoroutinefunction(f)",
        "multiprocessing.Process(target=f)",
        "futures.ProcessPoolExecutor(1)",
        "with sqlite3.connect(path) as file: pass",
    ],
)
def test_the_rule_finds_the_old_ways(code: str) -> None:
    assert of_the_old_ways(ast.parse(code))


def test_the_rules_let_through_what_is_safe() -> None:
    code = "\n".join(
        (
            "async def f():",
            " while due:",
            "  await asyncio.gather(*(pay(one) for one in due))",
            "  await asyncio.wait(tasks)",
            "inspect.iscoroutinefunction(f)",
            "with closing(sqlite3.connect(path)) as file: pass",
        )
    )
    assert endless_gathers(ast.parse(code)) == []
    assert of_the_old_ways(ast.parse(code)) == []


def test_o1_answers_that_are_errors_are_closed_where_urllib_asks() -> None:
    """An `HTTPError` is an open answer, and an `OSError` too: who catches only that leaves it open. 3.14 says so."""
    closed = re.compile(r"HTTPError.*?(error\.close\(\)|with error:)", re.DOTALL)
    asking = [
        path for path in sources("src", "packages") if path.suffix == ".py" and "urllib.request." in path.read_text()
    ]
    assert len(asking) > 2
    assert [str(path.relative_to(ROOT)) for path in asking if not closed.search(path.read_text())] == []
