"""The keys that are refused most, kept in Redis for `frontrow limits watch`. Only with `record_refusals=True`.

A process counts its refusals per rule and key in memory, those of its refusal cache included. One second after the
first of them it adds the counts to a sorted set in one script call, from a thread of its own: a check never waits for
it, and what cannot be written is dropped. There is one sorted set per ten seconds. It keeps the `MAX_KEPT` most refused
keys and expires by itself.
"""

import asyncio
import functools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from frontrow.core.forks import begin_in_child, fork_safe_lock
from frontrow.core.redis_url import connect_sync, disconnect_sync
from frontrow.limits.keys import GLOBAL_KEY, StoreKey
from frontrow.limits.stores.protocol import CHECK, QuotaSlot, Store, StoreRequest, StoreResult

FLUSH_AFTER_S = 1.0
MAX_COUNTED = 10_000  # keys that one process counts between two writes; refusals of others count as OTHERS
MAX_KEPT = 500
SPAN_S = 10  # of one sorted set
KEPT_S = 600
TIMEOUT_S = 1.0
OTHERS = "(others)"

_ADD = f"""
for i = 1, #ARGV, 2 do redis.call('ZINCRBY', KEYS[1], ARGV[i + 1], ARGV[i]) end
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -{MAX_KEPT + 1})
redis.call('PEXPIRE', KEYS[1], {KEPT_S * 1000})
"""

Connect = Callable[[], Any]


class RefusedKey(NamedTuple):
    """How often a rule refused a key."""

    rule: str
    key: str
    refusals: int


class RefusedKeys:
    """Counts refusals and writes the counts to Redis in the background."""

    def __init__(self, connect: Connect, prefix: str) -> None:
        self._connect = connect
        self._prefix = prefix
        self._lock = fork_safe_lock()
        begin_in_child(self._begin)
        self._begin()

    def _begin(self) -> None:
        """Begin to count. A forked process has no timer, and must not repeat its parent's counts."""
        self._writing = threading.Lock()
        self._client: Any = None
        self._counts: Counter[tuple[str, StoreKey]] = Counter()
        self._timer: threading.Timer | None = None

    def count(self, rule: str, key: StoreKey) -> None:
        """Count one refusal."""
        with self._lock:
            counted = (rule, key)
            if len(self._counts) >= MAX_COUNTED and counted not in self._counts:
                counted = (rule, OTHERS)
            self._counts[counted] += 1
            if self._timer is None:
                self._timer = threading.Timer(FLUSH_AFTER_S, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Write what was counted. If Redis does not take it, it is dropped."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        if not counts:
            return
        words: list[Any] = []
        for (rule, key), refusals in counts.most_common(MAX_KEPT):
            words += (f"{rule} {readable_key(key)}", refusals)
        with self._writing:
            try:
                if self._client is None:
                    self._client = self._connect()
                self._client.eval(_ADD, 1, _set_name(self._prefix, time.time()), *words)
            except Exception:  # the limiter itself reports a store that is down
                return

    def close(self) -> None:
        """Write the rest and disconnect."""
        self.flush()
        with self._writing:
            client, self._client = self._client, None
            if client is not None:
                disconnect_sync(client)


class RecordingStore:
    """Decides with `inner` and counts the refused keys."""

    def __init__(self, inner: Store, slots: Sequence[QuotaSlot], refused: RefusedKeys) -> None:
        self._inner = inner
        self._slots = tuple(slots)
        self._refused = refused
        self.tag_parts = inner.tag_parts

    def decide(self, request: StoreRequest) -> StoreResult:
        result = self._inner.decide(request)
        if not result.decision.allowed and request.op == CHECK:
            self._record(request, result)
        return result

    async def adecide(self, request: StoreRequest) -> StoreResult:
        result = await self._inner.adecide(request)
        if not result.decision.allowed and request.op == CHECK:
            self._record(request, result)
        return result

    def _record(self, request: StoreRequest, result: StoreResult) -> None:
        rule = result.decision.rule
        for slot, key in zip(request.slots, request.keys, strict=True):
            if self._slots[slot].rule.name == rule:
                return self._refused.count(rule, key)

    def close(self) -> None:
        self._refused.close()
        self._inner.close()

    async def aclose(self) -> None:
        await asyncio.to_thread(self._refused.close)
        await self._inner.aclose()


def record_refusals(
    store: Store, slots: Sequence[QuotaSlot], url: str, prefix: str, **connection: Any
) -> RecordingStore:
    """`store`, with its refused keys recorded in the Redis at `url`."""
    connect = functools.partial(connect_sync, url, timeout_s=TIMEOUT_S, **connection)
    return RecordingStore(store, slots, RefusedKeys(connect, prefix))


def top_refused(client: Any, prefix: str, window_s: int, top: int) -> list[RefusedKey]:
    """The most refused keys of the last `window_s` seconds, at most those of `KEPT_S`."""
    now_s = time.time()
    totals: Counter[str] = Counter()
    spans = -(-min(window_s, KEPT_S) // SPAN_S)
    for span in range(-1, spans):  # one ahead: another server's clock may be a little faster
        name = _set_name(prefix, now_s - span * SPAN_S)
        for member, refusals in client.zrevrange(name, 0, MAX_KEPT - 1, withscores=True):
            totals[member.decode("utf-8", "replace")] += int(refusals)
    rows = []
    for member, refusals in totals.most_common(top):
        rule, _, key = member.partition(" ")
        rows.append(RefusedKey(rule, key, refusals))
    return rows


def _set_name(prefix: str, at_s: float) -> str:
    """No prefix contains `!`, so this is no key of a limiter."""
    return f"{prefix}!refused:{int(at_s) // SPAN_S}"


def readable_key(key: StoreKey) -> str:
    """A store key as people read it: `user:42`, or the parts of a mapping as `user=42 endpoint=POST /holds`."""
    if key == GLOBAL_KEY:
        return "everybody"
    if isinstance(key, str):
        return _printable(key)
    if key[:1] == b"#":
        return "#" + key[1:9].hex()
    texts, rest = [], key
    while rest:
        length, _, rest = rest.partition(b":")
        texts.append(_printable(rest[: int(length)].decode("utf-8", "replace")))
        rest = rest[int(length) :]
    return " ".join(f"{name.partition('@')[0]}={value}" for name, value in zip(texts[::2], texts[1::2], strict=True))


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
