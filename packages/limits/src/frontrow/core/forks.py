"""What must be whole in a forked child: locks, and things that belong to threads of the parent.

A fork copies the memory but only the thread that forks. A lock that another thread holds would stay locked in the child
for ever, with whatever it guards half changed. So the locks made here are taken before a fork and freed on both sides
after it. That takes at most `MAX_WAIT_S`: who holds a lock for longer leaves it to the child as it is, free. What else
the child must begin anew (callers that wait, connections) it begins in the methods given to `begin_in_child`.

Only for locks that are held for moments. One that is held during a call to a server is begun anew instead.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable
from types import MethodType
from typing import Any

MAX_WAIT_S = 1.0
PAUSE_S = 0.0005

_locks: "weakref.WeakSet[threading.Lock]" = weakref.WeakSet()
_begin: "weakref.WeakKeyDictionary[object, Callable[[Any], None]]" = weakref.WeakKeyDictionary()
_registry = threading.Lock()
_taken: list[threading.Lock] = []  # by the thread that forks


def fork_safe_lock() -> threading.Lock:
    """A lock that is free in a forked child."""
    lock = threading.Lock()
    with _registry:
        _locks.add(lock)
    return lock


def begin_in_child(method: Callable[[], None]) -> None:
    """Call this method of an object in every forked child, as long as the object is there. All locks are free then."""
    assert isinstance(method, MethodType)
    with _registry:
        _begin[method.__self__] = method.__func__


def _before() -> None:
    _registry.acquire()
    locks, gives_up_s = list(_locks), time.monotonic() + MAX_WAIT_S
    while True:  # all or none: the thread that has one of them may be waiting for another
        _taken[:] = [lock for lock in locks if lock.acquire(blocking=False)]
        if len(_taken) == len(locks) or time.monotonic() >= gives_up_s:
            return
        for lock in _taken:
            lock.release()
        time.sleep(PAUSE_S)


def _after_in_parent() -> None:
    for lock in _taken:
        lock.release()
    _taken.clear()
    _registry.release()


def _after_in_child() -> None:
    for lock in list(_locks):
        if lock.locked():
            lock.release()
    _taken.clear()
    _registry.release()
    for owner, begin in list(_begin.items()):
        begin(owner)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
