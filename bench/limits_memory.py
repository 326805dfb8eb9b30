"""In-process limiters beside each other: CPU per check on a hot key, for asyncio, by several rules, at a million keys.

Each peer is measured at its best: throttled-py's limiter is called directly, without its `Throttled` wrapper, and
several rules of limits also with its fastest strategy. `BOOL_ONLY` names the peers that answer yes or no; the others
return a decision: what is left, and when to come back.
"""

import asyncio
import functools
import gc
import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from bench.measure import cpu_us, cpu_us_async, options

LIMIT = 1_000_000_000
LOG_LIMIT = 100_000
TURNS = 3
ALGORITHMS = ("fixed_window", "sliding_counter", "sliding_log", "token_bucket", "leaky_bucket")
BOOL_ONLY = ("limits", "pyrate-limiter", "token-bucket", "floor: dict and arithmetic, no lock, bool")
Check = Callable[[str], object]
AsyncCheck = Callable[[str], Awaitable[object]]
KEY = "user:42"
PARTS = {"user": "42", "endpoint": "POST /holds"}
FORMS: dict[str, Any] = {  # of a key; the peers take texts, so their users write str(…) or pass parts one by one
    "text": "user:42",
    "mapping": {"user": "42"},
    "number": 42,
    "UUID": UUID("5d0f2b1e-7c0a-4b7e-9d55-0a4b8f1c2e3d"),
}


# -- Frontrow ----------------------------------------------------------------------------------------------------------


def frontrow(algorithm: str, compiled: bool = True, rules: int = 1) -> Any:
    from frontrow.limits import Limiter, Quota, Rule

    limit = LOG_LIMIT if algorithm == "sliding_log" else LIMIT
    quotas = [Quota(limit, (60 + n) * 1_000_000, algorithm) for n in range(rules)]
    return Limiter([Rule(f"r{n}", quota) for n, quota in enumerate(quotas)], compiled=compiled)


def frontrow_by_parts(compiled: bool = True) -> Callable[[], object]:
    """The example of docs/limits.md: three rules that count by parts of a mapping."""
    from frontrow.limits import Limiter, Quota, Rule

    limiter = Limiter(
        [
            Rule("burst", Quota(LIMIT, 1_000_000, "token_bucket"), per=("user",)),
            Rule("endpoint", Quota(LIMIT, 1_000_000), per=("endpoint",)),
            Rule("everybody", Quota(LIMIT, 60_000_000), per=()),
        ],
        compiled=compiled,
    )
    return lambda: limiter.check({"user": "42", "endpoint": "POST /holds"})


# -- peers -------------------------------------------------------------------------------------------------------------

LIMITS_STRATEGIES = {
    "fixed_window": "FixedWindowRateLimiter",
    "sliding_counter": "SlidingWindowCounterRateLimiter",
    "sliding_log": "MovingWindowRateLimiter",
}
THROTTLED_NAMES = {
    "fixed_window": "fixed_window",
    "sliding_counter": "sliding_window",
    "token_bucket": "token_bucket",
    "leaky_bucket": "leaking_bucket",
}


def limits_items(kind: str, rules: int) -> list[Any]:
    from limits import RateLimitItemPerMinute

    return [RateLimitItemPerMinute(LOG_LIMIT if kind == "sliding_log" else LIMIT, n + 1) for n in range(rules)]


def limits_strategy(kind: str) -> Any:
    from limits import strategies
    from limits.storage import MemoryStorage

    return getattr(strategies, LIMITS_STRATEGIES[kind])(MemoryStorage())


def limits(kind: str, rules: int = 1) -> Check:
    strategy, items = limits_strategy(kind), limits_items(kind, rules)
    if rules == 1:
        return lambda key: strategy.hit(items[0], key)
    return lambda key: all(strategy.hit(item, key) for item in items)


def limits_by_parts(kind: str) -> Callable[[], object]:
    strategy, (user, endpoint, everybody) = limits_strategy(kind), limits_items(kind, 3)
    hit = strategy.hit
    return lambda: hit(user, "user", "42") and hit(endpoint, "endpoint", "POST /holds") and hit(everybody, "everybody")


def limits_of_form(form: str) -> Callable[[], object]:
    strategy, [item] = limits_strategy("fixed_window"), limits_items("fixed_window", 1)
    hit, key = strategy.hit, FORMS[form]
    if form == "mapping":
        return lambda: hit(item, "user", key["user"])
    return (lambda: hit(item, key)) if form == "text" else (lambda: hit(item, str(key)))


def throttled_of_form(form: str) -> Callable[[], object]:
    ask, key = throttled("fixed_window"), FORMS[form]
    if form == "mapping":
        return lambda: ask(f"user:{key['user']}")
    return (lambda: ask(key)) if form == "text" else (lambda: ask(str(key)))


def limits_aio(kind: str) -> AsyncCheck:
    from limits.aio import strategies
    from limits.aio.storage import MemoryStorage

    strategy: Any = getattr(strategies, LIMITS_STRATEGIES[kind])(MemoryStorage())
    [item] = limits_items(kind, 1)
    return lambda key: strategy.hit(item, key)


def throttled_limiters(using: str, rules: int, held: Any) -> list[Any]:
    from throttled import RateLimiterRegistry, per_min

    return [RateLimiterRegistry.get(using)(per_min(LIMIT + n, burst=LIMIT), held) for n in range(rules)]


def throttled(kind: str, rules: int = 1) -> Check:
    from throttled import store

    held = store.MemoryStore(options={"MAX_SIZE": 3_000_000})
    each = throttled_limiters(THROTTLED_NAMES[kind], rules, held)
    if rules == 1:
        return each[0].limit  # type: ignore[no-any-return]
    return lambda key: all(not one.limit(f"{n}{key}").limited for n, one in enumerate(each))


def throttled_by_parts() -> Callable[[], object]:
    from throttled import store

    held = store.MemoryStore(options={"MAX_SIZE": 3_000_000})
    [burst] = throttled_limiters("token_bucket", 1, held)
    endpoint, everybody = throttled_limiters("sliding_window", 2, held)
    return lambda: (
        not burst.limit("user:42").limited
        and not endpoint.limit("endpoint:POST /holds").limited
        and not everybody.limit("everybody").limited
    )


def throttled_aio(kind: str) -> AsyncCheck:
    from throttled.asyncio import RateLimiterRegistry, per_min, store

    held = store.MemoryStore(options={"MAX_SIZE": 3_000_000})
    limiter = RateLimiterRegistry.get(THROTTLED_NAMES[kind])(per_min(LIMIT, burst=LIMIT), held)
    return limiter.limit  # type: ignore[no-any-return]


def pyrate() -> Check:
    """Its in-memory bucket holds one client; a dictionary of limiters is what its users write for many."""
    from pyrate_limiter import Duration, InMemoryBucket, Limiter, Rate

    limiters: dict[str, Any] = {}

    def ask(key: str) -> object:
        limiter = limiters.get(key)
        if limiter is None:
            limiter = limiters[key] = Limiter(InMemoryBucket([Rate(LOG_LIMIT, Duration.MINUTE)]))
        return limiter.try_acquire(key, blocking=False)

    return ask


def token_bucket() -> Check:
    """Of the makers of Falcon. It has no lock, never forgets a key, and says neither what is left nor when."""
    from token_bucket import Limiter, MemoryStorage

    return Limiter(LIMIT / 60, LIMIT, MemoryStorage()).consume  # type: ignore[no-any-return]


def aiolimiter() -> AsyncCheck:
    """One limiter per client, in a dictionary. It waits instead of refusing, and says nothing about what is left."""
    from aiolimiter import AsyncLimiter

    limiters: dict[str, Any] = {}

    def ask(key: str) -> Awaitable[object]:
        limiter = limiters.get(key)
        if limiter is None:
            limiter = limiters[key] = AsyncLimiter(LIMIT, 60)
        return limiter.acquire()  # type: ignore[no-any-return]

    return ask


def dictionary() -> Check:
    """What only finding a key costs. Of a million keys, most of it is the memory that no cache holds."""
    found: dict[str, bool] = {}
    return lambda key: found.setdefault(key, True)


def floor() -> Check:
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


# -- what is measured --------------------------------------------------------------------------------------------------

CHECKS: dict[str, Callable[[], Check]] = {}  # named "algorithm who"
ASYNC_CHECKS: dict[str, Callable[[], AsyncCheck]] = {}
for _kind in ALGORITHMS:
    CHECKS[f"{_kind} Frontrow"] = lambda k=_kind: frontrow(k).check  # type: ignore[misc]
    CHECKS[f"{_kind} Frontrow, no compiler"] = lambda k=_kind: frontrow(k, compiled=False).check  # type: ignore[misc]
    ASYNC_CHECKS[f"{_kind} Frontrow"] = lambda k=_kind: frontrow(k).acheck  # type: ignore[misc]
    ASYNC_CHECKS[f"{_kind} Frontrow, no compiler"] = lambda k=_kind: frontrow(k, compiled=False).acheck  # type: ignore[misc]
    if _kind in LIMITS_STRATEGIES:
        CHECKS[f"{_kind} limits"] = lambda k=_kind: limits(k)  # type: ignore[misc]
        ASYNC_CHECKS[f"{_kind} limits.aio"] = lambda k=_kind: limits_aio(k)  # type: ignore[misc]
    if _kind in THROTTLED_NAMES:
        CHECKS[f"{_kind} throttled-py"] = lambda k=_kind: throttled(k)  # type: ignore[misc]
        ASYNC_CHECKS[f"{_kind} throttled-py"] = lambda k=_kind: throttled_aio(k)  # type: ignore[misc]
CHECKS["token_bucket pyrate-limiter"] = pyrate
CHECKS["token_bucket token-bucket"] = token_bucket
CHECKS["token_bucket floor: dict and arithmetic, no lock, bool"] = floor
ASYNC_CHECKS["leaky_bucket aiolimiter"] = aiolimiter

THREE_RULES: dict[str, Callable[[], Check]] = {
    "Frontrow": lambda: frontrow("sliding_counter", rules=3).check,
    "Frontrow fixed": lambda: frontrow("fixed_window", rules=3).check,
    "Frontrow, no compiler": lambda: frontrow("sliding_counter", compiled=False, rules=3).check,
    "Frontrow fixed, no compiler": lambda: frontrow("fixed_window", compiled=False, rules=3).check,
    "limits": lambda: limits("sliding_counter", 3),
    "limits fixed": lambda: limits("fixed_window", 3),
    "throttled-py": lambda: throttled("sliding_counter", 3),
    "throttled-py fixed": lambda: throttled("fixed_window", 3),
}
BY_PARTS: dict[str, Callable[[], Callable[[], object]]] = {
    "Frontrow": frontrow_by_parts,
    "Frontrow, no compiler": lambda: frontrow_by_parts(compiled=False),
    "limits": lambda: limits_by_parts("sliding_counter"),
    "limits fixed": lambda: limits_by_parts("fixed_window"),
    "throttled-py": throttled_by_parts,
}


BY_FORM: dict[str, Callable[[], Callable[[], object]]] = {}  # named "form who"; fixed windows, the peers' fastest
for _form in FORMS:
    BY_FORM[f"{_form} Frontrow"] = lambda f=_form: functools.partial(frontrow("fixed_window").check, FORMS[f])  # type: ignore[misc]
    BY_FORM[f"{_form} Frontrow, no compiler"] = lambda f=_form: functools.partial(  # type: ignore[misc]
        frontrow("fixed_window", compiled=False).check, FORMS[f]
    )
    BY_FORM[f"{_form} limits"] = lambda f=_form: limits_of_form(f)  # type: ignore[misc]
    BY_FORM[f"{_form} throttled-py"] = lambda f=_form: throttled_of_form(f)  # type: ignore[misc]


FEWER_KEYS = {
    "token_bucket pyrate-limiter": 1_000,  # a thread for every limiter: with more the process is killed
    "sliding_log limits": 100_000,  # its timer walks all keys a hundred times a second: with more that is all it does
}


def batch_of(name: str) -> int:
    """How many checks to time at once: enough for a tenth of a second or so, within a log's limit of 100,000."""
    if "sliding_log" in name:
        return 14_000
    return 200_000 if "Frontrow" in name and "no compiler" not in name else 30_000


def hot_key(make: Callable[[], Check], batch: int) -> float:
    ask = make()

    def run(count: int) -> None:
        for _ in range(count):
            ask(KEY)

    return cpu_us(run, batch=batch, rounds=3)


def hot_call(make: Callable[[], Callable[[], object]], batch: int) -> float:
    ask = make()

    def run(count: int) -> None:
        for _ in range(count):
            ask()

    return cpu_us(run, batch=batch, rounds=3)


def hot_key_async(make: Callable[[], AsyncCheck], batch: int) -> float:
    async def measure() -> float:
        ask = make()

        async def run(count: int) -> None:
            for _ in range(count):
                await ask(KEY)

        return (await cpu_us_async(run, batch=batch))[0]

    return asyncio.run(measure())


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
    some = keys[: count // 5]
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


def aging(count: int = 1_000_000) -> dict[str, float]:
    """A million keys go idle and leave while one client keeps asking: how slow the slowest of its checks are."""
    from frontrow.limits import Limiter, Quota
    from frontrow.testing.clock import ManualClock

    clock = ManualClock()
    limiter = Limiter(Quota.parse("10/minute", algorithm="token_bucket"), clock=clock)
    for n in range(count):
        limiter.check(f"user:{n}")
    slow = []
    for step in range(400_000):
        if step % 40_000 == 0:
            clock.advance(61)
        slow.append(_timed(limiter.check, "awake"))
    slow.sort()
    left = len(limiter._store)  # type: ignore[arg-type]
    return {"p9999_us": slow[int(len(slow) * 0.9999)] * 1e6, "max_us": slow[-1] * 1e6, "keys_left": left}


def flood(max_keys: int = 200_000, compiled: bool = True) -> dict[str, float]:
    """Twice as many clients as the store may hold, none of them idle: every check takes the place of another key."""
    from frontrow.limits import Limiter, Quota

    quota, store = Quota.parse("10/hour", algorithm="token_bucket"), f"memory://?max_keys={max_keys}"
    limiter = Limiter(quota, store=store, compiled=compiled)
    for n in range(max_keys):
        limiter.check(f"user:{n}", cost=2)
    keys = [f"new:{n}" for n in range(max_keys)]
    started = time.process_time()
    refused = sum(not limiter.check(key).allowed for key in keys[: max_keys // 2])
    cpu = (time.process_time() - started) / (max_keys // 2)
    slow = sorted(_timed(limiter.check, key) for key in keys[max_keys // 2 :])
    return {"cpu_us": cpu * 1e6, "p999_us": slow[int(len(slow) * 0.999)] * 1e6, "refused": refused}


def log_bytes() -> float:
    """Bytes per remembered request of the sliding log."""
    from frontrow.limits import Limiter, Quota

    limiter = Limiter(Quota.parse("1000/hour", algorithm="sliding_log"))
    gc.collect()
    before = _rss_bytes()
    for n in range(3000):
        limiter.check(f"user:{n}", cost=1000)
    return (_rss_bytes() - before) / 3_000_000


def in_child(call: str, module: str = "bench.limits_memory") -> Any:
    """Evaluate `call` in a fresh interpreter, so that one measurement's memory does not touch the next."""
    code = f"import json; from {module} import *; print(json.dumps({call}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def in_turns(
    what: str,
    makers: dict[str, Callable[[], Any]],
    measure: Callable[[Any, int], float],
    shorter: int,
    progress: Callable[[str], None],
) -> dict[str, float]:
    """The best of several turns of each contender. They take turns, so that a slow moment of the machine hits all."""
    best = dict.fromkeys(makers, float("inf"))
    for turn, (name, make) in itertools.product(range(TURNS), makers.items()):
        progress(f"{what}: {name}, {turn + 1} of {TURNS}")
        best[name] = min(best[name], measure(make, batch_of(name) // shorter))
    return best


def run(progress: Callable[[str], None], quick: bool = False) -> dict[str, Any]:
    """Every figure. `quick`: a tenth of the keys and a fifth of the checks."""
    shorter, keys = (5, 100_000) if quick else (1, 1_000_000)
    results: dict[str, Any] = {
        "hot_us": in_turns("hot key", CHECKS, hot_key, shorter, progress),
        "async_us": in_turns("hot key, asyncio", ASYNC_CHECKS, hot_key_async, shorter, progress),
        "three_rules_us": in_turns("three rules", THREE_RULES, hot_key, 2 * shorter, progress),
        "by_parts_us": in_turns("three rules by parts", BY_PARTS, hot_call, 2 * shorter, progress),
        "by_form_us": in_turns("forms of a key", BY_FORM, hot_call, shorter, progress),
        "million": {},
    }
    for name in CHECKS:
        progress(f"a million keys: {name}")
        results["million"][name] = in_child(f"million_keys(CHECKS[{name!r}], {min(keys, FEWER_KEYS.get(name, keys))})")
    progress("a million keys: touching them")
    results["million"]["floor: a dictionary's get"] = in_child(f"million_keys(dictionary, {keys})")
    progress("a million keys age out")
    results["aging"] = in_child(f"aging({keys})")
    progress("more keys than the store holds")
    results["flood"] = in_child(f"flood({keys // 5})")
    results["flood_no_compiler"] = in_child(f"flood({keys // 5}, compiled=False)")
    results["log_bytes_per_request"] = in_child("log_bytes()")
    return results


if __name__ == "__main__":
    options(__doc__).parse_args()
    print(run(print))
