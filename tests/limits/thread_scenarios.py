"""Threads that check, wait and make limiters at the same moment, for any Python: `python thread_scenarios.py`.

It needs the limiter alone. It prints the version, whether the interpreter lock is on, and the store's class.
"""

import sys
import threading
from collections.abc import Callable

THREADS, CHECKS = 8, 400
QUOTAS = (
    "1000/day fixed_window",
    "1000/day sliding_counter",
    "1000/day sliding_log",
    "1000/day token_bucket",
    "1000/day leaky_bucket",
)


def in_threads(act: Callable[[int], int]) -> list[int]:
    """What `act` returned in each of the threads, which begin together."""
    barrier, found, wrong = threading.Barrier(THREADS), [], []

    def run(number: int) -> None:
        barrier.wait()
        try:
            found.append(act(number))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    return found


def main() -> None:
    from frontrow.limits import Limiter, Rule
    from frontrow.limits.http.asgi import RateLimitMiddleware
    from frontrow.limits.testing import limits_off

    sys.setswitchinterval(1e-5)
    compiled = "" if is_free_threaded() else "?compiled=no"
    for quota in QUOTAS:
        limiter = Limiter(quota, store=f"memory://{compiled}")
        told = in_threads(lambda _, limiter=limiter: sum(limiter.check("ann").allowed for _ in range(CHECKS)))
        assert 1000 <= sum(told) <= 1001, (quota, told)  # a bucket gains a unit every 86 s
        assert limiter.stats.rules["default"].refused == THREADS * CHECKS - sum(told)
    both = Limiter([Rule("one", "500/day fixed_window"), Rule("all", "700/day fixed_window", per=())])
    told = in_threads(lambda number: sum(both.check(f"user:{number % 2}").allowed for _ in range(CHECKS)))
    assert sum(told) == 700, told
    few = Limiter("100000/day fixed_window", store=f"memory://{compiled or '?'}&max_keys=50")
    in_threads(lambda number: sum(few.check(f"{number}:{at}").allowed for at in range(CHECKS)))
    in_threads(lambda _: sum(limiter.refund("ann").allowed for _ in range(50)))
    in_threads(lambda _: len([Limiter("1/day") for _ in range(100)]))
    middleware = RateLimitMiddleware(None, "1/day")  # type: ignore[arg-type]
    in_threads(lambda number: len([middleware.limits.add_route("GET", f"/{number}/{at}") for at in range(700)]))
    with limits_off():
        assert limiter.check("ann").allowed
    print(sys.version.split()[0], "free" if is_free_threaded() else "locked", type(few._store).__name__)


def is_free_threaded() -> bool:
    """Whether threads run at the same time here, after everything was imported."""
    enabled: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    return not enabled()


if __name__ == "__main__":
    main()
