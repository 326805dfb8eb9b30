"""What a run of planted bugs says: caught only by a test that was named, and everything as it was afterwards."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import chosen, table
from tests.mutants.corpus import corpus
from tests.mutants.mutant import Mutant
from tests.mutants.runner import Copy, Ending, Outcome, Verdict, judged

BUG = Mutant("b", "law", "a.py", "one", "two", ("tests/t.py::test_one[x y]", "tests/t.py::TestAll::test_two"))


@pytest.mark.parametrize(
    ("ending", "verdict"),
    [
        (Ending(0, "2 passed"), Verdict.SURVIVED),
        (Ending(1, "FAILED tests/t.py::test_one[x y] - assert 1 == 2\n1 failed"), Verdict.CAUGHT),
        (Ending(1, "ERROR tests/t.py::TestAll::test_two\n1 error"), Verdict.CAUGHT),
        (Ending(1, "FAILED tests/t.py::test_other - no"), Verdict.BROKEN),
        (Ending(2, "ERROR tests/t.py - SyntaxError"), Verdict.BROKEN),
        (Ending(4, "ERROR: not found: tests/t.py::test_one"), Verdict.BROKEN),
        (Ending(None, "FAILED tests/t.py::test_one[x y]"), Verdict.BROKEN),
    ],
)
def test_a_bug_is_caught_by_a_test_that_was_named_and_failed(ending: Ending, verdict: Verdict) -> None:
    assert judged(BUG, ending, 1.0).verdict is verdict


def test_the_tree_is_as_before_after_a_bug_even_if_the_run_breaks(tmp_path: Path) -> None:
    path = BUG.path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("one = 1\n")
    before = path.stat().st_mtime_ns

    def run() -> None:
        with Copy(tmp_path, "", "").planted(BUG):
            assert path.read_text() == "two = 1\n"
            assert path.stat().st_mtime_ns != before, "otherwise Python would use what it compiled before"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert (path.read_text(), path.stat().st_mtime_ns) == ("one = 1\n", before)


def test_one_area_or_one_bug_can_be_chosen() -> None:
    (area, *_), (name, *_) = corpus(), [mutants[0].name for mutants in corpus().values()]
    assert chosen([area]).keys() == {area}
    assert [one.name for group in chosen([name]).values() for one in group] == [name]
    assert chosen(["nothing"]) == {}
    assert chosen([]).keys() == corpus().keys()


def test_the_table_says_who_caught_what() -> None:
    caught = Outcome(BUG, Verdict.CAUGHT, "tests/t.py::test_one[x y]", 2.0)
    lines = table({"area": [BUG]}, [caught])
    assert any("test_one[x y]" in line and "2.0 s" in line for line in lines)
    assert lines[-1].split() == ["area", "1", "of", "1", "caught"]
    survived = table({"area": [BUG]}, [Outcome(BUG, Verdict.SURVIVED)])
    assert any("SURVIVED" in line for line in survived)
