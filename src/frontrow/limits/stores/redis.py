"""The shared store. Each decision is made by one atomic script call over all rules; many callers can share a call.

Blocking callers send one request per call. Asyncio callers of one event loop share calls through the coalescer. The
Redis server's clock decides unless a request carries its own time, so servers whose clocks differ agree. Nothing is
retried here, because a script whose reply was lost may have charged. A caller that gets no reply within the deadline
gets `StoreDown`.
"""

import asyncio
import re
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import blake2b, sha1
from importlib.resources import files
from typing import Any

from frontrow.core.coalescer import Coalescer
from frontrow.core.errors import ConfigError, Overloaded
from frontrow.core.redis_url import call, call_sync, connect, connect_sync, disconnect, disconnect_sync, is_cluster
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import ALGORITHMS, Decision, StoreDown
from frontrow.limits.stats import Stats
from frontrow.limits.stores.protocol import DEFAULT_PREFIX, QuotaSlot, StoreRequest, StoreResult

SCRIPT = files("frontrow.limits.stores").joinpath("lua/decide.lua").read_text("utf-8")
SCRIPT_SHA = sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
FIELDS = 7  # numbers per request in a reply
HASH_TAGS = 64  # hash tags on a Cluster: few enough to share calls, enough to spread over the nodes
MAX_BATCH = 256
GROUPS_PER_DEADLINE = 50  # the precision of a deadline: requests of one fiftieth of it expire together
_new: Any = tuple.__new__  # builds a named tuple at half the cost of calling its class
_SAFE = re.compile(r"[A-Za-z0-9_.:@/-]{1,128}").fullmatch


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
        if not re.fullmatch(r"[A-Za-z0-9_.:-]{1,64}", prefix):
            raise ConfigError(f"prefix must be 1 to 64 letters, digits, _ . : or -, not {prefix!r}", param="prefix")
        self._prefixes = [f"{prefix}:{slot.name}:" for slot in self._slots]
        self._rule_names_and_limits = [(slot.rule.name, slot.quota.capacity) for slot in self._slots]
        self._spec = " ".join(str(number) for slot in self._slots for number in _slot_numbers(slot))
        self._sync: Any = connect_sync(url, timeout_s=deadline_s)  # connects when first used
        self._connection: _LoopConnection | None = None  # of the loop that was used last
        self._connections: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopConnection] = (
            weakref.WeakKeyDictionary()
        )

    # -- blocking ------------------------------------------------------------------------------------------------

    def decide(self, request: StoreRequest) -> StoreResult:
        """Decide one request in one round trip."""
        arguments = self._script_arguments((request,))
        started = time.perf_counter()
        try:
            reply = call_sync(self._sync, "EVALSHA", SCRIPT_SHA, *arguments)
        except Exception as error:
            reply = self._load_and_retry(error, arguments)
        finally:
            self._record_timing(started)
        return self._read_reply((request,), reply)[0]

    def _load_and_retry(self, error: Exception, arguments: Sequence[Any]) -> Any:
        if not _is_script_missing(error):
            raise _store_down(error) from error
        try:
            return call_sync(self._sync, "EVAL", SCRIPT, *arguments)
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
            groups.setdefault(self._hash_tag(request), []).append(at)
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
        arguments = self._script_arguments(requests)
        started = time.perf_counter()
        try:
            reply = await call(connection.client, "EVALSHA", SCRIPT_SHA, *arguments)
        except Exception as error:
            if not _is_script_missing(error):
                raise _store_down(error) from error
            try:
                reply = await call(connection.client, "EVAL", SCRIPT, *arguments)
            except Exception as retry_error:
                raise _store_down(retry_error) from retry_error
        finally:
            self._record_timing(started)
        return self._read_reply(requests, reply)

    # -- both ----------------------------------------------------------------------------------------------------

    def _script_arguments(self, requests: Sequence[StoreRequest]) -> list[Any]:
        """The script's arguments for a batch of requests."""
        width = len(requests[0].keys)
        keys: list[str] = []
        all_plain = True
        prefixes, plain_slots = self._prefixes, tuple(range(width))
        for request in requests:
            slots, keys_of_request, cost, now_us, op, _ = request
            tag = "{" + self._hash_tag(request) + "}" if self._cluster else ""
            for slot, key in zip(slots, keys_of_request, strict=True):
                keys.append(tag + prefixes[slot] + redis_key(key))
            all_plain = all_plain and cost == 1 and now_us is None and op == 0 and slots == plain_slots
        packed_requests = "" if all_plain else " ".join(map(_request_numbers, requests))
        return [len(keys), *keys, self._spec, width, packed_requests]

    def _hash_tag(self, request: StoreRequest) -> str:
        """The hash tag that all keys of this request share, made from what all rules count by."""
        raw = request.tag if isinstance(request.tag, bytes) else request.tag.encode("utf-8", "surrogatepass")
        return str(int.from_bytes(blake2b(raw, digest_size=2).digest(), "big") % HASH_TAGS)

    def _read_reply(self, requests: Sequence[StoreRequest], reply: Sequence[int]) -> list[StoreResult]:
        results = []
        names_and_limits = self._rule_names_and_limits
        numbers = iter(reply)
        fields = zip(*[numbers] * FIELDS, strict=True)
        for request, (allowed, rule, remaining, reset, retry, delay, mask) in zip(requests, fields, strict=True):
            name, capacity = names_and_limits[request.slots[rule - 1]]
            decision = _new(Decision, (allowed == 1, name, capacity, remaining, reset, retry, delay, "store"))
            shadowed = tuple(at for at in range(len(request.slots)) if mask >> at & 1) if mask else ()
            results.append(_new(StoreResult, (decision, shadowed)))
        return results

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


def redis_key(key: StoreKey) -> str:
    """`key` as part of a Redis key: itself when it is harmless, else a digest that no harmless key can equal."""
    if isinstance(key, str):
        if _SAFE(key):
            return key
        return "~" + blake2b(key.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
    return "=" + blake2b(key, digest_size=20).hexdigest()


def _request_numbers(request: StoreRequest) -> str:
    now_us = -1 if request.now_us is None else request.now_us
    return f"{request.op} {request.cost} {now_us} " + " ".join(str(slot + 1) for slot in request.slots)


def _slot_numbers(slot: QuotaSlot) -> tuple[int, ...]:
    quota = slot.quota
    leak, unit = quota.drip if quota.is_bucket else (0, 0)
    number = ALGORITHMS.index(quota.algorithm) + 1
    return (
        *(number, quota.limit, quota.period_us, quota.grain_us, leak, unit),
        *(quota.capacity, quota.life_us, int(slot.rule.shadow)),
    )


def common_parts(slots: Sequence[QuotaSlot]) -> tuple[str, ...]:
    """The parts that all rules count by, which decide the hash slot on a Cluster. Empty: all count by the whole key."""
    counted = {slot.rule.name: slot.rule.per for slot in slots}
    if set(counted.values()) == {None}:
        return ()
    shared = set.intersection(*(set(per or ()) for per in counted.values()))
    if shared or len(counted) == 1:
        return tuple(sorted(shared))
    names = " and ".join(sorted(counted))
    raise ConfigError(
        f"on Redis Cluster the rules {names} cannot be decided in one step: they count by no common part of the key, "
        "so their keys live in different slots. Let them share a part in `per`, or give each its own limiter",
        param="per",
    )


def _is_script_missing(error: Exception) -> bool:
    return type(error).__name__ == "NoScriptError"


def _store_down(error: Exception) -> StoreDown:
    return StoreDown(f"the limit store failed: {type(error).__name__}: {error}")
