"""The shared store: each decision is one atomic script call, over all rules, also for many askers at once.

Blocking callers send one ask a call. Asyncio callers of one event loop share calls through the coalescer. The server's
clock decides unless an ask brings its own time, so servers whose clocks differ agree. Nothing is retried here: a script
whose reply was lost may have charged. Whoever does not hear back within the deadline gets `StoreDown`.
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
from frontrow.limits.stores.protocol import Answer, Ask, Line

SCRIPT = files("frontrow.limits.stores").joinpath("lua/decide.lua").read_text("utf-8")
SCRIPT_SHA = sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
FIELDS = 7  # numbers per ask in a reply
TAGS = 64  # hash tags on a Cluster: few enough to share calls, enough to spread over the nodes
MAX_BATCH = 256
MOMENTS = 50  # a deadline is kept to one in so many parts of it, early rather than late
_new: Any = tuple.__new__  # named tuples, thousands a second: half the cost of calling their class
_SAFE = re.compile(r"[A-Za-z0-9_.:@/-]{1,128}").fullmatch


class RedisStore:
    """Counts in Redis or Valkey at `url`, under keys starting with `prefix`."""

    def __init__(
        self, url: str, lines: Sequence[Line], stats: Stats, *, deadline_s: float = 0.025, prefix: str = "frl"
    ) -> None:
        self._url = url
        self._lines = tuple(lines)
        self._stats = stats
        self._deadline_s = deadline_s
        self._cluster = is_cluster(url)
        self.tag_parts = common_parts(self._lines) if self._cluster else None
        if not re.fullmatch(r"[A-Za-z0-9_.:-]{1,64}", prefix):
            raise ConfigError(f"prefix must be 1 to 64 letters, digits, _ . : or -, not {prefix!r}", param="prefix")
        self._prefixes = [f"{prefix}:{line.name}:" for line in self._lines]
        self._known = [(line.rule.name, line.quota.capacity) for line in self._lines]
        self._spec = " ".join(str(number) for line in self._lines for number in _line_numbers(line))
        self._sync: Any = connect_sync(url, timeout_s=deadline_s)  # connects when first used
        self._link: _Link | None = None  # of the loop that asked last
        self._links: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Link] = weakref.WeakKeyDictionary()

    # -- blocking ------------------------------------------------------------------------------------------------

    def decide(self, ask: Ask) -> Answer:
        """One ask, one round trip."""
        words = self._words((ask,))
        started = time.perf_counter()
        try:
            reply = call_sync(self._sync, "EVALSHA", SCRIPT_SHA, *words)
        except Exception as error:
            reply = self._load_and_retry(error, words)
        finally:
            self._timed(started)
        return self._answers((ask,), reply)[0]

    def _load_and_retry(self, error: Exception, words: Sequence[Any]) -> Any:
        if not _is_noscript(error):
            raise _down(error) from error
        try:
            return call_sync(self._sync, "EVAL", SCRIPT, *words)
        except Exception as again:
            raise _down(again) from again

    # -- asyncio -------------------------------------------------------------------------------------------------

    def adecide(self, ask: Ask) -> "asyncio.Future[Answer]":
        """One ask among those of this moment."""
        link = self._link
        if link is None or link.loop is not asyncio.get_running_loop():
            link = self._link = self._link_of(asyncio.get_running_loop())
        try:
            return link.submit(ask)
        except Overloaded as error:
            raise StoreDown(error.message) from error

    def _link_of(self, loop: asyncio.AbstractEventLoop) -> "_Link":
        link = self._links.get(loop)
        if link is None:
            link = self._links[loop] = _Link(self._url, self._deadline_s, self._send_over)
        return link

    async def _send_over(self, link: "_Link", asks: Sequence[Ask]) -> Sequence[Answer | BaseException]:
        if not self._cluster:
            return await self._call(link, asks)
        await link.client.initialize()  # once, before many calls at a time would each learn the slots
        groups: dict[str, list[int]] = {}
        for at, ask in enumerate(asks):
            groups.setdefault(self._tag(ask), []).append(at)
        told = await asyncio.gather(
            *(self._call(link, [asks[at] for at in ats]) for ats in groups.values()), return_exceptions=True
        )
        answers: list[Answer | BaseException] = [StoreDown("not answered")] * len(asks)
        for ats, part in zip(groups.values(), told, strict=True):
            for offset, at in enumerate(ats):
                answers[at] = part if isinstance(part, BaseException) else part[offset]
        return answers

    async def _call(self, link: "_Link", asks: Sequence[Ask]) -> Sequence[Answer]:
        words = self._words(asks)
        started = time.perf_counter()
        try:
            reply = await call(link.client, "EVALSHA", SCRIPT_SHA, *words)
        except Exception as error:
            if not _is_noscript(error):
                raise _down(error) from error
            try:
                reply = await call(link.client, "EVAL", SCRIPT, *words)
            except Exception as again:
                raise _down(again) from again
        finally:
            self._timed(started)
        return self._answers(asks, reply)

    # -- both ----------------------------------------------------------------------------------------------------

    def _words(self, asks: Sequence[Ask]) -> list[Any]:
        """The script's arguments for a batch of asks."""
        width = len(asks[0].keys)
        keys: list[str] = []
        plain = True
        prefixes, plain_lines = self._prefixes, tuple(range(width))
        for ask in asks:
            lines, own, cost, now_us, op, _ = ask
            tag = "{" + self._tag(ask) + "}" if self._cluster else ""
            for line, key in zip(lines, own, strict=True):
                keys.append(tag + prefixes[line] + redis_key(key))
            plain = plain and cost == 1 and now_us is None and op == 0 and lines == plain_lines
        asked = "" if plain else " ".join(map(_ask_numbers, asks))
        return [len(keys), *keys, self._spec, width, asked]

    def _tag(self, ask: Ask) -> str:
        """The hash tag all of this ask's keys share: made from what all rules count by."""
        raw = ask.tag if isinstance(ask.tag, bytes) else ask.tag.encode("utf-8", "surrogatepass")
        return str(int.from_bytes(blake2b(raw, digest_size=2).digest(), "big") % TAGS)

    def _answers(self, asks: Sequence[Ask], reply: Sequence[int]) -> list[Answer]:
        answers = []
        known = self._known
        numbers = iter(reply)
        fields = zip(*[numbers] * FIELDS, strict=True)
        for ask, (allowed, rule, remaining, reset, retry, delay, mask) in zip(asks, fields, strict=True):
            name, capacity = known[ask.lines[rule - 1]]
            decision = _new(Decision, (allowed == 1, name, capacity, remaining, reset, retry, delay, "store"))
            shadowed = tuple(at for at in range(len(ask.lines)) if mask >> at & 1) if mask else ()
            answers.append(_new(Answer, (decision, shadowed)))
        return answers

    def _timed(self, started: float) -> None:
        self._stats.store_calls += 1
        self._stats.store_seconds += time.perf_counter() - started

    def close(self) -> None:
        """Close the blocking connections."""
        disconnect_sync(self._sync)

    async def aclose(self) -> None:
        """Close the blocking connections and those of the running event loop."""
        self.close()
        link = self._links.pop(asyncio.get_running_loop(), None)
        self._link = None
        if link is not None:
            await link.aclose()


class _Link:
    """One event loop's client, coalescer and deadlines."""

    def __init__(self, url: str, deadline_s: float, send: Callable[["_Link", Sequence[Ask]], Any]) -> None:
        self.client: Any = connect(url, timeout_s=deadline_s)
        self._deadline_s = deadline_s
        self._send = send
        self.loop = asyncio.get_running_loop()
        self._coalescer: Coalescer[Ask, Answer] = Coalescer(self._sent, max_batch=MAX_BATCH, name="the limit store")
        self._moments: deque[_Moment] = deque()
        self._moment_ends_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def submit(self, ask: Ask) -> "asyncio.Future[Answer]":
        future = self._coalescer.submit(ask)
        now_s = self.loop.time()
        if now_s >= self._moment_ends_s:
            self._begin_moment(now_s)
        self._moments[-1].futures.append(future)
        return future

    def _begin_moment(self, now_s: float) -> None:
        self._moments.append(_Moment(now_s + self._deadline_s, self._coalescer.asked - 1))
        self._moment_ends_s = now_s + self._deadline_s / MOMENTS
        if self._timer is None:
            self._timer = self.loop.call_later(self._deadline_s, self._expire)

    async def _sent(self, asks: Sequence[Ask]) -> Sequence[Answer | BaseException]:
        """Send a batch; whoever asked before it was taken has an answer afterwards and needs no deadline."""
        taken = self._coalescer.asked - len(self._coalescer)
        try:
            return await self._send(self, asks)  # type: ignore[no-any-return]
        finally:
            while self._moments and self._moments[0].first + len(self._moments[0].futures) <= taken:
                self._moments.popleft()
            if not self._moments:
                self._moment_ends_s = 0.0

    def _expire(self) -> None:
        """Fail whoever waited for the whole deadline; one timer serves all, since all wait equally long."""
        now_s = self.loop.time()
        while self._moments and self._moments[0].due_s <= now_s:
            for future in self._moments.popleft().futures:
                if not future.done():
                    message = f"the limit store did not answer within {self._deadline_s * 1000:g} ms"
                    future.set_exception(StoreDown(message))
        if not self._moments:
            self._moment_ends_s = 0.0
        self._timer = self.loop.call_at(self._moments[0].due_s, self._expire) if self._moments else None

    async def aclose(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._coalescer.aclose()
        await disconnect(self.client)


class _Moment:
    """Asks of nearly the same time, which share a deadline: the `first`-th of all asks and those after it."""

    __slots__ = ("due_s", "first", "futures")

    def __init__(self, due_s: float, first: int) -> None:
        self.due_s, self.first = due_s, first
        self.futures: list[asyncio.Future[Answer]] = []


def redis_key(key: StoreKey) -> str:
    """`key` as it may stand inside a Redis key: itself when harmless, else a digest (no harmless key looks so)."""
    if isinstance(key, str):
        if _SAFE(key):
            return key
        return "~" + blake2b(key.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
    return "=" + blake2b(key, digest_size=20).hexdigest()


def _ask_numbers(ask: Ask) -> str:
    now_us = -1 if ask.now_us is None else ask.now_us
    return f"{ask.op} {ask.cost} {now_us} " + " ".join(str(line + 1) for line in ask.lines)


def _line_numbers(line: Line) -> tuple[int, ...]:
    quota = line.quota
    leak, unit = quota.drip if quota.is_bucket else (0, 0)
    number = ALGORITHMS.index(quota.algorithm) + 1
    return (
        *(number, quota.limit, quota.period_us, quota.grain_us, leak, unit),
        *(quota.capacity, quota.life_us, int(line.rule.shadow)),
    )


def common_parts(lines: Sequence[Line]) -> tuple[str, ...]:
    """The parts all rules count by, which decide the slot on a Cluster (empty: they all count by the whole key)."""
    counted = {line.rule.name: line.rule.per for line in lines}
    if set(counted.values()) == {None}:
        return ()
    shared = set.intersection(*(set(per or ()) for per in counted.values()))
    if shared or len(counted) == 1:
        return tuple(sorted(shared))
    names = " and ".join(sorted(counted))
    raise ConfigError(
        f"on Redis Cluster the rules {names} cannot be decided in one step: they count by no common part of the key, "
        "so their keys live in different slots. Let them share a part in `per`, or give each a limiter of its own",
        param="per",
    )


def _is_noscript(error: Exception) -> bool:
    return type(error).__name__ == "NoScriptError"


def _down(error: Exception) -> StoreDown:
    return StoreDown(f"the limit store failed: {type(error).__name__}: {error}")
