"""What every store of rule books must do: versions in order, put on top of what was seen, and only the newest kept."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from frontrow.limits.stores.rule_versions import MAX_VERSIONS, RuleVersions, VersionConflict

Open = Callable[[], RuleVersions]  # another server's view of the same book
ODD = '# \u00fcber \'quotes\' "and" \\ lines\n\nname = "a"\t%s ? $1\n'


def check_empty_book(versions: RuleVersions) -> None:
    assert versions.newest() is None
    assert versions.get(1) is None
    assert versions.history() == []


def check_versions_in_order(versions: RuleVersions) -> None:
    first = versions.put(ODD, "ann", "because", 0)
    second = versions.put("two", "bob", "", 1)
    assert (first.version, first.text, first.by, first.note) == (1, ODD, "ann", "because")
    assert versions.get(1) == first
    assert versions.newest() == second
    assert versions.newest((2, second.at_us)) is None
    assert versions.newest((2, second.at_us - 1)) == second, "another book with the same number: it was restored"
    assert versions.history() == [second, first]
    assert versions.history(1) == [second]
    assert second.at_us >= first.at_us > 1_700_000_000_000_000


def check_nobody_overwrites_what_they_have_not_seen(versions: RuleVersions) -> None:
    versions.put("one", "ann", "", 0)
    for seen in (0, 2):
        with pytest.raises(VersionConflict, match=f"is at version 1, not {seen}"):
            versions.put("other", "bob", "", seen)
    newest = versions.newest()
    assert newest is not None
    assert newest.text == "one"


def check_one_of_fifty_operators_wins(open_versions: Open) -> None:
    """Each has seen the newest version, and puts at the same moment."""
    opened = [open_versions() for _ in range(50)]
    start = threading.Barrier(50)

    def put(at: int) -> bool:
        start.wait(30)
        try:
            opened[at].put(f"of {at}", "somebody", "", 0)
        except VersionConflict:
            return False
        return True

    with ThreadPoolExecutor(50) as operators:
        assert sum(operators.map(put, range(50))) == 1
    assert [each.version for each in opened[0].history()] == [1]
    for each in opened:
        each.close()


def check_only_the_newest_are_kept(versions: RuleVersions) -> None:
    for seen in range(MAX_VERSIONS + 3):
        versions.put(f"text {seen + 1}", "ann", "", seen)
    numbers = [each.version for each in versions.history()]
    assert numbers == list(range(MAX_VERSIONS + 3, 3, -1))
    assert versions.get(3) is None
    assert versions.get(4) is not None


CHECKS = (
    check_empty_book,
    check_versions_in_order,
    check_nobody_overwrites_what_they_have_not_seen,
    check_only_the_newest_are_kept,
)
