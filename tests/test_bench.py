"""Every benchmark has a command line: `--help` prints it and measures nothing."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.page_budgets import PAGES, budget_table, late_pages, missed

ROOT = Path(__file__).parent.parent
RUN_HELP = """
import contextlib, io, json, runpy, sys
printed = {}
for name in sys.argv[1:]:
    out, sys.argv = io.StringIO(), [name, "--help"]
    with contextlib.redirect_stdout(out):
        try:
            runpy.run_module(f"bench.{name}", run_name="__main__")
            printed[name] = "it ran"
        except SystemExit as ended:
            printed[name] = out.getvalue() if ended.code == 0 else f"it ended with {ended.code}"
        except Exception as error:  # of one module must not hide the others
            printed[name] = repr(error)
print(json.dumps(printed))
"""


def main_block(path: Path) -> list[ast.stmt]:
    """What `python -m` runs of a module, with the function `main` that it calls."""
    tree = ast.parse(path.read_text())
    found = [each.body for each in tree.body if isinstance(each, ast.If) and "__main__" in ast.unparse(each.test)]
    if any("main(" in ast.unparse(line) for block in found for line in block):
        found += [each.body for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "main"]
    return [line for block in found for line in block]


COMMANDS = sorted(path.stem for path in (ROOT / "bench").glob("*.py") if main_block(path))


def parses(name: str) -> bool:
    """Whether a benchmark parses its command line. Without that it must not be started here: it would measure."""
    return any("parse_args(" in ast.unparse(line) for line in main_block(ROOT / "bench" / f"{name}.py"))


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    """What each benchmark prints for `--help`, all of them in one process."""
    command = [sys.executable, "-W", "ignore", "-c", RUN_HELP, *filter(parses, COMMANDS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.timeout(900)  # the first one starts them all, a few seconds of CPU
@pytest.mark.parametrize("name", COMMANDS)
def test_help_only_prints(name: str, printed: dict[str, str]) -> None:
    assert parses(name), f"bench.{name} must parse its command line before it measures: options(__doc__).parse_args()"
    assert printed[name].startswith(f"usage: {name}"), printed[name]


def page_row(**changes: float) -> dict[str, float]:
    return {"total_bytes": 20_000, "lcp_ms": 900, "inp_ms": 80, "shift": 0.0, **changes}


def test_each_page_is_judged_beside_its_budget() -> None:
    pages = {f"{name}, phone": page_row() for name in PAGES}
    assert list(missed(pages)) == []
    assert budget_table(pages).count("| met |") == len(PAGES)
    pages["event, phone"] = page_row(total_bytes=60_001, lcp_ms=1_201, inp_ms=201, shift=0.011)
    assert [(one.page, one.name) for one in missed(pages)] == [
        ("event", name) for name in ("bytes", "LCP", "INP", "CLS")
    ]
    assert "**1,201, missed**" in budget_table(pages)
    assert "**0.011, missed**" in budget_table(pages)
    assert [line.split(":")[0] for line in late_pages(pages)] == ["event"] * 2, "times are printed, and fail nothing"


def test_the_table_of_the_docs_has_every_page_with_a_budget() -> None:
    text = (ROOT / "docs" / "pages.md").read_text()
    table = text.partition("<!-- figures: pages -->")[2].partition("<!-- end of figures -->")[0]
    assert [name for name in PAGES.values() if f"| {name} |" not in table] == []
