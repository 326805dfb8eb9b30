"""The port of the permit stores, and the store in this process's memory.

A permit is the right to be one of `limit` at once. It ends when it is released, or `ttl_us` after it was taken or last
renewed. Who has to wait stands in a line, and the line is served in order. A caller keeps its place by asking again
within `PLACE_TTL_US`. `MemoryPermits` is the specification, and `lua/permits.lua` does the same in Redis.
"""

from collections.abc import Awaitable
from typing import NamedTuple, Protocol

from frontrow.core.clock import Clock
from frontrow.core.forks import begin_in_child, fork_safe_lock
from frontrow.limits.keys import StoreKey

TAKE, WAIT, RENEW, RELEASE, COUNT = 0, 1, 2, 3, 4
PLACE_TTL_US = 2_000_000


class PermitRequest(NamedTuple):
    """One request to a permit store. `permit` is an id that the caller made, so repeating a request is harmless."""

    op: int
    key: StoreKey
    permit: str
    limit: int
    ttl_us: int
    max_waiting: int = 0
    now_us: int | None = None


class PermitAnswer(NamedTuple):
    """`done`: taken, renewed or released. `in_use`: permits taken by now. `ahead`: callers in line before this one."""

    done: bool
    in_use: int
    ahead: int


class PermitStore(Protocol):
    """Applies each request in one atomic step. Blocking and asyncio callers get the same answers."""

    def apply(self, request: PermitRequest) -> PermitAnswer: ...

    def aapply(self, request: PermitRequest) -> Awaitable[PermitAnswer]: ...

    def close(self) -> None: ...

    async def aclose(self) -> None: ...


class KeyPermits:
    """The permits of one key: who has one until when, and who waits."""

    __slots__ = ("holders", "line")

    def __init__(self) -> None:
        self.holders: dict[str, int] = {}  # permit -> end of its life
        self.line: dict[str, int] = {}  # permit -> end of its place in line, in the order of arrival

    def drop_ended(self, now_us: int) -> None:
        for ends in (self.holders, self.line):
            for permit in [permit for permit, ends_us in ends.items() if ends_us <= now_us]:
                del ends[permit]

    def apply(self, request: PermitRequest, now_us: int) -> PermitAnswer:
        op, _, permit, limit, ttl_us, max_waiting, _ = request
        self.drop_ended(now_us)
        done, ahead = False, 0
        if op == RELEASE:
            done = self.holders.pop(permit, None) is not None
            self.line.pop(permit, None)
        elif op == RENEW:
            done = permit in self.holders
            if done:
                self.holders[permit] = now_us + ttl_us
        elif op != COUNT:
            ahead = list(self.line).index(permit) if permit in self.line else len(self.line)
            done = permit in self.holders or len(self.holders) + ahead < limit
            if done:
                self.line.pop(permit, None)
                self.holders[permit] = now_us + ttl_us
                ahead = 0
            elif op == WAIT and (permit in self.line or ahead < max_waiting):
                self.line[permit] = now_us + PLACE_TTL_US
        return PermitAnswer(done, len(self.holders), ahead)


class MemoryPermits:
    """Permits in this process, exact under threads. A key without permits takes no memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = fork_safe_lock()
        self._keys: dict[StoreKey, KeyPermits] = {}
        begin_in_child(self._begin)

    def _begin(self) -> None:
        """Forget all permits: in a forked child nobody has one."""
        self._keys.clear()

    def __len__(self) -> int:
        """The number of keys with permits or a line."""
        return len(self._keys)

    def apply(self, request: PermitRequest) -> PermitAnswer:
        with self._lock:
            now_us = self._clock() if request.now_us is None else request.now_us
            self._drop_idle_key(now_us)
            permits = self._keys.pop(request.key, None) or KeyPermits()
            answer = permits.apply(request, now_us)
            if permits.holders or permits.line:
                self._keys[request.key] = permits
        return answer

    def _drop_idle_key(self, now_us: int) -> None:
        """Look at the key that was not looked at for the longest time. So all ended permits leave sooner or later."""
        oldest = next(iter(self._keys), None)
        if oldest is not None:
            permits = self._keys.pop(oldest)
            permits.drop_ended(now_us)
            if permits.holders or permits.line:
                self._keys[oldest] = permits

    async def aapply(self, request: PermitRequest) -> PermitAnswer:
        return self.apply(request)

    def close(self) -> None:
        """Nothing to close."""

    async def aclose(self) -> None:
        """Nothing to close."""
