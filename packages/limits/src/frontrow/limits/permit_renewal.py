"""Renews the permits that this process holds, in one background thread that runs only while there are any.

A permit that nobody refers to any more is not renewed, and neither is one that a parent process took before a fork. So
a permit ends soon after its holder, however the holder ended.
"""

import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from frontrow.core.forks import fork_safe_lock

Held = TypeVar("Held")


class Renewals(Generic[Held]):
    """Calls `renew(permit)` for each permit, every `interval_s`."""

    def __init__(self, renew: Callable[[Held], None], interval_s: float) -> None:
        self._renew = renew
        self._interval_s = interval_s
        self._lock = fork_safe_lock()
        self._stopped = threading.Event()  # of the current thread
        self._held: dict[int, weakref.ref[Held]] = {}
        self._thread: threading.Thread | None = None

    def add(self, permit: Held) -> None:
        with self._lock:
            self._held[id(permit)] = weakref.ref(permit)
            if self._thread is None or not self._thread.is_alive():  # not alive: this process was forked
                self._stopped = threading.Event()
                self._thread = threading.Thread(
                    target=self._run, args=(self._stopped,), name="frontrow permits", daemon=True
                )
                self._thread.start()

    def remove(self, permit: Held) -> None:
        with self._lock:
            self._held.pop(id(permit), None)

    def renew_all(self) -> bool:
        """Renew all permits once. Returns whether there are any."""
        with self._lock:
            alive = {number: permit for number, ref in self._held.items() if (permit := ref()) is not None}
            self._held = {number: self._held[number] for number in alive}
        for permit in alive.values():
            self._renew(permit)
        return bool(alive)

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.wait(self._interval_s):
            if not self.renew_all():
                with self._lock:
                    if not self._held:
                        self._thread = None
                        return

    def close(self) -> None:
        """Stop the thread. Permits that are still held end with their time to live."""
        with self._lock:
            self._held.clear()
            thread, self._thread = self._thread, None
            self._stopped.set()
        if thread is not None and thread.is_alive():
            thread.join(1)
