"""The shared store. Each decision is made by one atomic script call over all rules; many callers can share a call.

Threads share the calls of `redis_blocking`, the tasks of an event loop those of `redis_asyncio`. The Redis server's
clock decides unless a request carries its own time, so servers whose clocks differ agree. A caller that gets no reply
within the deadline gets `StoreDown`.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Sequence
from hashlib import blake2b, sha1
from importlib.resources import files
from typing import Any

import hiredis

from frontrow.core.clock import Clock, SystemClock
from frontrow.core.errors import ConfigError
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import ALGORITHMS, Decision
from frontrow.limits.stats import Stats
from frontrow.limits.stores.protocol import DEFAULT_PREFIX, QuotaSlot, StoreRequest, StoreResult
from frontrow.limits.stores.redis_asyncio import LoopCalls
from frontrow.limits.stores.redis_blocking import BlockingCalls, ConnectionLost
from frontrow.limits.stores.redis_source import RedisSource
from frontrow.limits.stores.store_health import StoreHealth

SCRIPT = files("frontrow.limits.stores").joinpath("lua/decide.lua").read_text("utf-8")
SCRIPT_SHA = sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
FIELDS = 7  # numbers per request in a reply
PAIR = "store=(redis.Redis(…), redis.asyncio.Redis(…))"
HASH_TAGS = 64  # hash tags on a Cluster: few enough to share calls, enough to spread over the nodes
_new: Any = tuple.__new__  # builds a named tuple at half the cost of calling its class
_SAFE = re.compile(r"[A-Za-z0-9_.:@/-]{1,128}").fullmatch


class RedisStore:
    """Counts in Redis or Valkey under keys starting with `prefix`. `source` is a URL or clients: see `RedisSource`."""

    def __init__(
        self,
        source: Any,
        slots: Sequence[QuotaSlot],
        stats: Stats,
        *,
        clock: Clock | None = None,
        deadline_s: float = 0.025,
        prefix: str = DEFAULT_PREFIX,
        **connection_options: Any,
    ) -> None:
        self._source = RedisSource(source, deadline_s=deadline_s, **connection_options)
        self._slots = tuple(slots)
        self._deadline_s = deadline_s
        self._cluster = self._source.is_cluster
        self.tag_parts = common_parts(self._slots) if self._cluster else None
        if not re.fullmatch(r"[A-Za-z0-9_.:-]{1,64}", prefix):
            raise ConfigError(f"prefix must be 1 to 64 letters, digits, _ . : or -, not {prefix!r}", param="prefix")
        self._prefixes = [f"{prefix}:{slot.name}:" for slot in self._slots]
        self._rule_names_and_limits = [(slot.rule.name, slot.quota.capacity) for slot in self._slots]
        self._spec = " ".join(str(number) for slot in self._slots for number in _slot_numbers(slot))
        self.health = StoreHealth(self._source.shown, clock or SystemClock(), stats)
        self._blocking = BlockingCalls(self._source, self._send, deadline_s, self.health)
        self._loop_calls: LoopCalls | None = None  # of the loop that was used last
        self._loops: dict[asyncio.AbstractEventLoop, tuple[LoopCalls, AsyncGenerator[None, None]]] = {}

    # -- blocking ------------------------------------------------------------------------------------------------

    def decide(self, request: StoreRequest) -> StoreResult:
        """Decide one request, sharing the round trip with other threads' requests of the same moment."""
        if not self._source.serves_blocking:
            raise ConfigError(f"blocking calls need a blocking client, like {PAIR}", param="store")
        return self._blocking.decide(request)

    def _send(self, connection: Any, requests: Sequence[StoreRequest], due_s: float) -> Sequence[StoreResult]:
        if len(requests) == 1:
            return self._decide_group(connection, requests, due_s)
        results: list[Any] = [None] * len(requests)
        for ats in self.split(requests):
            decided = self._decide_group(connection, [requests[at] for at in ats], due_s)
            for at, result in zip(ats, decided, strict=True):
                results[at] = result
        return results

    def _decide_group(self, connection: Any, requests: Sequence[StoreRequest], due_s: float) -> Sequence[StoreResult]:
        """Decide requests that may share a command."""
        reply = connection.call(due_s - time.monotonic(), self.command(requests, with_source=False))
        if isinstance(reply, hiredis.ReplyError) and str(reply).startswith("NOSCRIPT"):
            reply = connection.call(due_s - time.monotonic(), self.command(requests, with_source=True))
        if isinstance(reply, hiredis.ReplyError):
            raise ConnectionLost(str(reply))
        return self.read_reply(requests, reply)

    # -- asyncio -------------------------------------------------------------------------------------------------

    def adecide(self, request: StoreRequest) -> "asyncio.Future[StoreResult]":
        """Decide one request, sharing the round trip with other tasks' requests of the same moment."""
        calls = self._loop_calls
        if calls is None or calls.loop is not asyncio.get_running_loop():
            calls = self._loop_calls = self._calls_of(asyncio.get_running_loop())
        return calls.submit(request)

    def _calls_of(self, loop: asyncio.AbstractEventLoop) -> LoopCalls:
        if not self._source.serves_asyncio:
            raise ConfigError(f"asyncio calls need an asyncio client, like {PAIR}", param="store")
        for closed in [each for each in self._loops if each.is_closed()]:
            self._loops.pop(closed)[0].abandon()
        if loop not in self._loops:
            calls = LoopCalls(self._source, self, self._deadline_s, self.health)
            self._loops[loop] = calls, calls.close_with_the_loop()
        return self._loops[loop][0]

    # -- the script ----------------------------------------------------------------------------------------------

    def command(self, requests: Sequence[StoreRequest], *, with_source: bool) -> tuple[Any, ...]:
        """The words of the call that decides `requests`."""
        call = ("EVAL", SCRIPT) if with_source else ("EVALSHA", SCRIPT_SHA)
        return (*call, *self._script_arguments(requests))

    def split(self, requests: Sequence[StoreRequest]) -> Sequence[Sequence[int]]:
        """The positions of requests that one command can decide: equally many rules, and one hash tag on a Cluster."""
        if len(requests) == 1:
            return ((0,),)
        groups: dict[object, list[int]] = {}
        for at, request in enumerate(requests):
            width = len(request.keys)
            groups.setdefault((width, self._hash_tag(request)) if self._cluster else width, []).append(at)
        return list(groups.values())

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

    def read_reply(self, requests: Sequence[StoreRequest], reply: Sequence[int]) -> list[StoreResult]:
        """The results of `requests`, from the numbers that the script returned."""
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

    def close(self) -> None:
        """Close the blocking connection."""
        self._blocking.close()

    async def aclose(self) -> None:
        """Close the blocking connection and that of the running event loop."""
        self.close()
        self._loop_calls = None
        held = self._loops.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held[1].aclose()


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
