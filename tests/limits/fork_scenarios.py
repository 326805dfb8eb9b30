"""What a forked child does with limiters that other threads of its parent were using. Run in a process of its own:

    python -m tests.limits.fork_scenarios SCENARIO REDIS_URL

It ends with 0 if the child did. The test that runs it bounds its time.
"""

import asyncio
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable

from frontrow.core.clock import SystemClock
from frontrow.limits import ConcurrencyLimiter, Limiter, Quota, Rule
from frontrow.limits.adaptive import AdaptiveLimit, AimdLimit
from frontrow.limits.stores.most_refused_keys import RefusedKeys

CHILD_S = 8  # a child that takes longer hangs
FORKS = 60
STUCK = "stuck"  # the thread that stands still inside a lock


used: list[Limiter] = []  # until the process ends, so that nothing is closed before


def run_child(child: Callable[[], bool]) -> int:
    """Fork. The child's exit code: 0 if it found what it expected, -14 if it hung."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(CHILD_S)
        code = 1
        try:
            code = 0 if child() else 1
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class StuckClock:
    """Stands still in one thread, inside whatever lock the caller holds, until the parent ends."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._clock = SystemClock()

    def __call__(self) -> int:
        if threading.current_thread().name == STUCK:
            self.reached.set()
            threading.Event().wait(60)
        return self._clock()


def start(work: Callable[[], object], name: str = "other") -> None:
    threading.Thread(target=work, name=name, daemon=True).start()


def held_lock_of_the_memory_store(_url: str) -> int:
    clock = StuckClock()
    limiter = Limiter("5/minute", clock=clock, compiled=False)
    start(lambda: limiter.check("fan"), STUCK)
    clock.reached.wait()
    return run_child(lambda: limiter.check("fan").allowed and limiter.peek("fan").remaining == 4)


def held_lock_of_permits(_url: str) -> int:
    clock = StuckClock()
    limiter = ConcurrencyLimiter(2, clock=clock)
    start(lambda: limiter._store.apply(limiter._request(0, "fan")), STUCK)
    clock.reached.wait()
    return run_child(lambda: limiter.try_acquire("fan") is not None)


def permits_of_the_parent(_url: str) -> int:
    """The parent's permits are held in the parent. In the child there is nobody who has one."""
    limiter = ConcurrencyLimiter(1)
    held = limiter.try_acquire("fan")
    start(lambda: limiter.acquire("fan", timeout_s=30))
    while not limiter._waiters._by_key:
        pass

    def child() -> bool:
        with limiter.permit("fan", timeout_s=1):
            return limiter.in_use("fan") == 1 and limiter.try_acquire("fan") is None

    return run_child(child) or (0 if held is not None and held.is_held and limiter.in_use("fan") == 1 else 2)


def somebody_waits_in_acquire(url: str) -> int:
    limiter = Limiter("1/second token_bucket", store=url, **({"deadline_s": 5.0} if url != "memory://" else {}))
    used.append(limiter)
    limiter.check("fan")
    for _ in range(5):
        start(lambda: limiter.acquire("fan", timeout_s=60))
    while not len(limiter._lines):
        pass
    return run_child(lambda: limiter.acquire("fan", timeout_s=None).allowed)


def somebody_waits_in_aacquire(url: str) -> int:
    limiter = Limiter("1/second token_bucket", store=url, **({"deadline_s": 5.0} if url != "memory://" else {}))

    async def wait() -> None:
        await asyncio.gather(*(limiter.aacquire("fan") for _ in range(5)))

    used.append(limiter)
    limiter.check("fan")
    start(lambda: asyncio.run(wait()))
    while not len(limiter._lines):
        pass

    async def child() -> bool:
        return (await limiter.aacquire("fan")).allowed

    return run_child(lambda: asyncio.run(child()))


def connection_of_the_parent(url: str) -> int:
    """The child opens its own and closes its copy of the parent's, without a word."""
    with Limiter("100/minute", store=url, deadline_s=5.0) as limiter:
        limiter.check("fan")

        def child() -> bool:
            with limiter:
                return limiter.check("fan").remaining == 98

        code = run_child(child)
        return code or (0 if limiter.check("fan").remaining == 97 else 2)


def connection_of_the_parents_loop(url: str) -> int:
    limiter = Limiter("100/minute", store=url, deadline_s=5.0)

    async def parent() -> int:
        await limiter.acheck("fan")

        def child() -> bool:
            asyncio._set_running_loop(None)
            return asyncio.run(ask_in_child())

        code = run_child(child)
        return code or (0 if (await limiter.acheck("fan")).remaining == 97 else 2)

    async def ask_in_child() -> bool:
        async with limiter:
            return (await limiter.acheck("fan")).remaining == 98

    async def run() -> int:
        try:
            return await parent()
        finally:
            await limiter.aclose()

    return asyncio.run(run())


def reservation_of_the_parent(url: str) -> int:
    """The child leaves the block with an error, which gave the parent's units back, and settles on top of that."""
    with Limiter("100/day", store=url, deadline_s=5.0) as limiter:
        reservation = limiter.reserve("fan", 10)

        def child() -> bool:
            try:
                with reservation:
                    raise ZeroDivisionError
            except ZeroDivisionError:
                reservation.settle(3)
            return limiter.peek("fan").remaining == 90

        code = run_child(child)
        return code or (0 if reservation.settle(4).remaining == 96 else 2)


def leased_units_of_the_parent(url: str) -> int:
    """A block that was charged once is spent once."""
    rule = Rule("all", Quota.parse("20/366 days", algorithm="fixed_window"), per=(), lease=20)
    with Limiter(rule, store=url, deadline_s=5.0) as limiter:
        limiter.check("anybody")
        return run_child(lambda: not limiter.check("anybody").allowed) or (
            0 if sum(limiter.check("anybody").allowed for _ in range(30)) == 19 else 2
        )


def refusals_that_are_being_written(_url: str) -> int:
    writing = threading.Event()

    class Client:
        def eval(self, *_words: object) -> None:
            writing.set()
            threading.Event().wait(60)

        def close(self) -> None:
            """Nothing to close."""

    refused = RefusedKeys(Client, "frl")
    refused.count("fan", "parent")
    start(refused.flush)
    writing.wait()

    def child() -> bool:
        refused._connect = lambda: Client.__new__(type("Quiet", (), {"eval": lambda *_: None, "close": lambda _: None}))  # type: ignore[misc]
        refused.count("fan", "child")
        refused.flush()
        return True

    return run_child(child)


def many_forks(url: str) -> int:
    """Threads use everything all the time, and children are forked at any moment."""
    plain = Limiter("1000000/second", compiled=False)
    shared = Limiter("1000000/second", store=url, deadline_s=5.0)
    permits, ended = ConcurrencyLimiter(3), threading.Event()
    used.append(shared)

    def use() -> None:
        while not ended.is_set():
            plain.check("fan")
            shared.check("fan")
            with permits.permit("fan", timeout_s=5):
                plain.acquire("other", timeout_s=5)

    def child() -> bool:
        with permits.permit("fan", timeout_s=2):
            return bool(plain.check("fan") and shared.check("fan") and plain.acquire("other", timeout_s=2))

    for _ in range(4):
        start(use)
    codes = {run_child(child) for _ in range(FORKS)}
    ended.set()
    return max(map(abs, codes))


def slots_of_the_parent(_url: str) -> int:
    """An adaptive limit that is full in the parent, where a thread waits, is empty in the child."""
    limit = AdaptiveLimit(controller=AimdLimit(initial=1, least=1, most=1), max_wait_s=30)
    held = limit.try_acquire("critical")
    start(lambda: limit.enter(2))
    while not limit.waiting:  # ends: the thread has started
        threading.Event().wait(0.001)

    def child() -> bool:
        assert held is not None
        held.release()  # the parent's: it frees nothing here
        return limit.in_flight == limit.waiting == 0 and limit.try_acquire("critical") is not None

    code = run_child(child)
    return code or (0 if limit.in_flight == limit.waiting == 1 else 1)


SCENARIOS: dict[str, Callable[[str], int]] = {
    scenario.__name__: scenario
    for scenario in (
        held_lock_of_the_memory_store,
        held_lock_of_permits,
        permits_of_the_parent,
        somebody_waits_in_acquire,
        somebody_waits_in_aacquire,
        connection_of_the_parent,
        connection_of_the_parents_loop,
        reservation_of_the_parent,
        leased_units_of_the_parent,
        refusals_that_are_being_written,
        many_forks,
        slots_of_the_parent,
    )
}

if __name__ == "__main__":
    warnings.simplefilter("always")
    warnings.filterwarnings("ignore", ".*multi-threaded.*fork", DeprecationWarning)
    code = SCENARIOS[sys.argv[1]](sys.argv[2])
    sys.stderr.flush()
    os._exit(abs(code))
