"""The calls to one shared store, used by all limiters of this process that use it in the same way.

A limiter per route is a store per route. They share one connection per event loop and one for all threads, and what
they ask at the same moment is one round trip.
"""

import asyncio
import weakref
from collections.abc import AsyncGenerator
from typing import Any, Protocol

from frontrow.core.errors import ConfigError
from frontrow.core.forks import begin_in_child, fork_safe_lock
from frontrow.limits.stores.blocking_calls import BlockingCalls
from frontrow.limits.stores.protocol import StoreRequest, StoreResult


class LoopCalls(Protocol):
    """The calls of one event loop."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def submit(self, asker: Any, request: StoreRequest) -> "asyncio.Future[StoreResult]": ...

    def close_with_the_loop(self) -> AsyncGenerator[None, None]: ...

    def abandon(self) -> None: ...


class CallSource(Protocol):
    """Where calls come from: it opens connections, and says what kinds of callers it can serve."""

    @property
    def serves_blocking(self) -> bool: ...

    @property
    def serves_asyncio(self) -> bool: ...

    @property
    def refusal(self) -> str:
        """What to give in place of a source that does not serve a kind of caller."""

    def blocking_calls(self, deadline_s: float) -> BlockingCalls: ...

    def loop_calls(self, deadline_s: float) -> LoopCalls: ...


class SharedCalls:
    """Blocking calls, and those of each event loop. The last user that closes them closes the connections."""

    def __init__(self, source: CallSource, deadline_s: float) -> None:
        self.source: Any = source
        self.users: weakref.WeakSet[Any] = weakref.WeakSet()
        self._deadline_s = deadline_s
        self._blocking = source.blocking_calls(deadline_s)
        begin_in_child(self._begin_in_child)
        self._begin()

    def _begin(self) -> None:
        self._loop_calls: LoopCalls | None = None  # of the loop that was used last
        self._loops: dict[asyncio.AbstractEventLoop, tuple[LoopCalls, AsyncGenerator[None, None]]] = {}

    def _begin_in_child(self) -> None:
        """Begin without event loops. The parent's are kept aside: to close them here would disturb the parent."""
        _of_the_parent.append(self._loops)
        self._begin()

    def decide(self, asker: Any, request: StoreRequest) -> StoreResult:
        """Decide one request, sharing the round trip with other threads' requests of the same moment."""
        if not self.source.serves_blocking:
            raise ConfigError(f"blocking calls need a blocking client, like {self.source.refusal}", param="store")
        return self._blocking.decide(asker, request)

    def adecide(self, asker: Any, request: StoreRequest) -> "asyncio.Future[StoreResult]":
        """Decide one request, sharing the round trip with other tasks' requests of the same moment."""
        calls = self._loop_calls
        if calls is None or calls.loop is not asyncio.get_running_loop():
            calls = self._loop_calls = self._calls_of(asyncio.get_running_loop())
        return calls.submit(asker, request)

    def _calls_of(self, loop: asyncio.AbstractEventLoop) -> LoopCalls:
        if not self.source.serves_asyncio:
            raise ConfigError(f"asyncio calls need an asyncio client, like {self.source.refusal}", param="store")
        for closed in [each for each in self._loops if each.is_closed()]:
            self._loops.pop(closed)[0].abandon()
        if loop not in self._loops:
            calls: LoopCalls = self.source.loop_calls(self._deadline_s)
            self._loops[loop] = calls, calls.close_with_the_loop()
        return self._loops[loop][0]

    def close(self, user: Any) -> None:
        """`user` needs the calls no more. Without any other user, the blocking connection is closed."""
        self.users.discard(user)
        if not self.users:
            self._blocking.close()

    async def aclose(self, user: Any) -> None:
        """`close`, and without any other user close the connection of the running event loop."""
        self.close(user)
        if not self.users:
            self._loop_calls = None
            held = self._loops.pop(asyncio.get_running_loop(), None)
            if held is not None:
                await held[1].aclose()


_of_the_parent: list[object] = []
_shared: "weakref.WeakValueDictionary[Any, SharedCalls]" = weakref.WeakValueDictionary()
_lock = fork_safe_lock()


def share_calls(source: CallSource, identity: Any, user: Any, *, deadline_s: float) -> SharedCalls:
    """The calls of `source`, for `user`. Users whose sources have the same identity get the same calls."""
    key = (identity, deadline_s)
    with _lock:
        calls = _shared.get(key)
        if calls is None:
            calls = _shared[key] = SharedCalls(source, deadline_s)
        calls.users.add(user)
    return calls
