"""When the store is down (L14): an answer within the deadline by each rule's policy, counted; recovery by one probe."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from frontrow.core.breaker import Breaker
from frontrow.core.errors import ConfigError
from frontrow.limits import ConcurrencyLimiter, CostTooLarge, InvalidCost, Limiter, Quota, Rule
from frontrow.testing.clock import ManualClock
from tests.support.servers import Valkey

QUOTA = Quota.parse("3/minute", algorithm="token_bucket")


def until(true: Callable[[], bool], tries: int = 100_000) -> None:
    """Repeat a question until it is answered yes, a bounded number of times."""
    assert any(true() for _ in range(tries))


@pytest.mark.parametrize("policy", ["open", "closed", "local"])
def test_l14_a_dead_store_is_answered_by_policy_and_counted(own_valkey: Valkey, policy: str) -> None:
    with Limiter(QUOTA, store=own_valkey.url, on_store_down=policy) as limiter:
        own_valkey.kill()
        answers = [limiter.check("fan") for _ in range(10)]
    expected = {"open": [True] * 10, "closed": [False] * 10, "local": [True] * 3 + [False] * 7}
    assert [answer.allowed for answer in answers] == expected[policy]
    assert {answer.source for answer in answers} == {policy}
    assert limiter.stats.degraded[policy] == 10
    assert 1 <= limiter.stats.store_errors <= 3, "the breaker spared the rest"
    if policy == "closed":
        assert answers[-1].retry_after_s > 0


def test_l14_the_policy_is_per_rule(own_valkey: Valkey) -> None:
    rules = [
        Rule("soft", Quota.parse("1/minute"), on_store_down="open"),
        Rule("counted", Quota.parse("2/minute"), on_store_down="local"),
    ]
    with Limiter(rules, store=own_valkey.url) as limiter:
        own_valkey.kill()
        assert [limiter.check("fan").allowed for _ in range(4)] == [True, True, False, False]
    with Limiter([*rules, Rule("hard", QUOTA, on_store_down="closed")], store=own_valkey.url) as limiter:
        refusal = limiter.check("fan")
    assert (refusal.allowed, refusal.rule, refusal.source) == (False, "hard", "closed")


async def test_l14_a_stalled_store_costs_at_most_the_deadline(own_valkey: Valkey) -> None:
    """SIGSTOP: blocking and asyncio callers both get an answer; after three failures nobody asks any more."""
    clock = ManualClock()  # stands still, so an open breaker lets nobody try
    async with Limiter(QUOTA, store=own_valkey.url, on_store_down="open", clock=clock) as limiter:
        await limiter.acheck("warm")
        own_valkey.pause()
        try:
            for _ in range(4):
                answers = await asyncio.gather(*(limiter.acheck(f"fan{n}") for n in range(100)))
                assert {answer.source for answer in answers} == {"open"}
            errors = limiter.stats.store_errors
            assert errors >= 3, "each round was one call that failed"
            assert limiter.check("fan").source == "open"
            assert (await limiter.acheck("fan")).source == "open"
            assert limiter.stats.store_errors == errors
        finally:
            own_valkey.resume()


def test_l14_it_recovers_by_itself_when_the_store_is_back(own_valkey: Valkey) -> None:
    clock = ManualClock()
    with Limiter(QUOTA, store=own_valkey.url, on_store_down="open", clock=clock, deadline_s=5.0) as limiter:
        own_valkey.kill()
        for _ in range(5):
            assert limiter.check("fan").source == "open"
        own_valkey.start()
        assert limiter.check("fan").source == "open", "not before the pause is over"
        clock.advance(1)
        assert limiter.check("fan").source == "store"
        assert [limiter.check(f"fan{n}").source for n in range(20)] == ["store"] * 20


def test_recovery_is_one_probe_not_a_stampede() -> None:
    clock = ManualClock()
    breaker = Breaker(clock, failures=3, pause_s=1.0, jitter=lambda: 0.0)
    for _ in range(3):
        assert breaker.permits()
        breaker.failed()
    assert not breaker.permits()
    clock.advance(us=999_999)
    assert not breaker.permits()
    clock.advance(us=1)
    start = threading.Barrier(60)
    permitted: list[bool] = []

    def ask() -> None:
        start.wait(30)
        permitted.append(breaker.permits())

    threads = [threading.Thread(target=ask) for _ in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(permitted) == 1
    breaker.succeeded()
    assert breaker.permits()
    assert not breaker.is_open


def test_one_failure_between_successes_opens_nothing() -> None:
    breaker = Breaker(ManualClock(), failures=3)
    for _ in range(10):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.permits()


async def test_a_cancelled_caller_never_gets_or_gives_anothers_answer(redis_url: str) -> None:
    """The class of redis-py's CVE-2023-28858: cancel many in flight; everybody else's answer is their own."""
    async with Limiter(Quota.parse("1/day", algorithm="token_bucket"), store=redis_url, deadline_s=5.0) as limiter:
        await limiter.acheck("used")
        for round_ in range(20):
            tasks = [asyncio.create_task(limiter.acheck("used" if n % 2 else f"new{round_}.{n}")) for n in range(60)]
            await asyncio.sleep(0)
            for task in tasks[::7]:
                task.cancel()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            for n, answer in enumerate(answers):
                if not isinstance(answer, BaseException):
                    assert answer.allowed == (n % 2 == 0)


def test_a_known_refusal_costs_no_round_trip(redis_url: str) -> None:
    """Exact local denial cache: refused until the promised moment, asked again at it; a smaller cost is asked."""
    clock = ManualClock()
    with Limiter(QUOTA, store=redis_url, clock=clock, deadline_s=5.0) as limiter:
        assert limiter.check("fan", cost=2).allowed
        refusal = limiter.check("fan", cost=2)
        calls = limiter.stats.store_calls
        for _ in range(1000):
            assert not limiter.check("fan", cost=2).allowed
        assert limiter.stats.store_calls == calls
        assert limiter.stats.denied_locally == 1000
        assert limiter.check("fan", cost=1).allowed, "a smaller cost may fit and is asked"
        clock.advance(0.9)
        assert refusal.retry_after_us - limiter.check("fan", cost=2).retry_after_us == 900_000
        assert limiter.stats.store_calls == calls + 1
        limiter.refund("fan", cost=3)
        assert limiter.check("fan", cost=2).allowed, "a refund forgets the refusal"


def test_a_larger_cost_is_told_its_own_wait(redis_url: str) -> None:
    with Limiter(QUOTA, store=redis_url, deadline_s=5.0) as limiter:
        limiter.check("fan", cost=3)
        one = limiter.check("fan").retry_after_s
        three = limiter.check("fan", cost=3).retry_after_s
    assert one <= 20 < 55 < three <= 60


@pytest.mark.parametrize(
    ("cost", "error"), [(0, InvalidCost), (True, InvalidCost), (1.0, InvalidCost), (4, CostTooLarge)]
)
def test_a_known_refusal_hides_no_bad_cost(redis_url: str, cost: int, error: type[Exception]) -> None:
    with Limiter(QUOTA, store=redis_url, deadline_s=5.0) as limiter:
        limiter.check("fan", cost=3)
        assert not limiter.check("fan").allowed
        with pytest.raises(error):
            limiter.check("fan", cost=cost)


def test_a_refund_by_another_process_is_seen_after_a_second(redis_url: str) -> None:
    clock = ManualClock()
    with (
        Limiter("3/hour", store=redis_url, clock=clock, deadline_s=5.0) as here,
        Limiter("3/hour", store=redis_url, deadline_s=5.0) as there,
    ):
        here.check("fan", cost=3)
        assert not here.check("fan").allowed
        there.refund("fan", cost=3)
        clock.advance(us=999_000)
        assert not here.check("fan").allowed, "known to be refused, for less than a second"
        clock.advance(us=1_000)
        assert here.check("fan").allowed


@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_log", "sliding_counter", "token_bucket", "leaky_queue"])
def test_l9_every_key_expires_by_itself_after_every_operation(redis_url: str, algorithm: str) -> None:
    import redis

    rules = [Rule("a", Quota.parse("5/10s", algorithm=algorithm)), Rule("b", Quota.parse("2/hour"))]
    with Limiter(rules, store=redis_url, deadline_s=5.0) as limiter, redis.Redis.from_url(redis_url) as client:
        for ask in (limiter.check, limiter.check, limiter.check, limiter.peek, limiter.refund, limiter.check):
            ask("fan", cost=1)
            keys = client.keys("*")
            assert keys
            assert all(0 < client.pttl(key) <= 2 * 3600_000 + 1000 for key in keys)


def test_l9_one_decision_over_three_rules_is_one_round_trip(redis_url: str) -> None:
    import redis

    rules = [Rule(f"r{n}", Quota.parse(f"{n}00/hour")) for n in (1, 2, 3)]
    with Limiter(rules, store=redis_url, deadline_s=5.0) as limiter, redis.Redis.from_url(redis_url) as client:
        limiter.check("warm")
        before = client.info("commandstats")["cmdstat_evalsha"]["calls"]
        limiter.check("fan")
        limiter.peek("fan")
        limiter.refund("fan")
        assert client.info("commandstats")["cmdstat_evalsha"]["calls"] == before + 3
        assert limiter.stats.store_calls == 4


@pytest.mark.parametrize("limiter", [Limiter, ConcurrencyLimiter])
def test_milliseconds_given_for_seconds_are_named(limiter: Any) -> None:
    with pytest.raises(ConfigError, match=r"from 0\.001 to 10 seconds, not 25; 25 milliseconds are deadline_s=0\.025"):
        limiter(1 if limiter is ConcurrencyLimiter else "1/day", store="memory://", deadline_s=25)
