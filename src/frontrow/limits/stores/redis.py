"""The shared store. Each decision is made by one atomic script call over all rules; many callers can share a call.

Blocking callers send one request per call. Asyncio callers of one event loop share calls through the coalescer. The
Redis server's clock decides unless a request carries its own time, so servers whose clocks differ agree. Nothing is
retried here, because a script whose reply was lost may have charged. A caller that gets no reply within the deadline
gets `StoreDown`.
"""

import asyncio
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from frontrow.core.coalescer import Coalescer
from frontrow.core.errors import Overloaded
from frontrow.core.redis_url import call, call_sync, connect, connect_sync, disconnect, disconnect_sync, is_cluster
from frontrow.limits.quota import StoreDown
from frontrow.limits.stats import Stats
from frontrow.limits.stores.hash_slots import HashSlotStore
from frontrow.limits.stores.protocol import DEFAULT_PREFIX, QuotaSlot, Store, StoreRequest, StoreResult
from frontrow.limits.stores.redis_script import LimitScript, ScriptCall, hash_tag

MAX_BATCH = 256
GROUPS_PER_DEADLINE = 50  # the precision of a deadline: requests of one fiftieth of it expire together


class RedisStore:
    """Counts in Redis or Valkey at `url`, under keys starting with `prefix`."""

    def __init__(
        self,
        url: str,
        slots: Sequence[QuotaSlot],
        stats: Stats,
        *,
        deadline_s: float = 0.025,
        prefix: str = DEFAULT_PREFIX,
    ) -> None:
        self._url = url
        self._slots = tuple(slots)
        self._stats = stats
        self._deadline_s = deadline_s
        self._cluster = is_cluster(url)
        self.tag_parts = common_parts(self._slots) if self._cluster else None
        self._script = LimitScript(self._slots, prefix, cluster=self._cluster)
        self._sync: Any = connect_sync(url, timeout_s=deadline_s)  # connects when first used
        self._connection: _LoopConnection | None = None  # of the loop that was used last
        self._connections: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopConnection] = (
            weakref.WeakKeyDictionary()
        )

    # -- blocking ------------------------------------------------------------------------------------------------

    def decide(self, request: StoreRequest) -> StoreResult:
        """Decide one request in one round trip."""
        script_call = self._script.call((request,))
        started = time.perf_counter()
        try:
            reply = call_sync(self._sync, "EVALSHA", script_call.script.sha, *script_call.arguments)
        except Exception as error:
            reply = self._load_and_retry(error, script_call)
        finally:
            self._record_timing(started)
        result: StoreResult = self._script.read_reply((request,), reply)[0]
        return result

    def _load_and_retry(self, error: Exception, script_call: ScriptCall) -> Any:
        if not _is_script_missing(error):
            raise _store_down(error) from error
        try:
            return call_sync(self._sync, "EVAL", script_call.script.source, *script_call.arguments)
        except Exception as retry_error:
            raise _store_down(retry_error) from retry_error

    # -- asyncio -------------------------------------------------------------------------------------------------

    def adecide(self, request: StoreRequest) -> "asyncio.Future[StoreResult]":
        """Decide one request, sharing the round trip with other requests of the same moment."""
        connection = self._connection
        if connection is None or connection.loop is not asyncio.get_running_loop():
            connection = self._connection = self._connection_of(asyncio.get_running_loop())
        try:
            return connection.submit(request)
        except Overloaded as error:
            raise StoreDown(error.message) from error

    def _connection_of(self, loop: asyncio.AbstractEventLoop) -> "_LoopConnection":
        connection = self._connections.get(loop)
        if connection is None:
            connection = self._connections[loop] = _LoopConnection(self._url, self._deadline_s, self._send_requests)
        return connection

    async def _send_requests(
        self, connection: "_LoopConnection", requests: Sequence[StoreRequest]
    ) -> Sequence[StoreResult | BaseException]:
        if not self._cluster:
            return await self._run_script(connection, requests)
        await connection.client.initialize()  # once, so that concurrent calls do not each load the cluster's slots
        groups: dict[str, list[int]] = {}
        for at, request in enumerate(requests):
            groups.setdefault(hash_tag(request.tag), []).append(at)
        parts = await asyncio.gather(
            *(self._run_script(connection, [requests[at] for at in ats]) for ats in groups.values()),
            return_exceptions=True,
        )
        results: list[StoreResult | BaseException] = [StoreDown("the limit store did not answer")] * len(requests)
        for ats, part in zip(groups.values(), parts, strict=True):
            for offset, at in enumerate(ats):
                results[at] = part if isinstance(part, BaseException) else part[offset]
        return results

    async def _run_script(
        self, connection: "_LoopConnection", requests: Sequence[StoreRequest]
    ) -> Sequence[StoreResult]:
        script, arguments = self._script.call(requests)
        started = time.perf_counter()
        try:
            reply = await call(connection.client, "EVALSHA", script.sha, *arguments)
        except Exception as error:
            if not _is_script_missing(error):
                raise _store_down(error) from error
            try:
                reply = await call(connection.client, "EVAL", script.source, *arguments)
            except Exception as retry_error:
                raise _store_down(retry_error) from retry_error
        finally:
            self._record_timing(started)
        return self._script.read_reply(requests, reply)

    # -- both ----------------------------------------------------------------------------------------------------

    def _record_timing(self, started: float) -> None:
        self._stats.store_calls += 1
        self._stats.store_seconds += time.perf_counter() - started

    def close(self) -> None:
        """Close the blocking connections."""
        disconnect_sync(self._sync)

    async def aclose(self) -> None:
        """Close the blocking connections and those of the running event loop."""
        self.close()
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        self._connection = None
        if connection is not None:
            await connection.aclose()


def open_redis_store(url: str, slots: Sequence[QuotaSlot], stats: Stats, **options: Any) -> Store:
    """Open the store at `url`. On a Cluster, rules whose keys have no part in common are decided slot by slot."""
    store = RedisStore(url, slots, stats, **options)
    return HashSlotStore(store, slots) if is_cluster(url) and store.tag_parts is None else store


class _LoopConnection:
    """One event loop's client, coalescer and deadlines."""

    def __init__(
        self, url: str, deadline_s: float, send: Callable[["_LoopConnection", Sequence[StoreRequest]], Any]
    ) -> None:
        self.client: Any = connect(url, timeout_s=deadline_s)
        self._deadline_s = deadline_s
        self._send = send
        self.loop = asyncio.get_running_loop()
        self._coalescer: Coalescer[StoreRequest, StoreResult] = Coalescer(
            self._send_batch, max_batch=MAX_BATCH, name="the limit store"
        )
        self._groups: deque[_DeadlineGroup] = deque()
        self._group_ends_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def submit(self, request: StoreRequest) -> "asyncio.Future[StoreResult]":
        future = self._coalescer.submit(request)
        now_s = self.loop.time()
        if now_s >= self._group_ends_s:
            self._begin_group(now_s)
        self._groups[-1].futures.append(future)
        return future

    def _begin_group(self, now_s: float) -> None:
        self._groups.append(_DeadlineGroup(now_s + self._deadline_s, self._coalescer.submitted - 1))
        self._group_ends_s = now_s + self._deadline_s / GROUPS_PER_DEADLINE
        if self._timer is None:
            self._timer = self.loop.call_later(self._deadline_s, self._expire)

    async def _send_batch(self, requests: Sequence[StoreRequest]) -> Sequence[StoreResult | BaseException]:
        """Send a batch. Every request submitted before it was taken has a result afterwards and needs no deadline."""
        taken = self._coalescer.submitted - len(self._coalescer)
        try:
            return await self._send(self, requests)  # type: ignore[no-any-return]
        finally:
            while self._groups and self._groups[0].first + len(self._groups[0].futures) <= taken:
                self._groups.popleft()
            if not self._groups:
                self._group_ends_s = 0.0

    def _expire(self) -> None:
        """Fail the callers that waited for the whole deadline. All wait equally long, so one timer serves them all."""
        now_s = self.loop.time()
        while self._groups and self._groups[0].due_s <= now_s:
            for future in self._groups.popleft().futures:
                if not future.done():
                    message = f"the limit store did not answer within {self._deadline_s * 1000:g} ms"
                    future.set_exception(StoreDown(message))
        if not self._groups:
            self._group_ends_s = 0.0
        self._timer = self.loop.call_at(self._groups[0].due_s, self._expire) if self._groups else None

    async def aclose(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._coalescer.aclose()
        await disconnect(self.client)


class _DeadlineGroup:
    """Requests of nearly the same time, which share a deadline: number `first` of all requests and those after it."""

    __slots__ = ("due_s", "first", "futures")

    def __init__(self, due_s: float, first: int) -> None:
        self.due_s, self.first = due_s, first
        self.futures: list[asyncio.Future[StoreResult]] = []


def common_parts(slots: Sequence[QuotaSlot]) -> tuple[str, ...] | None:
    """The parts that all rules count by, which decide the hash slot on a Cluster. Empty: all count by the whole key.
    `None`: they have no part in common, so their keys live in different slots."""
    counted = {slot.rule.name: slot.rule.per for slot in slots}
    if set(counted.values()) == {None}:
        return ()
    shared = set.intersection(*(set(per or ()) for per in counted.values()))
    return tuple(sorted(shared)) if shared or len(counted) == 1 else None


def _is_script_missing(error: Exception) -> bool:
    return type(error).__name__ == "NoScriptError"


def _store_down(error: Exception) -> StoreDown:
    return StoreDown(f"the limit store failed: {type(error).__name__}: {error}")
