"""The shared store. Each decision is made by one atomic script call over all rules; many callers can share a call.

Threads share the calls of `blocking_calls`, the tasks of an event loop those of `redis_asyncio`, and all stores of a
process at one URL share both (`shared_calls`). The Redis server's clock decides unless a request carries its own time,
so servers whose clocks differ agree. A caller whose call is not answered within the deadline gets `StoreDown`.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import hiredis

from frontrow.core.breaker import Breaker
from frontrow.core.clock import SystemClock
from frontrow.limits.stats import Stats
from frontrow.limits.stores.blocking_calls import ConnectionLost
from frontrow.limits.stores.hash_slots import HashSlotStore
from frontrow.limits.stores.protocol import DEFAULT_PREFIX, QuotaSlot, Store, StoreRequest, StoreResult
from frontrow.limits.stores.redis_calls import share_redis_calls
from frontrow.limits.stores.redis_script import LimitScript, hash_tag
from frontrow.limits.stores.redis_source import RedisSource
from frontrow.limits.stores.store_health import StoreHealth


class RedisStore:
    """Counts in Redis or Valkey under keys starting with `prefix`. `source` is a URL or clients: see `RedisSource`."""

    def __init__(
        self,
        source: Any,
        slots: Sequence[QuotaSlot],
        stats: Stats,
        *,
        breaker: Breaker | None = None,
        deadline_s: float = 0.025,
        prefix: str = DEFAULT_PREFIX,
        **connection_options: Any,
    ) -> None:
        connections = RedisSource(source, deadline_s=deadline_s, **connection_options)
        self._calls = share_redis_calls(connections, self, deadline_s=deadline_s)
        self.is_cluster = connections.is_cluster
        self.tag_parts = common_parts(slots) if self.is_cluster else None
        self._script = LimitScript(slots, prefix, cluster=self.is_cluster)
        self.health = StoreHealth(connections.shown, breaker or Breaker(SystemClock()), stats)

    def decide(self, request: StoreRequest) -> StoreResult:
        """Decide one request. Blocks while Redis answers."""
        return self._calls.decide(self, request)

    def adecide(self, request: StoreRequest) -> "asyncio.Future[StoreResult]":
        """`decide` for asyncio."""
        return self._calls.adecide(self, request)

    def send(self, connection: Any, requests: Sequence[StoreRequest], left_s: float) -> Sequence[StoreResult]:
        """Decide requests over a blocking connection that has `left_s` for each command."""
        if connection.takes_frames:
            reply = connection.call(left_s, self.frame(requests, with_source=False))
            return self._read_or_resend(connection, requests, reply, left_s)
        groups = self.split(requests)
        parts = [[requests[at] for at in ats] for ats in groups]
        commands = [self.command(part, with_source=False) for part in parts]
        replies = connection.call_all(left_s, commands)
        results: list[Any] = [None] * len(requests)
        for ats, part, reply in zip(groups, parts, replies, strict=True):
            for at, result in zip(ats, self._read_or_resend(connection, part, reply, left_s), strict=True):
                results[at] = result
        return results

    def _read_or_resend(
        self, connection: Any, requests: Sequence[StoreRequest], reply: Any, left_s: float
    ) -> Sequence[StoreResult]:
        """The results of one command. It is sent again with the script's source if the server does not know it."""
        if isinstance(reply, hiredis.ReplyError) and str(reply).startswith("NOSCRIPT"):
            write = self.frame if connection.takes_frames else self.command
            reply = connection.call(left_s, write(requests, with_source=True))
        if isinstance(reply, hiredis.ReplyError):
            raise ConnectionLost(str(reply))
        return self._script.read_reply(requests, reply)

    # -- the script ----------------------------------------------------------------------------------------------

    def command(self, requests: Sequence[StoreRequest], *, with_source: bool) -> tuple[Any, ...]:
        """The words of the call that decides `requests`."""
        script, arguments = self._script.call(requests)
        return ("EVAL", script.source, *arguments) if with_source else ("EVALSHA", script.sha, *arguments)

    def frame(self, requests: Sequence[StoreRequest], *, with_source: bool) -> bytes:
        """The call that decides `requests`, as it goes over the wire."""
        framed = None if with_source else self._script.frame_check(requests)
        return framed or hiredis.pack_command(self.command(requests, with_source=with_source))

    def split(self, requests: Sequence[StoreRequest]) -> Sequence[Sequence[int]]:
        """The positions of requests that one command can decide: all, or on a Cluster those of one hash tag."""
        if not self.is_cluster or len(requests) == 1:
            return (range(len(requests)),)
        groups: dict[str, list[int]] = {}
        for at, request in enumerate(requests):
            groups.setdefault(hash_tag(request.tag), []).append(at)
        return list(groups.values())

    def read_reply(self, requests: Sequence[StoreRequest], reply: bytes) -> Sequence[StoreResult]:
        """The results of `requests`, in their order."""
        return self._script.read_reply(requests, reply)

    def close(self) -> None:
        """Close the blocking connection, unless other stores use it."""
        self._calls.close(self)

    async def aclose(self) -> None:
        """Close the blocking connection and that of the running event loop, unless other stores use them."""
        await self._calls.aclose(self)


def open_redis_store(source: Any, slots: Sequence[QuotaSlot], stats: Stats, **options: Any) -> Store:
    """Open the store at a URL or over clients. On a Cluster, rules without a common part are decided slot by slot."""
    store = RedisStore(source, slots, stats, **options)
    return HashSlotStore(store, slots) if store.is_cluster and store.tag_parts is None else store


def common_parts(slots: Sequence[QuotaSlot]) -> tuple[str, ...] | None:
    """The parts that all rules count by, which decide the hash slot on a Cluster. Empty: all count by the whole key.
    `None`: they have no part in common, so their keys live in different slots."""
    counted = {slot.rule.name: slot.rule.per for slot in slots}
    if set(counted.values()) == {None}:
        return ()
    shared = set.intersection(*(set(per or ()) for per in counted.values()))
    return tuple(sorted(shared)) if shared or len(counted) == 1 else None
