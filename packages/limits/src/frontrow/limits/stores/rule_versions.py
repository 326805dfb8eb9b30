"""The port of shared rule books: the versions of a book, kept in a store that all servers read.

A version is never changed. A new one is put only on top of the version that its author has seen, so that two people do
not overwrite each other. The newest `MAX_VERSIONS` are kept.
"""

import re
import threading
import time
from typing import Any, NamedTuple, Protocol

from frontrow.core.errors import ConfigError, Refused
from frontrow.limits.stores.protocol import DEFAULT_PREFIX, check_prefix, names_memory, names_sql

MAX_VERSIONS = 200
MAX_BY_CHARS, MAX_NOTE_CHARS = 100, 500


class RuleVersion(NamedTuple):
    """One version of a rule book: its text, who put it, when and why."""

    version: int
    text: str
    by: str
    at_us: int  # by the store's clock
    note: str = ""


class VersionConflict(Refused):
    """Somebody else has changed the book meanwhile."""

    code = "rule_book_changed"


class RuleVersions(Protocol):
    """The versions of one book. A call may take as long as the store's timeout, and raises what its client does."""

    def newest(self, known: tuple[int, int] = (0, 0)) -> RuleVersion | None:
        """The newest version. `None` if there is none, or if it is the one with this number and time."""

    def get(self, version: int) -> RuleVersion | None: ...

    def history(self, most: int = MAX_VERSIONS) -> list[RuleVersion]:
        """The newest versions, the newest first."""

    def put(self, text: str, by: str, note: str, seen: int) -> RuleVersion:
        """Add a version after `seen` (0: there is none yet). `VersionConflict` if that is not the newest."""

    def close(self) -> None: ...


class MemoryRuleVersions:
    """The versions in this process, for tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: list[RuleVersion] = []

    def newest(self, known: tuple[int, int] = (0, 0)) -> RuleVersion | None:
        found = self._versions[-1] if self._versions else None
        return None if found is None or (found.version, found.at_us) == known else found

    def get(self, version: int) -> RuleVersion | None:
        return next((each for each in self._versions if each.version == version), None)

    def history(self, most: int = MAX_VERSIONS) -> list[RuleVersion]:
        return self._versions[::-1][:most]

    def put(self, text: str, by: str, note: str, seen: int) -> RuleVersion:
        with self._lock:
            newest = self._versions[-1].version if self._versions else 0
            if newest != seen:
                raise conflict(seen, newest)
            self._versions.append(RuleVersion(newest + 1, text, by, time.time_ns() // 1000, note))
            del self._versions[:-MAX_VERSIONS]
            return self._versions[-1]

    def close(self) -> None:
        """Nothing to close."""


def open_rule_versions(store: Any, name: str, *, prefix: str = DEFAULT_PREFIX, timeout_s: float) -> RuleVersions:
    """The versions of the book `name` in the store at a URL, or over redis-py clients."""
    check_prefix(prefix)
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
        raise ConfigError(f"a rule book's name is 1 to 64 letters, digits, _ . or -, not {name!r}", param="rule_book")
    if names_memory(store):
        message = "a shared rule book needs a store that all servers read, like redis://127.0.0.1:6379/0"
        raise ConfigError(message, param="store")
    if names_sql(store):
        from frontrow.limits.stores.sql_rule_versions import open_sql_versions

        return open_sql_versions(store, f"{prefix}:{name}", timeout_s)
    from frontrow.limits.stores.redis_rule_versions import RedisRuleVersions

    return RedisRuleVersions(store, name, prefix=prefix, timeout_s=timeout_s)


def conflict(seen: int, newest: int) -> VersionConflict:
    """The error of somebody who has not seen the newest version."""
    message = f"the rule book is at version {newest}, not {seen}; look at it and put yours again"
    return VersionConflict(message, param="seen")
