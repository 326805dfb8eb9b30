"""Limiters over one Redis-protocol server: blocking, one task, 200 tasks, one rule and three, known refusals, a stall.

throttled-py's limiter is called directly, without its `Throttled` wrapper. The server's time per check is what the
server reports for the scripts it ran: once while it is busy, and once when it sleeps between two checks and wakes with
cold caches.
"""

import asyncio
import itertools
import socket
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import hiredis
from redis import Redis

from bench.limits_memory import in_child
from bench.measure import cpu_us, cpu_us_async
from frontrow.limits import Limiter, Quota, Rule
from frontrow.limits.stores.protocol import StoreRequest
from tests.support.servers import Valkey

LIMIT = 100_000_000
TASKS = 200
CLIENTS = 1000
LOGGED = 100_000
TURNS = 3
FLOOR = (
    "redis.call('TIME') redis.call('GET', KEYS[1]) redis.call('SETRANGE', KEYS[1], '16', '12345678')"
    " return '0123456789abcdef'"
)
CALLS, PIPELINE, STALLS = 500, 50, 5
Ask = Callable[[str], object]
AsyncAsk = Callable[[str], Awaitable[object]]


def rules(count: int) -> list[Rule]:
    return [Rule(f"r{n}", Quota(LIMIT, (60 + n) * 1_000_000)) for n in range(count)]


def sequential(server: Valkey, count: int) -> dict[str, Ask]:
    """Blocking checks of `count` rules, one after the other."""
    from limits import RateLimitItemPerMinute
    from limits.storage import RedisStorage
    from limits.strategies import FixedWindowRateLimiter, SlidingWindowCounterRateLimiter
    from throttled import RateLimiterRegistry, per_min, store

    items = [RateLimitItemPerMinute(LIMIT, n + 1) for n in range(count)]
    counter = SlidingWindowCounterRateLimiter(RedisStorage(server.url))
    fixed = FixedWindowRateLimiter(RedisStorage(server.url))
    held = store.RedisStore(server=server.url)
    throttled = [RateLimiterRegistry.get("sliding_window")(per_min(LIMIT + n), held) for n in range(count)]
    ours = Limiter(rules(count), store=server.url, deadline_s=5.0)
    return {
        "Frontrow": ours.check,
        "limits": lambda key: [counter.hit(item, key) for item in items],
        "limits, fixed window": lambda key: [fixed.hit(item, key) for item in items],
        "throttled-py": lambda key: [each.limit(f"{n}{key}") for n, each in enumerate(throttled)],
    }


def concurrent(server: Valkey, count: int) -> dict[str, AsyncAsk]:
    """Checks of `count` rules for asyncio."""
    from limits import RateLimitItemPerMinute
    from limits.aio.storage import RedisStorage
    from limits.aio.strategies import FixedWindowRateLimiter, SlidingWindowCounterRateLimiter
    from throttled.asyncio import RateLimiterRegistry, per_min, store

    items = [RateLimitItemPerMinute(LIMIT, n + 1) for n in range(count)]
    url = f"async+{server.url}"
    counter = SlidingWindowCounterRateLimiter(RedisStorage(url, implementation="redispy", max_connections=TASKS + 10))
    fixed = FixedWindowRateLimiter(RedisStorage(url, implementation="redispy", max_connections=TASKS + 10))
    held = store.RedisStore(server=server.url, options={"CONNECTION_POOL_KWARGS": {"max_connections": TASKS + 10}})
    throttled = [RateLimiterRegistry.get("sliding_window")(per_min(LIMIT + n), held) for n in range(count)]
    ours = Limiter(rules(count), store=server.url, deadline_s=5.0)

    async def by_counter(key: str) -> None:
        for item in items:
            await counter.hit(item, key)

    async def by_fixed(key: str) -> None:
        for item in items:
            await fixed.hit(item, key)

    async def by_throttled(key: str) -> None:
        for n, each in enumerate(throttled):
            await each.limit(f"{n}{key}")

    return {
        "Frontrow": ours.acheck,
        "limits": by_counter,
        "limits, fixed window": by_fixed,
        "throttled-py": by_throttled,
    }


def _one_after_the_other(ask: Ask) -> dict[str, float]:
    def run(count: int) -> None:
        for n in range(count):
            ask(f"user:{n % CLIENTS}")

    run(100)
    started = time.perf_counter()
    run(1000)
    rate = 1000 / (time.perf_counter() - started)
    cost = cpu_us(run, batch=1000, rounds=3)
    _answered_by_the_store(ask("user:0"))
    return {"cpu_us": cost, "per_s": rate}


def _answered_by_the_store(decision: object) -> None:
    assert getattr(decision, "source", "store") == "store", "the fallback was measured, not the store"


async def _in_tasks(ask: AsyncAsk, tasks: int, batch: int) -> dict[str, float]:
    async def run(count: int) -> None:
        async def one(worker: int) -> None:
            for n in range(max(1, count // tasks)):
                await ask(f"user:{(worker * 31 + n) % CLIENTS}")

        await asyncio.gather(*(one(worker) for worker in range(tasks)))

    cpu, rate = await cpu_us_async(run, batch=batch)
    _answered_by_the_store(await ask("user:0"))
    return {"cpu_us": cpu, "per_s": rate}


def server_us(server: Valkey) -> dict[str, float]:
    """The server's own time per check, one check per call: ours, a floor's and the peers'.

    The floor is a script of the same three commands and no arithmetic, called by the same code at the same pace.
    """
    figures: dict[str, float] = {}
    for name, ask in sequential(server, 1).items():
        if name != "Frontrow":
            figures[name] = _server_time_us(server, CALLS, lambda n, ask=ask: ask(f"user:{n % CLIENTS}"))  # type: ignore[misc]
    with Redis.from_url(server.url) as client:
        floor = client.script_load(FLOOR)
    for name in ("Frontrow", "floor"):
        with Limiter(rules(1), store=server.url, prefix=name, deadline_s=5.0) as limiter:
            store = limiter._store._remote  # type: ignore[attr-defined]
            if name == "floor":
                store._script.frame_check = lambda asked: hiredis.pack_command(("EVALSHA", floor, 1, *asked[0].keys))
            figures[name] = _server_time_us(server, CALLS, lambda n: limiter.check(f"user:{n}"))
            requests = [StoreRequest((0,), (f"user:{n}",)) for n in range(CALLS)]
            frames = [store.frame((request,), with_source=False) for request in requests]
            figures[f"{name}, busy"] = _busy_server_time_us(server, frames)
    return figures


def _server_time_us(server: Valkey, calls: int, ask: Callable[[int], object]) -> float:
    """The server's time per call of a script: the best of several rounds."""

    def ask_all() -> None:
        for n in range(calls):
            ask(n)

    ask(0)
    return _script_time_us(server, calls, ask_all)


def _busy_server_time_us(server: Valkey, frames: list[bytes]) -> float:
    """The server's time per call when the next ones already wait for it, as those of many clients do."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        reader: Any = hiredis.Reader()

        def ask_all() -> None:
            for first in range(0, len(frames), PIPELINE):
                connection.sendall(b"".join(frames[first : first + PIPELINE]))
                answered = 0
                while answered < PIPELINE:
                    reader.feed(connection.recv(65536))
                    while (reply := reader.gets()) is not False:
                        assert isinstance(reply, bytes), reply
                        answered += 1

        return _script_time_us(server, len(frames), ask_all)


def _script_time_us(server: Valkey, calls: int, ask_all: Callable[[], None]) -> float:
    best = float("inf")
    with Redis.from_url(server.url) as client:
        for _ in range(5):
            client.config_resetstat()
            ask_all()
            commands = client.info("commandstats")
            scripts = [told for name, told in commands.items() if name.startswith(("cmdstat_eval", "cmdstat_fcall"))]
            assert sum(told["calls"] for told in scripts) == calls
            best = min(best, sum(told["usec"] for told in scripts) / calls)
    return best


def long_log(server: Valkey) -> dict[str, float]:
    """The server's time per check of a log that holds LOGGED requests, and the bytes it takes to remember one."""
    quota = Quota(10 * LOGGED, 3_600_000_000, "sliding_log")

    async def fill() -> None:
        async with Limiter(Rule("long-log", quota), store=server.url, deadline_s=10.0) as limiter:
            start_us = time.time_ns() // 1000 - 10 * LOGGED
            for first in range(0, LOGGED, 1000):  # each at its own time: charges of one instant are remembered as one
                times_us = range(start_us + 10 * first, start_us + 10 * (first + 1000), 10)
                await asyncio.gather(*(limiter.acheck("user:42", now_us=at_us) for at_us in times_us))

    asyncio.run(fill())
    costs = itertools.cycle((1, 2))
    full = Rule("long-log", Quota(LOGGED // 2, quota.period_us, "sliding_log"))  # the same log under half the limit
    with (
        Limiter(Rule("long-log", quota), store=server.url, deadline_s=5.0) as limiter,
        Limiter(full, store=server.url, deadline_s=5.0) as refusing,
        Redis.from_url(server.url) as client,
    ):
        [key] = client.keys("frl|long-log|*")
        return {
            "bytes_per_request": client.memory_usage(key, samples=0) / LOGGED,
            "check_us": _server_time_us(server, 200, lambda n: limiter.check("user:42")),
            "cost_100_us": _server_time_us(server, 200, lambda n: limiter.check("user:42", cost=100)),
            # another cost each time, because a refusal of the same cost is remembered and not asked for again
            "refusal_us": _server_time_us(server, 200, lambda _: refusing.check("user:42", cost=next(costs))),
        }


def denied(server: Valkey) -> float:
    """CPU of asking again for a client known to be refused."""
    limiter = Limiter(Quota.parse("1/day"), store=server.url, deadline_s=5.0)
    limiter.check("user:42")
    limiter.check("user:42")

    def run(count: int) -> None:
        for _ in range(count):
            limiter.check("user:42")

    cost = cpu_us(run, batch=50_000)
    assert limiter.stats.store_calls <= 20, "asked again once a second"
    return cost


async def stalled(server: Valkey) -> dict[str, float]:
    """Slowest answer while the server is stopped (SIGSTOP), in ms; the deadline is 25 ms."""
    limiter = Limiter(Quota.parse("1000/minute"), store=server.url)
    limiter.check("warm")
    await limiter.acheck("warm")
    server.pause()
    try:
        waits = []
        for n in range(5):
            started = time.perf_counter()
            limiter.check(f"user:{n}")
            waits.append(time.perf_counter() - started)
        fresh = Limiter(Quota.parse("1000/minute"), store=server.url)
        waits_async = []

        async def one(n: int) -> None:
            started = time.perf_counter()
            await fresh.acheck(f"user:{n}")
            waits_async.append(time.perf_counter() - started)

        await asyncio.gather(*(one(n) for n in range(TASKS)))
    finally:
        server.resume()
    return {"blocking_ms": max(waits) * 1000, "asyncio_200_tasks_ms": max(waits_async) * 1000}


def stalls() -> dict[str, float]:
    """The middle one of several stalls. Run it in a process of its own: a large one stops to collect its garbage."""
    with Valkey() as server:
        runs = [asyncio.run(stalled(server)) for _ in range(STALLS)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def _keep_better(results: dict[str, Any], what: str, name: str, fresh: dict[str, float]) -> None:
    """The best of several turns. Contenders take turns, so that a slow moment of the machine hits all of them."""
    old = results.setdefault(what, {}).setdefault(name, fresh)
    old["cpu_us"], old["per_s"] = min(old["cpu_us"], fresh["cpu_us"]), max(old["per_s"], fresh["per_s"])


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    with Valkey() as server:
        for count in (1, 3):
            contenders = sequential(server, count)
            for turn, (name, ask) in itertools.product(range(TURNS), contenders.items()):
                progress(f"Redis, one after the other, {count} rules: {name}, {turn + 1} of {TURNS}")
                _keep_better(results, f"sequential_{count}", name, _one_after_the_other(ask))

        async def all_tasks() -> None:
            for count in (1, 3):
                contenders = concurrent(server, count)
                for turn, (name, ask) in itertools.product(range(TURNS), contenders.items()):
                    progress(f"Redis, one task, {count} rules: {name}, {turn + 1} of {TURNS}")
                    _keep_better(results, f"one_task_{count}", name, await _in_tasks(ask, 1, 1_000))
                for name, ask in contenders.items():
                    progress(f"Redis, {TASKS} tasks, {count} rules: {name}")
                    batch = 40_000 if name == "Frontrow" else 4_000
                    _keep_better(results, f"tasks_{count}", name, await _in_tasks(ask, TASKS, batch))

        asyncio.run(all_tasks())
        progress("Redis: the server's time")
        results["server_us"] = server_us(server)
        progress("Redis: a long log")
        results["long_log"] = long_log(server)
        progress("Redis: a known refusal")
        results["denied_us"] = denied(server)
    progress("Redis: stalled")
    results["stalled"] = in_child("stalls()", "bench.limits_redis")
    return results
