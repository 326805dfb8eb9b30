"""In-process limiters beside each other: CPU per check on a hot key, at a million keys, with three rules; memory."""

import asyncio
import gc
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.measure import cpu_us

LIMIT = 1_000_000_000
CHECKS: dict[str, Callable[[], Callable[[str], object]]] = {}
Check = Callable[[str], object]


def check(name: str) -> Callable[[Callable[[], Check]], Callable[[], Check]]:
    def keep(make: Callable[[], Check]) -> Callable[[], Check]:
        CHECKS[name] = make
        return make

    return keep


def frontrow(algorithm: str, compiled: bool = True, rules: int = 1) -> Check:
    from frontrow.limits import Limiter, Quota, Rule

    limit = 100_000 if algorithm == "sliding_log" else LIMIT
    quotas = [Quota(limit, (60 + n) * 1_000_000, algorithm) for n in range(rules)]
    return Limiter([Rule(f"r{n}", quota) for n, quota in enumerate(quotas)], compiled=compiled).check


for _algorithm in ("fixed_window", "sliding_counter", "sliding_log", "token_bucket", "leaky_bucket"):
    CHECKS[f"{_algorithm} Frontrow"] = lambda a=_algorithm: frontrow(a)  # type: ignore[misc]
    CHECKS[f"{_algorithm} Frontrow, no compiler"] = lambda a=_algorithm: frontrow(a, compiled=False)  # type: ignore[misc]


def _limits(kind: str, rules: int = 1) -> Check:
    from limits import RateLimitItemPerMinute
    from limits.storage import MemoryStorage
    from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter

    strategy: Any = {
        "fixed_window": FixedWindowRateLimiter,
        "sliding_counter": SlidingWindowCounterRateLimiter,
        "sliding_log": MovingWindowRateLimiter,
    }[kind](MemoryStorage())
    items = [RateLimitItemPerMinute(100_000 if kind == "sliding_log" else LIMIT, n + 1) for n in range(rules)]
    if rules == 1:
        return lambda key: strategy.hit(items[0], key)
    return lambda key: all(strategy.hit(item, key) for item in items)


for _kind in ("fixed_window", "sliding_counter", "sliding_log"):
    CHECKS[f"{_kind} limits"] = lambda k=_kind: _limits(k)  # type: ignore[misc]


def _throttled(using: str, rules: int = 1) -> Check:
    from throttled import Throttled, per_min, store

    held = store.MemoryStore(options={"MAX_SIZE": 3_000_000})
    each = [Throttled(using=using, quota=per_min(LIMIT + n, burst=LIMIT), store=held, key=None) for n in range(rules)]
    if rules == 1:
        return lambda key: each[0].limit(key)
    return lambda key: all(not one.limit(f"{n}{key}").limited for n, one in enumerate(each))


for _ours, _theirs in (
    ("fixed_window", "fixed_window"),
    ("sliding_counter", "sliding_window"),
    ("token_bucket", "token_bucket"),
    ("leaky_bucket", "leaking_bucket"),
):
    CHECKS[f"{_ours} throttled-py"] = lambda t=_theirs: _throttled(t)  # type: ignore[misc]


@check("token_bucket pyrate-limiter")
def _pyrate() -> Check:
    """Its in-memory bucket holds one client; a dictionary of limiters is what its users write for many."""
    from pyrate_limiter import Duration, InMemoryBucket, Limiter, Rate

    limiters: dict[str, Any] = {}

    def ask(key: str) -> object:
        limiter = limiters.get(key)
        if limiter is None:
            limiter = limiters[key] = Limiter(InMemoryBucket([Rate(100_000, Duration.MINUTE)]))
        return limiter.try_acquire(key, blocking=False)

    return ask


@check("token_bucket floor: dict and arithmetic, no lock, bool")
def _floor() -> Check:
    due: dict[str, int] = {}
    weight, full = 60_000_000 // 1_000_000, 60_000_000

    def ask(key: str) -> bool:
        now = time.monotonic_ns() // 1000
        then = due.get(key, now)
        owed = (then if then > now else now) + weight
        if owed - now > full:
            return False
        due[key] = owed
        return True

    return ask


def hot_key(make: Callable[[], Check], batch: int) -> float:
    ask = make()

    def run(count: int) -> None:
        for _ in range(count):
            ask("user:42")

    return cpu_us(run, batch=batch)


def million_keys(make: Callable[[], Check], count: int = 1_000_000) -> dict[str, float]:
    """CPU per check and bytes per key when every key is new, then CPU and slowest checks when they come again."""
    keys = [f"user:{n}" for n in range(count)]
    random.Random(7).shuffle(keys)
    gc.collect()
    before = _rss_bytes()
    ask = make()
    started = time.process_time()
    for key in keys:
        ask(key)
    first = (time.process_time() - started) / count
    bytes_per_key = (_rss_bytes() - before) / count
    some = keys[:200_000]
    started = time.process_time()
    for key in some:
        ask(key)
    again = (time.process_time() - started) / len(some)
    slow = sorted(_timed(ask, key) for key in some)
    return {
        "new_us": first * 1e6,
        "again_us": again * 1e6,
        "bytes_per_key": bytes_per_key,
        "p999_us": slow[int(len(slow) * 0.999)] * 1e6,
        "p9999_us": slow[int(len(slow) * 0.9999)] * 1e6,
        "max_us": slow[-1] * 1e6,
    }


def _timed(ask: Check, key: str) -> float:
    started = time.perf_counter()
    ask(key)
    return time.perf_counter() - started


def _rss_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def aging() -> dict[str, float]:
    """A million keys go idle and leave while one client keeps asking: how slow the slowest of its checks are."""
    from frontrow.core.clock import ManualClock
    from frontrow.limits import Limiter, Quota

    clock = ManualClock()
    limiter = Limiter(Quota.parse("10/minute", algorithm="token_bucket"), clock=clock)
    for n in range(1_000_000):
        limiter.check(f"user:{n}")
    slow = []
    for step in range(400_000):
        if step % 40_000 == 0:
            clock.advance(61)
        slow.append(_timed(limiter.check, "awake"))
    slow.sort()
    left = len(limiter._store)  # type: ignore[arg-type]
    return {"p9999_us": slow[int(len(slow) * 0.9999)] * 1e6, "max_us": slow[-1] * 1e6, "keys_left": left}


def log_bytes() -> float:
    """Bytes per remembered request of the sliding log."""
    from frontrow.limits import Limiter, Quota

    limiter = Limiter(Quota.parse("1000/hour", algorithm="sliding_log"))
    gc.collect()
    before = _rss_bytes()
    for n in range(3000):
        limiter.check(f"user:{n}", cost=1000)
    return (_rss_bytes() - before) / 3_000_000


def in_child(call: str) -> Any:
    """Evaluate `call` in a fresh interpreter, so that one measurement's memory does not touch the next."""
    code = f"import json; from bench.limits_memory import *; print(json.dumps({call}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    import json

    return json.loads(done.stdout.splitlines()[-1])


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    results: dict[str, Any] = {"hot_us": {}, "million": {}, "three_rules_us": {}}
    for name, make in CHECKS.items():
        progress(f"hot key: {name}")
        results["hot_us"][name] = hot_key(make, 200_000 if name.endswith("Frontrow") else 30_000)
    three: dict[str, Callable[[], Check]] = {
        "Frontrow": lambda: frontrow("sliding_counter", rules=3),
        "Frontrow fixed": lambda: frontrow("fixed_window", rules=3),
        "limits": lambda: _limits("sliding_counter", 3),
        "limits fixed": lambda: _limits("fixed_window", 3),
        "throttled-py": lambda: _throttled("sliding_window", 3),
    }
    for name, make in three.items():
        progress(f"three rules: {name}")
        results["three_rules_us"][name] = hot_key(make, 100_000 if name.startswith("Frontrow") else 15_000)
    for name in CHECKS:
        if "no compiler" in name or name == "sliding_log limits":
            continue
        progress(f"a million keys: {name}")
        if name == "token_bucket pyrate-limiter":
            # a thread for every limiter: more keys than this and the process is killed
            results["million"][name] = in_child(f"million_keys(CHECKS[{name!r}], 1_000)")
        else:
            results["million"][name] = in_child(f"million_keys(CHECKS[{name!r}])")
    progress("a million keys age out")
    results["aging"] = in_child("aging()")
    results["log_bytes_per_request"] = in_child("log_bytes()")
    return results


if __name__ == "__main__":
    asyncio.run(asyncio.sleep(0))
    print(run(print))
