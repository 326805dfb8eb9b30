"""Rules for the tests themselves: what they share is in modules, and they wait in one way."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import ROOT, sources

# Loops that look like polls, and why they do not use `eventually`.
OWN_POLLS = {
    "tests/faults/selling.py": "a promise about recovery, counted in pauses of the loop and not in seconds",
    "tests/contracts/seat_claims.py": "checks an invariant in each turn while others work",
    "tests/mutants/mutation_session.py": "waits for forks, each of which is killed when its time is over",
    "tests/limits/test_outgoing.py": "in a loop whose time stands still",
    "tests/web/guard/test_guarded_protocol.py": "in a loop whose time stands still",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sources("*.py"):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8"))


def imports_of_tests(module: ast.Module) -> list[str]:
    """Test modules (`test_*.py`) that a module imports, or imports from."""
    found: list[str] = []
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names):
                found += [one.name for one in names]
            case ast.ImportFrom(module=name, names=names):
                found += [f"{name}.{one.name}" for one in names] if _is_package(name or "") else [name or ""]
    return [name for name in found if name.startswith("tests.") and "test_" in [part[:5] for part in name.split(".")]]


def _is_package(name: str) -> bool:
    return Path(ROOT, *name.split(".")).is_dir()


def test_no_module_imports_from_a_test_module() -> None:
    """Else a test cannot be moved or split, and importing it collects its fixtures and parameters too."""
    found = {path: imported for path, module in modules() if (imported := imports_of_tests(module))}
    assert found == {}, "move what is shared into a module named by what it owns, beside the tests or in tests/support"


@pytest.mark.parametrize(
    "code",
    [
        "from tests.core.test_money import cents",
        "import tests.core.test_money",
        "from tests.core import test_money",
        "def late():\n    from tests.core.test_money import cents",
    ],
)
def test_every_form_of_such_an_import_is_found(code: str) -> None:
    assert imports_of_tests(ast.parse(code)) == ["tests.core.test_money"]


SLEEPS = ("asyncio.sleep", "time.sleep")


def polls(module: ast.Module) -> list[int]:
    """Lines of loops that sleep for a constant time until something is true."""
    loops = [node for node in ast.walk(module) if isinstance(node, ast.For | ast.AsyncFor | ast.While)]
    return [loop.lineno for loop in loops if _sleeps(loop) and _waits(loop)]


def _sleeps(loop: ast.AST) -> bool:
    calls = (node for node in _own(loop) if isinstance(node, ast.Call) and node.args)
    return any(ast.unparse(call.func) in SLEEPS and _is_constant(call.args[0]) for call in calls)


def _is_constant(value: ast.expr) -> bool:
    match value:
        case ast.Constant():
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case ast.IfExp(body=body, orelse=orelse):
            return _is_constant(body) and _is_constant(orelse)
        case _:
            return False


def _waits(loop: ast.AST) -> bool:
    """Whether it ends on a condition. A loop that only watches for some time, or repeats so often, does not."""
    leaves = any(isinstance(node, ast.Break | ast.Return) for node in _own(loop))
    match loop:
        case ast.While(test=ast.Constant()):
            return leaves
        case ast.While(test=ast.Compare(left=ast.Call(func=ast.Attribute(attr="monotonic")))):
            return leaves
        case ast.While():
            return True
        case ast.For(iter=ast.Call(func=ast.Name(id="range"))):
            return leaves
        case _:
            return False


def _own(loop: ast.AST) -> Iterator[ast.AST]:
    """The parts of a loop, without those of functions that are defined in it."""
    for node in ast.iter_child_nodes(loop):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from _own(node)


def test_tests_wait_by_eventually() -> None:
    found = {path: lines for path, module in modules() if path.startswith("tests/") and (lines := polls(module))}
    assert {path: lines for path, lines in found.items() if path not in OWN_POLLS} == {}, (
        "use `eventually` or `eventually_sync` of tests/support/eventually.py: it is bounded and says what it last saw"
    )
    assert found.keys() == OWN_POLLS.keys(), "an exception that nobody needs"


POLLS = [
    "while not server.started:\n    await asyncio.sleep(0.01)",
    "while True:\n    if done():\n        break\n    time.sleep(PAUSE_S)",
    "for _ in range(100):\n    if done():\n        return\n    await asyncio.sleep(0.05)",
    "for _ in range(TRIES):\n    try:\n        return ask()\n    except OSError:\n        time.sleep(0.1)",
    "while not done and time.monotonic() < ends_s:\n    done = look()\n    time.sleep(0.1)",
    "while not done():\n    await asyncio.sleep(0)",
]
OTHERS = [
    "for _ in range(20):\n    await asyncio.sleep(0)",
    "while True:\n    await room.tick()\n    await asyncio.sleep(0.01)",
    "while time.monotonic() < ends_s:\n    assert fine()\n    time.sleep(0.1)",
    "while not stopped:\n    buy()\n    await asyncio.sleep(random() / 200)",
    "for seat in seats:\n    if taken(seat):\n        await asyncio.sleep(0.001)\n        return seat",
    "while True:\n    def nap():\n        return time.sleep(1)\n    work()",
]


@pytest.mark.parametrize("code", POLLS)
def test_a_poll_is_found(code: str) -> None:
    assert polls(ast.parse(code)) == [1]


@pytest.mark.parametrize("code", OTHERS)
def test_a_loop_that_awaits_nothing_is_no_poll(code: str) -> None:
    assert polls(ast.parse(code)) == []
