"""`ConcurrencyLimiter`: at most n at once, per key. In one process or over all servers.

    uploads = ConcurrencyLimiter("3 at once", name="uploads", store="redis://…")
    with uploads.permit("user:42", timeout_s=2): ...
    async with uploads.permit("user:42", timeout_s=2): ...

A permit has a time to live. While it is held, this process renews it in the background, for at most `max_hold_s`. If
the process dies, the permit ends by itself within `ttl_s`. Waiting callers are served in the order in which they came.
"""

import asyncio
import contextlib
import os
import re
import threading
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, Unpack

from frontrow.core.background_tasks import carry_out
from frontrow.core.clock import US_PER_S, Clock, SystemClock, steady
from frontrow.core.errors import ConfigError
from frontrow.core.failures import failures_here
from frontrow.core.forks import begin_in_child, fork_safe_lock
from frontrow.limits.durations import check_seconds
from frontrow.limits.keys import Key, rule_key
from frontrow.limits.options import StoreOptions, check_options
from frontrow.limits.permit_renewal import Renewals
from frontrow.limits.quota import ON_STORE_DOWN, Decision, InvalidQuota, OnStoreDown, Quota, Rule, StoreDown, Throttled
from frontrow.limits.stores.deadline import check_deadline
from frontrow.limits.stores.permits import (
    COUNT,
    RELEASE,
    RENEW,
    TAKE,
    WAIT,
    MemoryPermits,
    PermitAnswer,
    PermitRequest,
    PermitStore,
)
from frontrow.limits.stores.protocol import DEFAULT_PREFIX, check_prefix, names_memory, names_sql
from frontrow.limits.waiting_line import check_timeout

MAX_AT_ONCE = 1_000_000
_OPTIONS = (
    *("at_once", "name", "store", "ttl_s", "max_hold_s", "max_waiting", "on_store_down", "deadline_s", "clock"),
    *("prefix", "credential_provider"),
)
MAX_WAIT_S = 3600.0  # of an acquire without a timeout
FIRST_POLL_S, LAST_POLL_S = 0.01, 0.1  # how often the first in line asks the store, and how often the others do
RELEASES = "permit releases"  # the job of what is given back
RENEWALS_PER_TTL = 3  # two renewals may fail before a permit ends
RETRY_HINT_US = US_PER_S  # nobody knows when a permit is released, so a refusal suggests this
_TEXT = re.compile(r"\s*(\d+)(?:\s+at\s+once)?\s*", re.IGNORECASE)


class Permit:
    """One of the n. Release it when the work is done, or use it as a context manager."""

    __slots__ = ("__weakref__", "_limiter", "ends_us", "process", "renew_until_us", "request")

    def __init__(
        self, limiter: "ConcurrencyLimiter", request: PermitRequest, taken_at_us: int, max_hold_us: int
    ) -> None:
        self._limiter = limiter
        self.request = request
        self.process = os.getpid()
        self.ends_us = taken_at_us + request.ttl_us
        self.renew_until_us = taken_at_us + max_hold_us

    @property
    def is_held(self) -> bool:
        """Whether this permit still counts. It ends when it could not be renewed in time, or after `max_hold_s`."""
        return self._limiter.holds(self)

    def release(self) -> None:
        """Give the permit back. Repeating it is harmless. If the store is down, the permit ends with its `ttl_s`."""
        self._limiter.release(self)

    async def arelease(self) -> None:
        """`release` for asyncio."""
        await self._limiter.arelease(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.arelease()


class PermitBlock:
    """What `limiter.permit(key)` returns: acquires a permit at the start of a `with` block, releases it at the end."""

    __slots__ = ("_key", "_limiter", "_permit", "_timeout_s")

    def __init__(self, limiter: "ConcurrencyLimiter", key: Key, timeout_s: float | None) -> None:
        self._limiter = limiter
        self._key = key
        self._timeout_s = timeout_s
        self._permit: Permit | None = None

    def __enter__(self) -> Permit:
        self._permit = self._limiter.acquire(self._key, self._timeout_s)
        return self._permit

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        permit, self._permit = self._permit, None
        if permit is not None:
            permit.release()

    async def __aenter__(self) -> Permit:
        self._permit = await self._limiter.aacquire(self._key, self._timeout_s)
        return self._permit

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        permit, self._permit = self._permit, None
        if permit is not None:
            await permit.arelease()


class ConcurrencyLimiter:
    """At most `at_once` permits per key. Create it once and share it: it is safe for threads and for event loops.

    All limiters of one `name` on one Redis share their permits. `store` is a URL, or your own clients of redis-py, or a
    `PermitStore` of your own. `on_store_down` is `closed` (raise `StoreDown`),
    `local` (count in this process) or `open` (allow).
    """

    def __init__(
        self,
        at_once: int | str,
        *,
        name: str | None = None,
        store: Any = "memory://",
        ttl_s: float = 30.0,
        max_hold_s: float = 3600.0,
        max_waiting: int = 1000,
        on_store_down: OnStoreDown = "closed",
        deadline_s: float = 0.25,
        clock: Clock | None = None,
        **store_options: Unpack[StoreOptions],
    ) -> None:
        self.at_once = _parse_at_once(at_once)
        self._ttl_us = _to_us("ttl_s", ttl_s, 0.1, 86_400)
        self._max_hold_us = _to_us("max_hold_s", max_hold_s, 0.1, 366 * 86_400)
        if type(max_waiting) is not int or not 0 <= max_waiting <= MAX_AT_ONCE:
            message = f"max_waiting must be a whole number from 0 to {MAX_AT_ONCE}, not {max_waiting!r}"
            raise ConfigError(message, param="max_waiting")
        self._max_waiting = max_waiting
        raw_clock = clock or SystemClock()
        self._sleep: Callable[[float], None] | None = getattr(raw_clock, "sleep", None)  # of a clock that tests move
        self._clock = steady(raw_clock)
        self.name = name or "default"
        self._rule = Rule(self.name, Quota(self.at_once, US_PER_S))  # checks the name, and makes keys
        self._store = _open_store(store, name, self._clock, on_store_down, deadline_s, {**store_options})
        self._renewals: Renewals[Permit] = Renewals(self._renew, self._ttl_us / RENEWALS_PER_TTL / US_PER_S)
        self._waiters = _Waiters()

    # -- taking --------------------------------------------------------------------------------------------------

    def permit(self, key: Key, timeout_s: float | None = None) -> PermitBlock:
        """For `with` and `async with`: waits for a permit, and releases it at the end of the block."""
        return PermitBlock(self, key, timeout_s)

    def try_acquire(self, key: Key) -> Permit | None:
        """A permit if one is free and nobody waits for it, else `None`."""
        request, sent_at_us = self._request(TAKE, key), self._clock()
        return self._make_permit(request, sent_at_us) if self._store.apply(request).done else None

    async def atry_acquire(self, key: Key) -> Permit | None:
        """`try_acquire` for asyncio."""
        request, sent_at_us = self._request(TAKE, key), self._clock()
        try:
            answer = await self._store.aapply(request)
        except asyncio.CancelledError:
            await self._aleave(request)
            raise
        return self._make_permit(request, sent_at_us) if answer.done else None

    def acquire(self, key: Key, timeout_s: float | None = None) -> Permit:
        """Wait in line for a permit. `Throttled` if that takes longer than `timeout_s`, or the line is full."""
        request, deadline_us = self._request(WAIT, key), self._deadline_us(timeout_s)
        woken = threading.Event()
        waiter = self._waiters.add(request, woken.set)
        try:
            while True:  # ends: `_pause_s` raises at the deadline
                woken.clear()
                waiter.woken = False
                sent_at_us = self._clock()
                answer = self._store.apply(request)
                if answer.done:
                    return self._make_permit(request, sent_at_us)
                pause_s = self._pause_s(answer, deadline_us)
                if self._sleep is not None:
                    self._sleep(pause_s)
                else:
                    woken.wait(pause_s)
        except BaseException:
            self._waiters.remove(request)
            self._leave(request)
            raise
        finally:
            self._waiters.remove(request)

    async def aacquire(self, key: Key, timeout_s: float | None = None) -> Permit:
        """`acquire` for asyncio."""
        request, deadline_us = self._request(WAIT, key), self._deadline_us(timeout_s)
        woken, loop = asyncio.Event(), asyncio.get_running_loop()
        waiter = self._waiters.add(request, lambda: loop.call_soon_threadsafe(woken.set))
        try:
            while True:  # ends: `_pause_s` raises at the deadline
                woken.clear()
                waiter.woken = False
                sent_at_us = self._clock()
                answer = await self._store.aapply(request)
                if answer.done:
                    return self._make_permit(request, sent_at_us)
                pause_s = self._pause_s(answer, deadline_us)
                if self._sleep is not None:
                    self._sleep(pause_s)
                    continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await woken.wait()
        except BaseException:
            self._waiters.remove(request)
            await self._aleave(request)
            raise
        finally:
            self._waiters.remove(request)

    def in_use(self, key: Key) -> int:
        """How many permits of `key` are taken now."""
        return self._store.apply(self._request(COUNT, key)).in_use

    async def ain_use(self, key: Key) -> int:
        """`in_use` for asyncio."""
        return (await self._store.aapply(self._request(COUNT, key))).in_use

    # -- giving back ---------------------------------------------------------------------------------------------

    def holds(self, permit: Permit) -> bool:
        """Whether `permit` still counts."""
        return self._clock() < permit.ends_us

    def release(self, permit: Permit) -> None:
        """Give `permit` back."""
        if self._forget(permit):
            self._leave(permit.request)

    async def arelease(self, permit: Permit) -> None:
        """`release` for asyncio."""
        if self._forget(permit):
            await self._aleave(permit.request)

    def close(self) -> None:
        """Stop renewing and close the store's blocking connections. Permits that are still held end with `ttl_s`."""
        self._renewals.close()
        self._store.close()

    async def aclose(self) -> None:
        """`close`, and close the connections of the running event loop."""
        self._renewals.close()
        await self._store.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    # -- inside --------------------------------------------------------------------------------------------------

    def _request(self, op: int, key: Key) -> PermitRequest:
        ttl_us = min(self._ttl_us, self._max_hold_us)
        store_key = rule_key(self._rule, key)
        return PermitRequest(op, store_key, uuid.uuid4().hex, self.at_once, ttl_us, self._max_waiting)

    def _make_permit(self, request: PermitRequest, taken_at_us: int) -> Permit:
        permit = Permit(self, request, taken_at_us, self._max_hold_us)
        self._renewals.add(permit)
        return permit

    def _renew(self, permit: Permit) -> None:
        """Prolong a permit that is still held. One that cannot be prolonged any more is left to end."""
        now_us = self._clock()
        left_us = permit.renew_until_us - now_us
        if left_us <= 0 or permit.process != os.getpid():
            self._renewals.remove(permit)
            return
        request = permit.request._replace(op=RENEW, ttl_us=min(self._ttl_us, left_us))
        try:
            answer = self._store.apply(request)
        except StoreDown:
            return  # the next renewal tries again
        if answer.done:
            permit.ends_us = now_us + request.ttl_us
        else:
            permit.ends_us = 0
            self._renewals.remove(permit)

    def _forget(self, permit: Permit) -> bool:
        """Renew a permit no more. Whether it is this process's to release: a forked child's copy is not."""
        self._renewals.remove(permit)
        permit.ends_us = 0
        return permit.process == os.getpid()

    def _leave(self, request: PermitRequest) -> None:
        """Release the permit of `request`, or its place in line."""
        try:
            self._store.apply(request._replace(op=RELEASE))
        except StoreDown as error:  # then it ends by itself
            failures_here().note(RELEASES, error)
        self._waiters.wake_next(request)

    async def _aleave(self, request: PermitRequest) -> None:
        """`_leave` for asyncio. Completes even if the caller is cancelled meanwhile."""
        await carry_out(self._arelease_and_wake(request), RELEASES)

    async def _arelease_and_wake(self, request: PermitRequest) -> None:
        try:
            await self._store.aapply(request._replace(op=RELEASE))
        except StoreDown as error:  # then it ends by itself
            failures_here().note(RELEASES, error)
        self._waiters.wake_next(request)

    def _deadline_us(self, timeout_s: float | None) -> int:
        if timeout_s is not None:
            check_timeout(timeout_s)
        return self._clock() + round(min(MAX_WAIT_S if timeout_s is None else timeout_s, MAX_WAIT_S) * US_PER_S)

    def _pause_s(self, answer: PermitAnswer, deadline_us: int) -> float:
        """How long to wait before asking again. `Throttled` if the time is over or the line is full."""
        left_s = (deadline_us - self._clock()) / US_PER_S
        if left_s <= 0 or answer.ahead >= self._max_waiting:
            why = "no permit became free in time" if left_s <= 0 else f"{answer.ahead} callers are already waiting"
            decision = Decision(False, self.name, self.at_once, 0, RETRY_HINT_US, RETRY_HINT_US)
            raise Throttled(f"{self.name}: at most {self.at_once} at once, and {why}", decision)
        return min(left_s, FIRST_POLL_S * (1 + answer.ahead), LAST_POLL_S)


class _Waiter:
    """One caller of this process that waits for a permit."""

    __slots__ = ("wake", "woken")

    def __init__(self, wake: Callable[[], object]) -> None:
        self.wake = wake
        self.woken = False


class _Waiters:
    """The callers of this process that wait, by key and in order. A release wakes the first, so it need not poll."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._by_key: dict[str | bytes, dict[str, _Waiter]] = {}
        begin_in_child(self._begin)

    def _begin(self) -> None:
        """Forget who waits. In a forked child they are gone."""
        self._by_key.clear()

    def add(self, request: PermitRequest, wake: Callable[[], object]) -> _Waiter:
        waiter = _Waiter(wake)
        with self._lock:
            self._by_key.setdefault(request.key, {})[request.permit] = waiter
        return waiter

    def remove(self, request: PermitRequest) -> None:
        with self._lock:
            waiters = self._by_key.get(request.key, {})
            waiters.pop(request.permit, None)
            if not waiters:
                self._by_key.pop(request.key, None)

    def wake_next(self, request: PermitRequest) -> None:
        """Wake the first waiter of this key that is not awake yet."""
        with self._lock:
            for waiter in self._by_key.get(request.key, {}).values():
                if not waiter.woken:
                    waiter.woken = True
                    try:
                        waiter.wake()
                    except RuntimeError:  # its event loop has ended
                        continue
                    return


def _parse_at_once(at_once: int | str) -> int:
    match = _TEXT.fullmatch(at_once) if isinstance(at_once, str) else None
    number = int(match[1]) if match else at_once
    if type(number) is not int or not 1 <= number <= MAX_AT_ONCE:
        message = f'at_once must be a whole number from 1 to {MAX_AT_ONCE}, like 10 or "10 at once"; not {at_once!r}'
        raise InvalidQuota(message, param="at_once")
    return number


def _to_us(name: str, seconds: float, low_s: float, high_s: float) -> int:
    return round(check_seconds(name, seconds, low_s, high_s) * US_PER_S)


def _open_store(
    given: Any, name: str | None, clock: Clock, on_store_down: str, deadline_s: float, options: dict[str, Any]
) -> PermitStore:
    """Open the permit store at a URL or over clients."""
    if on_store_down not in ON_STORE_DOWN:
        message = f"on_store_down must be one of {', '.join(ON_STORE_DOWN)}, not {on_store_down!r}"
        raise ConfigError(message, param="on_store_down")
    check_deadline(deadline_s)
    check_options("a concurrency limiter", options, _OPTIONS)
    if hasattr(given, "aapply"):
        return given  # type: ignore[no-any-return]  # one of your own
    if names_memory(given):
        check_prefix(options.get("prefix", DEFAULT_PREFIX))
        return MemoryPermits(clock)
    if names_sql(given):
        raise ConfigError("permits are kept in memory or in Redis, not in a SQL store", param="store")
    if name is None:
        message = (
            "a concurrency limiter in Redis needs a name, like name='uploads': all of one name share their permits"
        )
        raise ConfigError(message, param="name")
    from frontrow.limits.stores.guarded_permits import GuardedPermits
    from frontrow.limits.stores.redis_permits import RedisPermits

    return GuardedPermits(RedisPermits(given, name, deadline_s=deadline_s, **options), clock, on_store_down)
