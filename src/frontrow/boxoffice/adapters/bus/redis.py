"""The bus over Redis Streams: one stream, consumer groups, XAUTOCLAIM for facts that dead readers did not finish.

The stream is trimmed to about `max_kept` facts, oldest first. Size it for the longest time that a consumer may be down.
(The ledger's outbox keeps published facts until they are purged, so even then nothing is lost.)

A reader that failed leaves its name to the next reader of this process, which first takes up what was in hand.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple

from redis.exceptions import RedisError, ResponseError

from frontrow.boxoffice.facts.model import BusFact
from frontrow.core.errors import Unavailable
from frontrow.core.redis_url import call, connect, disconnect, is_cluster
from frontrow.shared.ids import Ids

STREAM: Final = "frontrow:facts"
MAX_KEPT: Final = 1_000_000
CLAIM_IDLE_MS: Final = 10_000
CHUNK: Final = 200  # facts per call
MARGIN_S: Final = 2.0
CLUSTER_WAIT_S: Final = 1.0  # a Cluster has no list of its clients, so a stop cannot end a wait
# One call and one reply for all facts. A pipeline of XADDs costs the client three times the CPU.
_PUBLISH: Final = (
    "for i = 2, #ARGV, 3 do redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', "
    "'n', ARGV[i], 'k', ARGV[i + 1], 'b', ARGV[i + 2]) end"
)


class RedisBus:
    """A bus over one Redis stream."""

    def __init__(
        self,
        url: str,
        *,
        stream: str = STREAM,
        max_kept: int = MAX_KEPT,
        claim_idle_ms: int = CLAIM_IDLE_MS,
        timeout_s: float = 5.0,
        ids: Ids | None = None,
    ) -> None:
        self._client: Any = connect(url, timeout_s=timeout_s)
        self._url, self._stream, self._max_kept, self._claim_idle_ms = url, stream, max_kept, claim_idle_ms
        self._timeout_s = timeout_s
        self._ids = ids or Ids()
        self._left_names: dict[str, list[str]] = {}  # of closed readers, per group

    async def publish(self, facts: Sequence[BusFact]) -> None:
        try:
            for start in range(0, len(facts), CHUNK):
                arguments = [
                    argument
                    for fact in facts[start : start + CHUNK]
                    for argument in (str(fact.number), fact.key, fact.body)
                ]
                await call(self._client, "EVAL", _PUBLISH, 1, self._stream, self._max_kept, *arguments)
        except (RedisError, OSError) as error:
            raise _unavailable(error) from error

    async def reader(self, group: str) -> "RedisReader":
        left = self._left_names.setdefault(group, [])
        name = left.pop() if left else self._ids.new("rdr")
        # its own connection, because a waiting reader blocks it; named, so that `stop_waiting` finds it
        client = connect(self._url, timeout_s=self._timeout_s + MARGIN_S, client_name=name)
        is_new_group = True
        try:
            await client.xgroup_create(self._stream, group, id="0", mkstream=True)
        except ResponseError as error:
            is_new_group = False
            if "BUSYGROUP" not in str(error):
                await disconnect(client)
                raise _unavailable(error) from error
        except (RedisError, OSError) as error:
            await disconnect(client)
            raise _unavailable(error) from error
        member = Member(self._stream, group, name, is_new_group)
        longest_s = min(self._timeout_s, CLUSTER_WAIT_S) if is_cluster(self._url) else self._timeout_s
        return RedisReader(client, member, left, self._claim_idle_ms, longest_s, self._unblock)

    async def _unblock(self, name: str) -> None:
        """Let the reader of this name return from its wait."""
        if is_cluster(self._url):
            return  # it does not wait long
        try:
            for one in await self._client.client_list():
                if one.get("name") == name:
                    await self._client.client_unblock(int(one["id"]))
        except (RedisError, OSError):
            return  # not allowed, or away: the reader's wait ends by itself

    async def measure_lag(self, groups: Sequence[str]) -> dict[tuple[str, str], int]:
        try:
            known = await self._client.xinfo_groups(self._stream)
        except ResponseError:
            return {}  # nobody has published or read yet
        except (RedisError, OSError) as error:
            raise _unavailable(error) from error
        lags = {one["name"].decode(): int(one["pending"]) + int(one.get("lag") or 0) for one in known}
        return {(name, "all"): lags[name] for name in groups if name in lags}

    async def aclose(self) -> None:
        await disconnect(self._client)


class Member(NamedTuple):
    """Who a reader is."""

    stream: str
    group: str
    name: str
    is_new_group: bool


class RedisReader:
    """A member of a consumer group. It first takes up what it had in hand under its name, then the facts of dead
    members, then new ones. Closed, it leaves its name in `left_names`."""

    def __init__(
        self,
        client: Any,
        member: Member,
        left_names: list[str],
        claim_idle_ms: int,
        longest_wait_s: float,
        unblock: Callable[[str], Coroutine[Any, Any, None]],
    ) -> None:
        self._client, self._left_names, self._unblock = client, left_names, unblock
        self._is_waiting, self._stopping = False, False
        self._stop: asyncio.Task[None] | None = None
        self._stream, self._group, self._name, self.is_new_group = member
        self._claim_idle_ms, self._longest_wait_s = claim_idle_ms, longest_wait_s
        self._may_have_more_in_hand = True
        self._look_for_abandoned_s = 0.0  # monotonic; twice per `claim_idle_ms` is often enough

    async def read(self, limit: int, wait_s: float) -> list[BusFact]:
        try:
            if self._may_have_more_in_hand:
                reply = await self._client.xreadgroup(self._group, self._name, {self._stream: "0"}, count=limit)
                in_hand = self._facts_of(reply)
                self._may_have_more_in_hand = bool(in_hand)
                if in_hand:
                    return in_hand
            if time.monotonic() >= self._look_for_abandoned_s:
                abandoned = await self._client.xautoclaim(
                    self._stream, self._group, self._name, min_idle_time=self._claim_idle_ms, count=limit
                )
                if abandoned[1]:
                    return _facts(abandoned[1])
                self._look_for_abandoned_s = time.monotonic() + self._claim_idle_ms / 2000
            if self._stopping:
                return []
            wait_ms = max(1, int(min(wait_s, self._longest_wait_s) * 1000))
            self._is_waiting = True
            reply = await self._client.xreadgroup(
                self._group, self._name, {self._stream: ">"}, count=limit, block=wait_ms
            )
        except (RedisError, OSError) as error:
            raise _unavailable(error) from error
        finally:
            self._is_waiting = False
        return self._facts_of(reply)

    def _facts_of(self, reply: Any) -> list[BusFact]:
        if isinstance(reply, dict):  # RESP3
            return _facts([one for batch in reply.get(self._stream.encode(), []) for one in batch])
        return _facts(reply[0][1]) if reply else []

    async def done(self, facts: Sequence[BusFact]) -> None:
        if not facts:
            return
        try:
            await self._client.xack(self._stream, self._group, *(fact.place for fact in facts))
        except (RedisError, OSError) as error:
            raise _unavailable(error) from error

    def stop_waiting(self) -> None:
        self._stopping = True
        if self._is_waiting and self._stop is None:
            self._stop = asyncio.get_running_loop().create_task(self._unblock(self._name))

    async def aclose(self) -> None:
        if self._stop is not None:
            await self._stop
        self._left_names.append(self._name)
        await disconnect(self._client)


def _facts(entries: Sequence[Any]) -> list[BusFact]:
    return [
        BusFact(int(fields[b"n"]), fields[b"k"].decode(), fields[b"b"], place.decode())
        for place, fields in entries
        if fields  # an entry that was trimmed while a reader worked on it has none
    ]


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(f"the bus does not answer ({type(error).__name__}: {error})", retry_after_s=1.0)
