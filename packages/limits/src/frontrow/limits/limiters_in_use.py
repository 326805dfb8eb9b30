"""Every limiter of this process, so that a test can switch all of them at once: `frontrow.limits.testing` does.

A limiter is known by a weak reference, and a server asks nothing of this module after a limiter was made.
"""

import threading
import weakref
from collections.abc import Callable
from typing import Protocol

from frontrow.core.clock import Clock


class Switchable(Protocol):
    """A limiter, or the limits of requests."""

    def switch(self, clock: Clock | None) -> Callable[[], None]:
        """Count in memory, from nothing, on this clock; None: limit nothing. The result switches back."""


class LimiterSwitch:
    """What a test did to all limiters. While it is on, new limiters are switched too. Switches may be nested."""

    def __init__(self, clock: Clock | None) -> None:
        self.clock = clock
        self._back: list[Callable[[], None]] = []
        self._made: list[weakref.ref[Switchable]] = []

    def __enter__(self) -> "LimiterSwitch":
        with _lock:
            _switches.append(self)
        self._switch_all()
        return self

    def __exit__(self, *raised: object) -> None:
        with _lock:
            _switches.remove(self)
            outer = _switches[-1] if _switches else None
        self._switch_back()
        for made in filter(None, (each() for each in self._made)):
            if outer is not None:
                outer.add(made)

    def restart(self, clock: Clock | None) -> None:
        """Switch all limiters again: nothing is counted then."""
        self._switch_back()
        self.clock = clock
        self._switch_all()

    def add(self, limiter: Switchable) -> None:
        """A limiter that was made while the switch is on."""
        self._made.append(weakref.ref(limiter))
        self._back.append(limiter.switch(self.clock))

    def _switch_all(self) -> None:
        for limiter in _living():
            self._back.append(limiter.switch(self.clock))

    def _switch_back(self) -> None:
        while self._back:  # the last first, because some limiters contain others
            self._back.pop()()


_lock = threading.RLock()
_limiters: weakref.WeakSet[Switchable] = weakref.WeakSet()
_switches: list[LimiterSwitch] = []


def note_limiter(limiter: Switchable) -> None:
    """Know this limiter from now on. Every limiter calls it when it is made."""
    with _lock:
        _limiters.add(limiter)
        switch = _switches[-1] if _switches else None
    if switch is not None:
        switch.add(limiter)


def _living() -> list[Switchable]:
    with _lock:
        return list(_limiters)
