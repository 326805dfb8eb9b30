"""What is not covered is said, unless a reason names its line."""

from typing import Any

import pytest

from tests.mutants import branch_coverage
from tests.mutants.branch_coverage import left_out, unexplained
from tests.mutants.pure_rules import NOT_COVERED, source

MODULE = "shared/money.py"


def test_lines_and_branches_that_were_not_taken_are_named() -> None:
    report: Any = {"missing_lines": [3], "missing_branches": [[5, 9], [7, -1]]}
    assert left_out(report) == ["3", "5 -> 9", "7 -> the end"]
    assert left_out(None) == ["everything"], "a module that no test imports is in no report"


def test_a_reason_covers_its_line_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = source(MODULE).read_text("utf-8").splitlines()
    number = next(at for at, line in enumerate(lines, 1) if line.strip().startswith("return "))
    missing = {MODULE: [f"{number} -> the end", "1"]}
    assert unexplained(missing) == missing
    monkeypatch.setattr(branch_coverage, "NOT_COVERED", {(MODULE, lines[number - 1].strip()): "it cannot be reached"})
    assert unexplained(missing) == {MODULE: ["1"]}
    assert unexplained({MODULE: ["everything"]}) == {MODULE: ["everything"]}


def test_reasons_fit_the_code() -> None:
    for (module, line), why in NOT_COVERED.items():
        assert line in [one.strip() for one in source(module).read_text("utf-8").splitlines()], f"{module}: {line}"
        assert why
