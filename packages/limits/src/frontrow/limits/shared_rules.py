"""`SharedRules`: a rule book in Redis or SQL. A change is in force on every server within a second.

    shared = SharedRules(["100/minute"], store="redis://…")     # these hold until the store's have been read
    app = RateLimitMiddleware(app, rules=shared.book, store="redis://…")
    shared.put(text, by="ann", seen=3)                          # validated; on top of version 3 and no other

Each process has a thread that looks for a newer version every `REFRESH_S`. It takes a version only if every middleware
and limiter of this process can. Otherwise, and while the store does not answer, the rules in force stay, which is
counted (`book.failures`) and logged. `BookLimiter` is a limiter that follows a book.
"""

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from frontrow.core.errors import FrontrowError, InvalidInput, NotFound
from frontrow.core.forks import begin_in_child
from frontrow.core.log_line import LIMIT_RULES_KEPT, LIMIT_RULES_TAKEN, LIMIT_SHADOW_REFUSED
from frontrow.limits.durations import check_seconds
from frontrow.limits.quota import StoreDown
from frontrow.limits.rule_tables import rules_of_text
from frontrow.limits.rules import RequestRule, RuleBook
from frontrow.limits.stores.protocol import DEFAULT_PREFIX
from frontrow.limits.stores.rule_versions import (
    MAX_BY_CHARS,
    MAX_NOTE_CHARS,
    MAX_VERSIONS,
    RuleVersion,
    RuleVersions,
    open_rule_versions,
)

T = TypeVar("T")
REFRESH_S = 0.4
REPORT_S = 60.0  # between two lines about a shadow rule
REPEAT_S = 60.0  # the same problem is logged again after this long
TIMEOUT_S = 1.0  # of each call to the store


class SharedRules:
    """Follows the book `name` in a store and puts its newest version in force in `book`."""

    def __init__(
        self,
        rules: RuleBook | Sequence[RequestRule],
        *,
        store: Any = None,
        name: str = "default",
        prefix: str = DEFAULT_PREFIX,
        versions: RuleVersions | None = None,
        refresh_s: float = REFRESH_S,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.book = rules if isinstance(rules, RuleBook) else RuleBook(rules)
        self.book.is_shared = True
        self.name = name
        self._versions = versions or open_rule_versions(store, name, prefix=prefix, timeout_s=TIMEOUT_S)
        self._refresh_s = check_seconds("refresh_s", refresh_s, 0.001, 3600, example=REFRESH_S)
        self._monotonic_s = monotonic_s
        self._known = (0, 0)  # version and time of what was looked at last, taken or not
        self._logged: tuple[str, float] | None = None
        self._reported: dict[str, int] = {}
        self._report_at_s = monotonic_s() + REPORT_S
        self._start()
        begin_in_child(self._begin_in_child)

    # -- following -------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._closed = threading.Event()
        thread = threading.Thread(
            target=_keep_fresh,
            args=(weakref.ref(self), self._closed, self._refresh_s),
            name="frontrow limit rules",
            daemon=True,
        )
        thread.start()

    def _begin_in_child(self) -> None:
        """A forked child has no thread that follows, so it starts one."""
        if not self._closed.is_set():
            self._start()

    def refresh(self) -> None:
        """Look for a newer version and take it. What is wrong with it is counted and logged; the rules stay."""
        with self._lock:
            try:
                newest = self._versions.newest(self._known)
                if newest is not None:
                    self._known = (newest.version, newest.at_us)
                    rules = rules_of_text(newest.text, f"version {newest.version}")
                    self.book.replace(rules)
                    self.book.version, self._logged = newest.version, None
                    LIMIT_RULES_TAKEN(book=self.name, version=newest.version, rules=len(rules))
            except FrontrowError as error:
                self._keep(error.message)
            except Exception as error:  # whatever the store's client raises, or a book that nobody can read
                self._keep(f"{type(error).__name__}: {error}")
            self._report_shadow_rules()

    def _keep(self, problem: str) -> None:
        self.book.failures += 1
        now_s = self._monotonic_s()
        if self._logged is None or self._logged[0] != problem or now_s >= self._logged[1] + REPEAT_S:
            self._logged = (problem, now_s)
            LIMIT_RULES_KEPT(book=self.name, version=self.book.version, problem=problem)

    def _report_shadow_rules(self) -> None:
        if self._monotonic_s() < self._report_at_s:
            return
        self._report_at_s = self._monotonic_s() + REPORT_S
        for rule, refusals in self.book.shadow_refusals().items():
            if refusals > self._reported.get(rule, 0):
                LIMIT_SHADOW_REFUSED(rule=rule, refusals=refusals - self._reported.get(rule, 0))
                self._reported[rule] = refusals

    # -- changing --------------------------------------------------------------------------------------------------

    def put(self, text: str, *, by: str, seen: int, note: str = "") -> RuleVersion:
        """Add a version after the one that its author has seen. Errors name what is wrong; then nothing is added."""
        return put_rules(self._versions, text, by=by, seen=seen, note=note)

    def roll_back(self, to: int, *, by: str, seen: int) -> RuleVersion:
        """Put the text of an earlier version again, as a new version."""
        return roll_back_rules(self._versions, to, by=by, seen=seen)

    def history(self, most: int = MAX_VERSIONS) -> list[RuleVersion]:
        """The newest versions, the newest first: who put them, when and why."""
        return ask_store(lambda: self._versions.history(most))

    def close(self) -> None:
        """Stop following. The rules in force stay."""
        self._closed.set()
        self._versions.close()


def put_rules(versions: RuleVersions, text: str, *, by: str, seen: int, note: str = "") -> RuleVersion:
    """Add a version of a book, if its rules are valid and `seen` is the newest."""
    rules_of_text(text)
    for name, value, most in (("by", by, MAX_BY_CHARS), ("note", note, MAX_NOTE_CHARS)):
        if not isinstance(value, str) or len(value) > most or not (value or name == "note") or not value.isprintable():
            raise InvalidInput(f"{name} must be a text of at most {most} characters, not {value!r:.120}", param=name)
    if type(seen) is not int or seen < 0:
        raise InvalidInput(f"seen must be the number of the version you have seen, not {seen!r}", param="seen")
    return ask_store(lambda: versions.put(text, by, note, seen))


def roll_back_rules(versions: RuleVersions, to: int, *, by: str, seen: int) -> RuleVersion:
    """Put the text of an earlier version again."""
    earlier = ask_store(lambda: versions.get(to))
    if earlier is None:
        raise NotFound(f"there is no version {to} of this rule book; the last {MAX_VERSIONS} are kept", param="version")
    return put_rules(versions, earlier.text, by=by, seen=seen, note=f"rolled back to version {to}")


def ask_store(call: Callable[[], T]) -> T:
    """What a call to the versions returns. `StoreDown` if their store failed."""
    try:
        return call()
    except FrontrowError:
        raise
    except Exception as error:  # whatever the store's client raises
        raise StoreDown(f"the rule book's store failed: {type(error).__name__}: {error}") from error


def _keep_fresh(ref: "weakref.ref[SharedRules]", closed: threading.Event, refresh_s: float) -> None:
    """Refresh until the rules are closed or nobody refers to them any more."""
    while True:
        shared = ref()
        if shared is None or closed.is_set():
            return
        shared.refresh()
        del shared
        if closed.wait(refresh_s):
            return
