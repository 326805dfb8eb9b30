"""The corpus of planted bugs still fits the code: a refactoring takes its bugs along."""

import re

import pytest

from tests.mutants.corpus import corpus
from tests.mutants.mutant import Mutant
from tests.support.sources import ROOT

ALL = [mutant for mutants in corpus().values() for mutant in mutants]
AREAS = {
    "adaptive_limits",
    "adyen",
    "backups",
    "box_office_sales",
    "claims",
    "console",
    "disputes",
    "events",
    "fast_path",
    "gate",
    "holds",
    "indexes",
    "invoices",
    "limits",
    "locks",
    "messages",
    "notices",
    "own_accounts",
    "paid_at_once",
    "payments",
    "people",
    "pricing",
    "refunds",
    "sql_limits",
    "transfers",
    "waiting_room",
    "waitlist",
    "web",
}


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_a_planted_bug_fits_the_code_once(mutant: Mutant) -> None:
    text = mutant.path(ROOT).read_text("utf-8")
    changed = mutant.applied(text)
    if mutant.file.endswith(".py"):
        compile(changed, mutant.file, "exec")


def test_there_are_enough_in_every_area() -> None:
    assert corpus().keys() == AREAS
    assert len({mutant.name for mutant in ALL}) == len(ALL) >= 120
    assert all(mutant.law and mutant.tests for mutant in ALL)


@pytest.mark.parametrize("test", sorted({test for mutant in ALL for test in mutant.tests}))
def test_the_tests_that_must_catch_them_are_there(test: str) -> None:
    """In the file that pytest is given, or in the contract that it runs."""
    file, _, name = test.partition("::")
    name, _, given = name.rpartition("::")[2].partition("[")
    checks = [part for part in re.split(r"[-\]]", given) if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+){4,}", part)]
    contracts = [*(ROOT / "tests/contracts").glob("*.py"), *(ROOT / file).parent.glob("*_contract.py")]
    texts = [place.read_text("utf-8") for place in (ROOT / file, *contracts)]
    for one in (name, *checks):
        assert any(re.search(rf"def {re.escape(one)}\b", text) for text in texts), one


def test_a_bug_that_fits_twice_or_not_at_all_is_refused() -> None:
    bug = Mutant("b", "law", "a.py", "x", "y", ("t",))
    assert bug.applied("a x b") == "a y b"
    for text in ("x x", "a"):
        with pytest.raises(ValueError, match="occurs"):
            bug.applied(text)
