"""The documentation site: its navigation, links and anchors lead somewhere, the reference is whole.

`make docs` builds the site itself, strictly. These checks find the same mistakes in a moment. That every page is in the
navigation is a rule of the house (`tests/test_repository.py`).
"""

import dataclasses
import functools
import posixpath
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from docsite import reference
from docsite.repository_links import PAGES, local_links, site_path, source_page, with_site_links
from frontrow.cli.main import COMMANDS, GROUPS
from frontrow.settings.platform import _SECTIONS
from frontrow.web.server.app import platform_app, routes

ROOT = Path(__file__).parents[2]
DOCS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
KEPT = sorted([*(path for path in PAGES if (ROOT / path).exists()), *DOCS])
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml without calling the functions that it names."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)
CONFIG: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), _Loader)


def nav_pages(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(value, list):
                yield from nav_pages(value)
            else:
                yield value


NAV = list(nav_pages(CONFIG["nav"]))


@functools.cache
def made() -> dict[str, str]:
    return reference.pages()


@functools.cache
def anchors(text: str) -> frozenset[str]:
    """The ids of a page's headings, as GitHub and the site make them."""
    found = set[str]()
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", FENCE.sub("", text), re.MULTILINE):
        words = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", heading).lower()
        plain = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        found.add(plain if plain not in found else f"{plain}-1")
    return frozenset(found)


def test_the_navigation_has_no_page_that_does_not_exist() -> None:
    there = {site_path(path) for path in KEPT} | set(made())
    gone = sorted(set(NAV) - there)
    assert not gone, f"mkdocs.yml names pages that are not there: {gone}"
    assert set(made()) <= set(NAV)
    assert len(NAV) == len(set(NAV)), "a page is twice in the navigation"


@pytest.mark.parametrize("path", KEPT)
def test_every_link_and_anchor_of_a_page_leads_somewhere(path: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    broken = []
    here = [(path, anchor) for anchor in re.findall(r"\]\(#([^)\s]+)\)", FENCE.sub("", text))]
    for target, anchor in [*local_links(text, path), *here]:
        found = ROOT / target
        if not found.exists():
            broken.append(target)
        elif anchor and target.endswith(".md") and anchor not in anchors(found.read_text("utf-8")):
            broken.append(f"{target}#{anchor}")
    assert not broken


def test_a_broken_anchor_would_be_caught() -> None:
    assert anchors("# One\n## `Two`, and [three](x.md)!\n```\n# no\n```\n## One\n") == {"one", "two-and-three", "one-1"}
    assert list(local_links("[a](b.md#c) `[x](y)` [d](https://e) [f](#g)", "docs/x.md")) == [("docs/b.md", "c")]


def test_links_out_of_the_docs_lead_to_pages_of_the_site() -> None:
    text = "[a](../deploy/compose.yaml) [b](../CONTRIBUTING.md#x) [c](limits.md) `[d](../e)`"
    assert with_site_links(text, "docs/api.md") == (
        "[a](source/deploy/compose.yaml.md) [b](contributing.md#x) [c](limits.md) `[d](../e)`"
    )
    assert with_site_links("[a](docs/limits.md)", "README.md") == "[a](limits.md)"
    assert with_site_links("[a](../../README.md)", "docs/guides/upgrade.md") == "[a](../index.md)"
    assert "def site_path" in source_page("docsite/repository_links.py")
    assert "`test_site.py`" in source_page("tests/docs")


def test_the_reference_has_every_setting_command_operation_and_metric() -> None:
    settings = made()["reference/settings.md"]
    for name, section in _SECTIONS.items():
        rows = settings.partition(f"## [{name}]\n")[2].partition("\n## ")[0]
        assert [one.name for one in dataclasses.fields(section) if f"| `{one.name}` (" not in rows] == []
    commands = made()["reference/commands.md"]
    assert [name for name in COMMANDS | GROUPS if f"## frontrow {name}\n" not in commands] == []
    assert "### frontrow ledger migrate" in commands
    assert "`--port`" in commands
    http = "".join(text for path, text in made().items() if path.startswith("reference/http/"))
    assert [one.operation_id for one in routes() if http.count(f"### {one.operation_id}\n") != 1] == []
    assert "[HoldBody](schemas.md#holdbody)" in made()["reference/http/fans.md"]
    assert "`frontrow_room_waiting`" in made()["reference/metrics.md"]


def test_the_links_of_the_reference_lead_somewhere() -> None:
    broken = []
    for path, text in made().items():
        for target, anchor in re.findall(r"\]\(([^)#\s]+)(?:#([^)\s]+))?\)", text):
            page = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            there = made().get(page) or (
                (ROOT / "docs" / page).read_text() if (ROOT / "docs" / page).exists() else None
            )
            if there is None or (anchor and anchor not in anchors(there)):
                broken.append(f"{path} -> {target}#{anchor}")
    assert not broken


def test_readers_load_nothing_from_other_servers() -> None:
    assert CONFIG["theme"]["font"] is False
    assert not any("//" in one for one in [*CONFIG["extra_css"], *CONFIG["extra_javascript"]])
    for asset in (ROOT / "docsite" / "assets").iterdir():
        assert "://" not in asset.read_text()


def test_the_lock_has_every_group() -> None:
    """`make lock` locks all of them; another command that locks fewer would break `make docs` or `make bench`."""
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements" / "dev.txt").read_text(), re.MULTILINE))
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    wanted = {re.match(r"[\w-]+", one)[0] for group in groups.values() for one in group}  # type: ignore[index]
    assert wanted - locked == {"frontrow-limits"}, "our own, installed from packages/limits"


@pytest.mark.parametrize("page", [page for page in KEPT if (ROOT / page).suffix == ".md"])
def test_a_page_has_one_title(page: str) -> None:
    """A second one takes everything above it out of the table of contents."""
    text = FENCE.sub("", (ROOT / page).read_text("utf-8"))
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1, page


REQUIREMENT = re.compile(r"\((?:SPEC )?[BDFJLNOPQW]\d{1,2}(?:,? (?:and )?[BDFJLNOPQW]\d{1,2})*\)")
READ_BY_PEOPLE = (
    "README.md",
    "examples/**/*.md",
    "docs/**/*.md",
    "deploy/**/*.*",
    "src/frontrow/web/templates/**/*.*",
    "src/frontrow/web/translations/**/*.*",
    "src/frontrow/web/static/**/*.js",
    "src/frontrow/boxoffice/texts/languages/*.json",
)


def texts_for_people() -> Iterator[tuple[str, str]]:
    """What users read: pages, mails, documentation, help of commands and settings, metrics and the API's document."""
    for pattern in READ_BY_PEOPLE:
        for path in ROOT.glob(pattern):
            if path.is_file() and not re.search(r"docs/(adr/|history\.md)", path.as_posix()):
                yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8", errors="replace")
    yield from reference.pages().items()
    yield "openapi.json", platform_app(cast(Any, None), own_loops=False).state.make_document().decode()


def test_no_code_of_a_requirement_stands_in_what_users_read() -> None:
    """`(B19)` says nothing to a stranger. Tests, ADRs, docstrings and the history may name the requirement."""
    found = [f"{where}: {code}" for where, text in texts_for_people() for code in REQUIREMENT.findall(text)]
    assert found == []
