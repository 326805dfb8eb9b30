"""What the mutation score counts: every change of a rule, and no change that nobody could notice."""

import ast
import json
from pathlib import Path

import pytest

from tests.mutants.mutation_score import Score, score_of
from tests.mutants.pure_rules import LEAST, NOT_MEASURED, SAME, SUBJECTS, is_a_rule, source
from tests.support.sources import ROOT

MODULE = """
def x_pay__mutmut_orig(minor):
    if minor < 0:
        raise ValueError(f"{minor} is too little")
    return minor

def x_pay__mutmut_1(minor):
    if minor <= 0:
        raise ValueError(f"{minor} is too little")
    return minor

def x_pay__mutmut_2(minor):
    if minor < 0:
        raise ValueError(None)
    return minor

def x_pay__mutmut_3(minor):
    if minor < 0:
        raise ValueError(f"{minor} is too little")
    return -minor
"""


def function(text: str) -> ast.FunctionDef:
    (found,) = ast.parse(text).body
    assert isinstance(found, ast.FunctionDef)
    return found


def left_by_mutmut(folder: Path, *codes: int | None) -> Path:
    (folder / "rules.py").write_text(MODULE, "utf-8")
    names = {f"frontrow.rules.x_pay__mutmut_{number}": code for number, code in enumerate(codes, 1)}
    (folder / "rules.py.meta").write_text(json.dumps({"exit_code_by_key": names}), "utf-8")
    return folder


def test_a_change_that_its_tests_pass_with_survives_and_the_words_of_an_error_do_not_count(tmp_path: Path) -> None:
    score = score_of(left_by_mutmut(tmp_path, 0, 0, 1), "rules.py")
    assert (score.made, score.percent, score.is_enough) == (2, 50.0, False)
    (survivor,) = score.survivors
    assert "- if minor < 0:" in survivor
    assert "+ if minor <= 0:" in survivor


@pytest.mark.parametrize("code", [5, 33])
def test_a_change_that_no_test_reaches_survives(tmp_path: Path, code: int) -> None:
    assert score_of(left_by_mutmut(tmp_path, 1, 1, code), "rules.py").percent == 50.0


def test_a_change_that_was_not_tried_is_no_score(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="did not try"):
        score_of(left_by_mutmut(tmp_path, 1, 1, None), "rules.py")


def test_a_module_is_good_enough_at_its_floor() -> None:
    assert LEAST >= 95
    assert Score("m", 100, ("survivor",) * (100 - LEAST)).is_enough
    assert not Score("m", 100, ("survivor",) * (101 - LEAST)).is_enough
    assert not Score("m", 0, ()).is_enough, "a module without changes was not measured"


def test_what_is_no_rule() -> None:
    said, other = function("def f(a):\n    raise E('a', b=a)"), function("def f(a):\n    raise E('c', b=None)")
    assert not is_a_rule(said, other)
    assert is_a_rule(said, function("def f(a):\n    raise F('a', b=a)"))
    told, about = (function(f"def f(self, a):\n    super().__init__({given})") for given in ("'no', x=a", "'XX', x=b"))
    assert not is_a_rule(told, function("def f(self, a):\n    super().__init__(None, x=a)"))
    assert is_a_rule(told, about), "what an error is about is read by programs"
    strict = function("def f(a):\n    return list(zip(a, a, strict=True))")
    assert not is_a_rule(strict, function("def f(a):\n    return list(zip(a, a, strict=False))"))
    assert is_a_rule(strict, function("def f(a):\n    return list(zip(a, None, strict=True))"))


def test_every_model_is_measured_or_named_as_not_measured() -> None:
    base = ROOT / "src/frontrow"
    found = [
        *base.glob("boxoffice/*/model/*.py"),
        *base.glob("waitingroom/model/*.py"),
        *base.glob("boxoffice/*/model.py"),
    ]
    models = {path.relative_to(base).as_posix() for path in found if path.name != "__init__.py"}
    measured = {module for subject in SUBJECTS for module in subject.modules}
    assert models - measured == NOT_MEASURED


def test_subjects_and_reasons_fit_the_code() -> None:
    modules = [module for subject in SUBJECTS for module in subject.modules]
    assert len(modules) == len(set(modules)) > 5
    assert all(source(module).is_file() for module in modules)
    assert all((ROOT / test).exists() for subject in SUBJECTS for test in subject.tests)
    for (module, before, after), why in SAME.items():
        text = " ".join(source(module).read_text("utf-8").split())  # a change may be of several lines
        assert " ".join(before.split()) in text, f"{module} has no line {before!r} any more"
        assert before != after
        assert why
