"""Envoy's descriptors: a tree of rules per domain, and which rule a descriptor of a request finds in it. Pure.

A node has a key, and perhaps a value. The value may contain `*`, each for any number of characters. At every level the
most specific node wins: the exact value, then the first value with a `*` that fits, then the key alone. A limit applies
only at the depth at which it stands: a descriptor with two entries never finds the limit of a node at the first level.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from frontrow.limits.keys import MAX_KEY_CHARS, digest
from frontrow.limits.quota import Quota

Entry = tuple[str, str]  # key and value


@dataclass(frozen=True, slots=True)
class DescriptorLimit:
    """What a node says about requests: a quota, nothing at all (`unlimited`), or that none is allowed (`is_zero`)."""

    rule: str  # the name of the limiter's rule, for counts and metrics
    quota: Quota | None
    unlimited: bool = False
    shadow: bool = False
    name: str = ""  # by which others replace it
    replaces: tuple[str, ...] = ()
    per_us: int = 0  # of a limit of zero: the period that it names

    @property
    def is_zero(self) -> bool:
        return self.quota is None and not self.unlimited


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A value with `*`, each for any number of characters, none included."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, value: str) -> "Wildcard":
        return cls(tuple(re.split(r"\*+", value)))

    def fits(self, value: str) -> bool:
        """Whether `value` has all the parts, in their order. Each is taken where it first occurs."""
        first, *middle, last = self.parts
        at, end = len(first), len(value) - len(last)
        if at > end or not value.startswith(first) or not value.endswith(last):
            return False
        for part in middle:
            found = value.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True


@dataclass(slots=True)
class Node:
    """One level of the tree. `exact` is by key and value, `patterns` by key in the order of the file."""

    limit: DescriptorLimit | None = None
    shares: str | None = None  # the value that all values matching it count under
    exact: dict[Entry, "Node"] = field(default_factory=dict)
    patterns: dict[str, list[tuple["Wildcard", "Node"]]] = field(default_factory=dict)
    any_value: dict[str, "Node"] = field(default_factory=dict)

    def find(self, key: str, value: str) -> "Node | None":
        """The most specific node for an entry."""
        found = self.exact.get((key, value))
        if found is not None:
            return found
        for pattern, node in self.patterns.get(key, ()):
            if pattern.fits(value):
                return node
        return self.any_value.get(key)

    def put(self, key: str, value: str, node: "Node") -> bool:
        """Add a node below this one. `False` if there is one for the same key and value."""
        if not value:
            return self.any_value.setdefault(key, node) is node
        if "*" not in value:
            return self.exact.setdefault((key, value), node) is node
        of_key = self.patterns.setdefault(key, [])
        pattern = Wildcard.of(value)
        if any(other == pattern for other, _ in of_key):
            return False
        of_key.append((pattern, node))
        return True


@dataclass(frozen=True, slots=True)
class Found:
    """The limit that a descriptor found, and the key under which it counts."""

    limit: DescriptorLimit
    key: bytes


class Domains:
    """The trees of all domains."""

    def __init__(self, trees: Mapping[str, Node] | None = None) -> None:
        self._trees = dict(trees or {})

    def __contains__(self, domain: str) -> bool:
        return domain in self._trees

    def find(self, domain: str, entries: Sequence[Entry]) -> Found | None:
        """The limit of a descriptor, if the domain has one at exactly its depth."""
        node = self._trees.get(domain)
        counted: list[Entry] = []
        for key, value in entries:
            node = node.find(key, value) if node is not None else None
            if node is None:
                return None
            counted.append((key, value if node.shares is None else node.shares))
        return None if node is None or node.limit is None else Found(node.limit, pack_entries(counted))

    def limits(self) -> list[DescriptorLimit]:
        """Every limit of every domain."""
        found: list[DescriptorLimit] = []
        open_nodes = list(self._trees.values())
        while open_nodes:
            node = open_nodes.pop()
            if node.limit is not None:
                found.append(node.limit)
            open_nodes += [*node.exact.values(), *node.any_value.values()]
            open_nodes += [below for of_key in node.patterns.values() for _, below in of_key]
        return found


def pack_entries(entries: Sequence[Entry]) -> bytes:
    """A store key that no other entries share. It is readable on the page of refused keys."""
    packed = bytearray()
    for pair in entries:
        for text in pair:
            raw = text.encode("utf-8", "surrogatepass")
            packed += b"%d:%b" % (len(raw), raw)
    return bytes(packed) if len(packed) <= MAX_KEY_CHARS else digest(bytes(packed))


def rule_name(domain: str, path: Sequence[Entry]) -> str:
    """The limiter's name of a descriptor's rule: `domain.key_value.key`. Other characters become `_` and a digest."""
    wanted = ".".join([domain, *(f"{key}_{value}" if value else key for key, value in path)])
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", wanted)
    if plain == wanted and len(plain) <= 64 and plain[:1].isalpha():
        return plain
    full = repr([domain, *path]).encode("utf-8", "surrogatepass")
    return f"{('d.' + plain)[:51]}.{blake2b(full, digest_size=6).hexdigest()}"
