"""Matches a request's path against patterns with a tree of segments, without regular expressions.

Patterns: `/events/42` is exact, `/events/{event}/holds` has one segment of anything, `/api/**` is `/api` and anything
below it. Case, doubled slashes, and trailing slashes or dots are ignored. Where servers and applications could read a
path in several ways (`..`, double-encoded `%2f`, backslashes, mount points), a pattern applies if ANY reading matches.
An unusual spelling therefore cannot avoid a rule. At worst a request for a path that answers 404 is counted.
"""

from collections.abc import Iterable
from urllib.parse import unquote

from frontrow.core.errors import ConfigError

EXAMPLE = "/events/{event}/holds or /api/**"
_MAX_DECODINGS = 4  # of %252525…; more than any chain of proxies undoes
_AMBIGUOUS = ("%", "\\", "/.", ";")


def segments(path: str) -> tuple[str, ...]:
    """The path's segments in lower case, without empty segments and without trailing dots or spaces."""
    return tuple(part.rstrip(". ") or part for part in path.casefold().split("/") if part)


def readings(path: str, root_path: str = "") -> list[tuple[str, ...]]:
    """Every way the path could be read, the plainest first."""
    spellings = [path]
    if any(mark in path for mark in _AMBIGUOUS):
        decoded = _decoded(path).replace("\\", "/")
        without_params = "/".join(part.partition(";")[0] for part in decoded.split("/"))
        spellings += [unquote(path), decoded, without_params, _resolved(decoded), _resolved(without_params)]
    if root_path.strip("/"):
        root = "/" + root_path.strip("/")
        inner = [text[len(root) :] for text in spellings if text.startswith(root + "/") or text == root]
        spellings = inner + spellings
    return list(dict.fromkeys(segments(text) for text in spellings))


def _decoded(path: str) -> str:
    for _ in range(_MAX_DECODINGS):
        if "%" not in path:
            break
        path = unquote(path)
    return path


def _resolved(path: str) -> str:
    """The path with `.` and `..` resolved, never above the root."""
    stack: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del stack[-1:]
        elif part not in ("", "."):
            stack.append(part)
    return "/" + "/".join(stack)


class _Node:
    __slots__ = ("below", "exact", "literal", "wild")

    def __init__(self) -> None:
        self.literal: dict[str, _Node] = {}
        self.wild: _Node | None = None
        self.exact: str | None = None  # the pattern that ends here
        self.below: str | None = None  # the pattern that ends here with /**


class PathMatcher:
    """A set of patterns. `match` returns the most specific one that a path matches, or None."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        self._root = _Node()
        for pattern in self.patterns:
            self._add(pattern)

    def _add(self, pattern: str) -> None:
        if not pattern.startswith("/"):
            raise ConfigError(f"paths: {pattern!r} must start with a slash, like {EXAMPLE}", param="paths")
        node = self._root
        parts = segments(pattern)
        for index, part in enumerate(parts):
            if part == "**":
                if index != len(parts) - 1:
                    raise ConfigError(f"paths: {pattern!r} has ** before its end; valid: {EXAMPLE}", param="paths")
                node.below = pattern
                return
            if part == "*" or (part.startswith("{") and part.endswith("}")):
                node.wild = node.wild or _Node()
                node = node.wild
            elif "*" in part or "{" in part or "}" in part:
                raise ConfigError(f"paths: {part!r} in {pattern!r}: a wildcard is a whole segment, like {EXAMPLE}")
            else:
                node = node.literal.setdefault(part, _Node())
        node.exact = pattern

    def match(self, parts: tuple[str, ...]) -> str | None:
        """The most specific pattern: literal before wildcard, longer before shorter."""
        return self._match(self._root, parts, 0)

    def _match(self, node: _Node, parts: tuple[str, ...], depth: int) -> str | None:
        if depth == len(parts):
            return node.exact or node.below
        below = node.literal.get(parts[depth])
        found = self._match(below, parts, depth + 1) if below else None
        if found is None and node.wild:
            found = self._match(node.wild, parts, depth + 1)
        return found or node.below
