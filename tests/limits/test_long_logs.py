"""sliding_log in Redis, when it is long: exact over thousands of steps, few reads per check, and bounded memory."""

import random

import redis

from frontrow.limits import Quota, Rule
from frontrow.limits.algorithms import sliding_log
from frontrow.limits.stats import Stats
from frontrow.limits.stores.memory import MemoryStore
from frontrow.limits.stores.protocol import CHECK, PEEK, REFUND, QuotaSlot, StoreRequest
from frontrow.limits.stores.redis import RedisStore
from tests.limits.backends import T0_US, S


def open_log(url: str, quota: Quota) -> RedisStore:
    return RedisStore(url, [QuotaSlot(Rule("log", quota), "", quota)], Stats([]), deadline_s=5.0)


def ask(store: RedisStore | MemoryStore, cost: int, now_us: int, op: int = CHECK) -> object:
    return store.decide(StoreRequest((0,), ("fan",), cost, now_us, op)).decision


def test_a_log_that_drops_old_records_stays_exact_and_small(redis_url: str) -> None:
    """1,500 steps through 100 windows: checks of any cost, peeks, refunds, a clock that is set back."""
    quota, rng, now_us = Quota(150, 7 * S, "sliding_log"), random.Random(13), T0_US
    store = open_log(redis_url, quota)
    specified = MemoryStore([QuotaSlot(Rule("log", quota), "", quota)], lambda: now_us, 1000, 1 << 60)
    longest = 0
    with redis.Redis.from_url(redis_url) as client:
        for step in range(1500):
            now_us += rng.choice((0, 1, S // 20, S // 20, S // 10, S // 5)) if step % 300 else rng.choice((-S, -60 * S))
            request = (rng.choice((1, 1, 1, 2, 9)), now_us, rng.choice((CHECK,) * 8 + (PEEK, REFUND)))
            assert ask(store, *request) == ask(specified, *request)
            longest = max(longest, client.strlen("frl|log|log:7s|fan"))
    store.close()
    assert longest <= 56 + 16 * (2 * quota.limit + 2), "twice what the window can hold"


def test_every_charge_keeps_the_log_alive(redis_url: str) -> None:
    """Otherwise a log that is used all the time ends with the life of its first charge, and everybody starts anew."""
    store, key = open_log(redis_url, Quota(9, 60 * S, "sliding_log")), "frl|log|log:60s|fan"
    with redis.Redis.from_url(redis_url) as client:
        for now_us in (T0_US, T0_US + 1, T0_US + 1):  # a new log, then the two ways of adding to it
            ask(store, 1, now_us)
            assert client.pttl(key) > 59_000
            client.pexpire(key, 1_000)
    store.close()


def test_a_check_reads_few_records_of_a_long_log(redis_url: str) -> None:
    held = 4096
    quota = Quota(held, 3600 * S, "sliding_log")
    store = open_log(redis_url, quota)
    end_us = T0_US + held
    with redis.Redis.from_url(redis_url) as client:
        pipe = client.pipeline(transaction=False)
        for n in range(held):
            script, arguments = store._script.call([StoreRequest((0,), ("fan",), 1, T0_US + n)])
            pipe.evalsha(client.script_load(script.source) if n == 0 else script.sha, *arguments)
        pipe.execute()

        def commands(cost: int, now_us: int) -> int:
            client.config_resetstat()
            decision = ask(store, cost, now_us)
            times = range(T0_US, end_us)
            verdict, _ = sliding_log(quota, times, now_us, cost)
            assert decision[2:6] == (held, *verdict[1:4])  # type: ignore[index]
            told = client.info("commandstats")
            return sum(each["calls"] for name, each in told.items() if "range" in name or "get" in name)

        assert commands(1, end_us) <= 2, "a refusal knows the oldest record"
        assert commands(held // 2, end_us) <= 16, "a large cost is a search"
        half_us = T0_US + quota.period_us + held // 2
        assert commands(held // 4, half_us) <= 32, "half of the log has left"
    store.close()


def test_refusals_of_a_log_of_any_costs_are_exact_and_read_few_records(redis_url: str) -> None:
    loose, tight = Quota(10_000, 3600 * S, "sliding_log"), Quota(300, 3600 * S, "sliding_log")
    rng, now_us, times = random.Random(5), T0_US, []
    store, refusing = open_log(redis_url, loose), open_log(redis_url, tight)
    for _ in range(700):
        now_us += rng.randrange(1, S)
        cost = rng.choice((1, 1, 2, 5))
        ask(store, cost, now_us)
        times += [now_us] * cost
    with redis.Redis.from_url(redis_url) as client:
        for cost in (1, 2, 3, 10, 57, 100, 211, 299, 300):
            client.config_resetstat()
            verdict, _ = sliding_log(tight, times, now_us, cost)
            assert not verdict.allowed
            assert ask(refusing, cost, now_us)[3:6] == (0, *verdict[2:4])  # type: ignore[index]
            assert client.info("commandstats")["cmdstat_getrange"]["calls"] <= 6
    store.close()
    refusing.close()
