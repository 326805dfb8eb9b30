"""One table of errors: every class that can reach HTTP is in it, and the page is made from it."""

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import frontrow
from frontrow.core.errors import FrontrowError
from frontrow.web.http.problems import PROBLEMS, table

# settings and the limiter's own arguments: raised before anything is served, or by a caller's own code
NEVER_OVER_HTTP = {
    "bad_configuration",
    "cost_too_large",
    "invalid_cost",
    "invalid_key",
    "invalid_quota",
    "ledger_in_use",
    "rule_book_changed",
}


def below(kind: type[FrontrowError]) -> Iterator[type[FrontrowError]]:
    for one in kind.__subclasses__():
        yield one
        yield from below(one)


def test_every_error_class_has_its_row_with_its_status():
    for module in pkgutil.walk_packages(frontrow.__path__, "frontrow."):  # rest_framework needs settings of Django
        if "migrations" not in module.name and not module.name.endswith(("__main__", "rest_framework")):
            importlib.import_module(module.name)
    missing, wrong = set(), set()
    for kind in below(FrontrowError):
        own_api = kind.__module__.startswith(
            ("frontrow.limits_service", "frontrow.limits.adaptive", "frontrow.limits.stores")
        )
        if not kind.__module__.startswith("frontrow.") or own_api or kind.code in NEVER_OVER_HTTP:
            continue
        row = PROBLEMS.get(kind.code)
        if row is None:
            missing.add(f"{kind.__name__}: {kind.code}")
        elif row.status != kind.http_status:
            wrong.add(f"{kind.__name__}: {kind.code} is {kind.http_status}, the table says {row.status}")
    assert not missing, f"add rows to frontrow.web.http.problems: {sorted(missing)}"
    assert not wrong, sorted(wrong)


def test_the_page_of_errors_is_made_from_the_table():
    page = Path(__file__).parents[3] / "docs" / "errors.md"
    assert page.read_text("utf-8") == table(), "write docs/errors.md anew: frontrow.web.http.problems.table()"
