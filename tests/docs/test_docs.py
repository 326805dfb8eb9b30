"""Every Python block of README.md and docs/ runs as it stands, every local link leads somewhere (L18).

A block runs in a namespace and an empty folder of its own; `await` works at its top level. A TOML block that begins
with `# name.toml` is a file in that folder. Redis on port 6379 and PostgreSQL on port 5432 become private servers.
A fragment that cannot run is marked by `<!-- no-run: reason -->` on the line before it; there may be few.
"""

import ast
import asyncio
import inspect
import re
import sys
from types import ModuleType

import pytest

from frontrow.boxoffice.refunds import event_cancellation
from tests.docs.blocks import BLOCK, NO_RUN, PAGES, POSTGRES_URL, PYTHON, REDIS_URL, ROOT, RUN, blocks

MAX_NO_RUN = 5


def run(code: str, where: str) -> None:
    compiled = compile(code, where, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    module = sys.modules["__docs__"] = ModuleType("__docs__")  # frameworks look up the module of a function
    try:
        made = eval(compiled, vars(module))
        if inspect.iscoroutine(made):
            asyncio.run(made)
    finally:
        del sys.modules["__docs__"]


@pytest.mark.parametrize(
    ("page", "line", "code"), RUN, ids=[f"{page.relative_to(ROOT)}:{line}" for page, line, _ in RUN]
)
def test_l18_every_python_block_of_the_docs_runs(page, line, code, tmp_path, monkeypatch, request):
    if "redis://127.0.0.1:6379" in code:
        url = request.getfixturevalue("redis_url")
        code = code.replace(REDIS_URL, url).replace("redis://127.0.0.1:6379", url)
    if POSTGRES_URL.search(code):
        code = POSTGRES_URL.sub(request.getfixturevalue("postgres_url"), code)
    for other, _, _, toml in blocks("toml"):
        if other == page and toml.startswith("# "):
            (tmp_path / toml.splitlines()[0][2:].strip()).write_text(toml)
    monkeypatch.chdir(tmp_path)
    run("\n" * (line - 1) + code, str(page.relative_to(ROOT)))


def test_few_blocks_are_excused_from_running_and_each_says_why():
    excused = [f"{page.name}:{line}" for page, line, before, _ in PYTHON if NO_RUN.search(before)]
    assert len(excused) <= MAX_NO_RUN, excused
    for page, line, before, _ in PYTHON:
        assert "no-run" not in before or NO_RUN.search(before), f"{page.name}:{line} gives no reason"


def test_l18_the_guide_has_blocks_to_run_and_a_broken_block_would_be_caught():
    assert len([page for page, _, _ in RUN if page.name == "limits.md"]) >= 8
    with pytest.raises(NameError):
        run("undefined_name", "canary")
    with pytest.raises(AssertionError):
        run("import asyncio\nawait asyncio.sleep(0)\nassert 1 == 2", "canary")


def test_local_links_of_the_docs_lead_somewhere():
    broken = []
    for page in PAGES:
        prose = BLOCK.sub("", page.read_text("utf-8"))
        for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", prose):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)} -> {target}")
    assert not broken


STATUS_OF_CODE = re.compile(r"^\| (\d{3}) \| `(\w+)` \|", re.MULTILINE)
STATUS_AND_CODE = re.compile(r"\b(\d{3})(?:,| with| \()?(?: code)? ?`([a-z_]+)`")


def test_a_status_beside_a_code_is_the_one_that_the_api_answers():
    """docs/errors.md is written from the table of the API; other pages said 422 where it says 409."""
    errors = (ROOT / "docs" / "errors.md").read_text("utf-8")
    known = {}
    for status, code in STATUS_OF_CODE.findall(errors):
        known.setdefault(code, set()).add(status)
    said = [
        (page.name, status, code)
        for page in PAGES
        for status, code in STATUS_AND_CODE.findall(page.read_text("utf-8"))
        if code in known
    ]
    assert len(said) >= 8
    assert [one for one in said if one[1] not in known[one[2]]] == []


def test_the_page_about_payments_names_the_pages_of_a_cancellation():
    text = " ".join((ROOT / "docs" / "payments.md").read_text("utf-8").split())
    assert f"in pages of {event_cancellation.PAGE} bookings" in text


def test_the_readme_says_the_figure_of_the_last_run():
    """`python -m bench.seats_docs` writes it into holds.md; README must not keep an older one."""
    row = re.search(
        r"nearly sold out, processes: 2.*?\| ([\d,]+)/s; p50/p99/p99.9 \S+ / (\S+) /", read("docs/holds.md")
    )
    assert row is not None
    told = re.search(
        r"answer ([\d,]+) attempts for a seat per second.*?99 of 100 within (\S+) ms", read("README.md"), re.DOTALL
    )
    assert told is not None
    assert told.groups() == row.groups()


def test_the_first_screen_of_the_readme_has_what_a_stranger_needs():
    first = read("README.md").partition("![")[0]
    assert first.count("**Choose it if**") == 3
    assert "**Measured:**" in first
    assert "**Maturity:**" in first
    commands = re.findall(r"^(?:pip|frontrow|make) .*?(?=    #|$)", first, re.MULTILINE)
    assert commands == ['pip install "frontrow[platform]"', "frontrow serve --demo", "make demo", "make test"]
    assert re.findall(r"^## (.+)", read("README.md"), re.MULTILINE) == ["Try", "Limit", "Queue", "Sell", "More"]
    walls = [part for part in read("README.md").split("\n\n") if part.count("](docs/") > 3]
    assert walls == [], "tables of links belong into docs/contents.md"


def test_the_list_of_pages_has_every_page():
    listed = read("docs/contents.md")
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    missing = {page for page in pages - {"contents.md"} if not page.startswith("adr/") and f"({page})" not in listed}
    assert missing == set()


def read(path: str) -> str:
    return (ROOT / path).read_text("utf-8")
