"""Exact under contention: threads, processes, and servers whose clocks differ."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from frontrow.limits import Limiter, Quota, Rule
from frontrow.limits.quota import ALGORITHMS
from frontrow.limits.stores import memory, plain_checks
from frontrow.testing.clock import ManualClock


def hammer(compiled: bool, algorithm: str = "fixed_window", threads: int = 10, calls: int = 200) -> int:
    """How many of `calls` calls from `threads` threads a capacity of 100 lets through."""
    limiter = Limiter(Quota.parse("100/day", algorithm=algorithm), compiled=compiled, clock=ManualClock())
    start = threading.Barrier(threads)

    def run(_: int) -> int:
        start.wait(30)
        return sum(limiter.check("one").allowed for _ in range(calls // threads))

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(run, range(threads)))


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "pure"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_l8_ten_threads_two_hundred_requests_capacity_hundred(algorithm: str, compiled: bool) -> None:
    """L8: exactly 100 of 200 are allowed."""
    assert hammer(compiled, algorithm) == 100


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "pure"])
def test_l8_ten_thousand_requests_of_one_client_in_a_second(compiled: bool) -> None:
    """L8: 10,000 requests/s for one client, exact under 50 threads with a short switch interval."""
    limiter = Limiter(Quota.parse("7000/day"), compiled=compiled, clock=ManualClock())
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(50) as pool:
            rounds = pool.map(lambda _: sum(limiter.check("one").allowed for _ in range(200)), range(50))
            assert sum(rounds) == 7000
    finally:
        sys.setswitchinterval(before)


CHILD = """
import sys
from frontrow.testing.clock import ManualClock
from frontrow.limits import Limiter, Quota, Rule
url, skew_s, lease, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
clock = ManualClock(1_700_000_000_000_000 + skew_s * 1_000_000) if not lease else None
rule = Rule("all", Quota.parse("100/366 days", algorithm="fixed_window" if lease else "sliding_log"), lease=lease or 1)
with Limiter([rule], store=url, clock=clock, deadline_s=10.0) as limiter:
    sys.stdin.readline()
    print(sum(limiter.check("one").allowed for _ in range(calls)))
"""


def storm(url: str, skews_s: list[int], lease: int = 0, calls: int = 25) -> list[int]:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, url, str(skew_s), str(lease), str(calls)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for skew_s in skews_s
    ]
    outputs = [child.communicate("go\n", timeout=60)[0] for child in children]
    return [int(text) for text in outputs]


def test_l10_eight_processes_share_one_limit_exactly(shared_url: str) -> None:
    """L9 L10: 200 calls from 8 processes, capacity 100: exactly 100."""
    assert sum(storm(shared_url, [0] * 8)) == 100


def test_l10_servers_whose_clocks_differ_by_minutes_agree(shared_url: str) -> None:
    """L10: the store's clock decides, so skewed servers share one limit as if their clocks were right."""
    assert sum(storm(shared_url, [-600, 600, 0, 7200], calls=50)) == 100


def test_a_leased_rule_never_admits_more_than_its_quota(shared_url: str) -> None:
    """Global hot rules leased in blocks per process: 8 processes, never over 100; and at most a block each is idle."""
    served = storm(shared_url, [0] * 8, lease=9, calls=60)
    assert sum(served) <= 100
    assert sum(served) > 100 - 8 * 9


def test_a_leased_rule_costs_one_call_a_block(shared_url: str) -> None:
    with Limiter(
        [Rule("all", Quota.parse("1000/366 days", algorithm="fixed_window"), per=(), lease=100)],
        store=shared_url,
        deadline_s=5.0,
    ) as limiter:
        assert all(limiter.check("anybody").allowed for _ in range(1000))
        assert limiter.stats.store_calls == 10
        assert not limiter.check("anybody").allowed


def test_the_contention_test_catches_a_store_without_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check and act in two steps, with another thread in between: more than the capacity is granted."""

    class Open:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    turn = threading.Barrier(10)
    original = plain_checks.JUDGES["fixed_window"]

    def slow(quota: Quota) -> plain_checks.Judge:
        judge = original(quota)

        def wait_and_judge(state: object, now_us: int, cost: int) -> object:
            turn.wait(30)  # everybody has read before anybody writes
            return judge(state, now_us, cost)

        return wait_and_judge  # type: ignore[return-value]

    monkeypatch.setitem(plain_checks.JUDGES, "fixed_window", slow)
    monkeypatch.setattr(memory, "fork_safe_lock", Open)
    assert hammer(compiled=False) > 100
