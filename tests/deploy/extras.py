"""Which distributions each extra brings."""

from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


@cache
def required(extra: str) -> frozenset[str]:
    """The distributions that `pip install frontrow[extra]` brings."""
    found: set[tuple[str, str]] = set()
    todo = [("frontrow", extra)]
    while todo:
        name, of = todo.pop()
        if (name, of) not in found:
            found.add((name, of))
            todo += _requirements(name, of)
    return frozenset(name for name, _ in found)


def _requirements(name: str, extra: str) -> Iterator[tuple[str, str]]:
    try:
        lines = distribution(name).requires or ()
    except PackageNotFoundError:
        return  # of another platform
    for line in lines:
        needed = Requirement(line)
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            yield from ((canonicalize_name(needed.name), more) for more in ("", *needed.extras))
