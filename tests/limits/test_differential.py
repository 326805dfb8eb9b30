"""The Python functions are the specification; the compiled kernel, the Lua script and the SQL function mirror them."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontrow.limits import Limiter, Quota, Rule
from frontrow.limits.quota import BUCKETS, DAY_US, EXACT
from frontrow.limits.stats import Stats
from frontrow.limits.stores.from_url import CompiledStore
from frontrow.limits.stores.memory import MemoryStore
from frontrow.limits.stores.protocol import CHARGE, CHECK, PEEK, REFUND, QuotaSlot, StoreRequest
from frontrow.limits.stores.redis import RedisStore
from frontrow.testing.clock import ManualClock
from tests.limits.backends import T0_US
from tests.limits.shared_stores import empty_store, open_shared
from tests.limits.strategies import operations, quotas

IN_MEMORY = [MemoryStore, *([CompiledStore] if CompiledStore else [])]  # whether it must be here: test_memory
months = st.builds(lambda limit: Quota.parse(f"{limit}/month"), st.integers(1, 12))


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with asyncio.Runner() as runner:
        yield runner.get_loop()


@settings(max_examples=300)
@given(
    rules=st.lists(st.tuples(quotas | months, st.booleans()), min_size=1, max_size=3),
    history=st.lists(operations, max_size=40),
)
def test_specification_kernel_script_and_sql_agree_on_random_histories(
    every_shared_url: str, rules: list[tuple[Quota, bool]], history: list[tuple[int, int, int, int]]
) -> None:
    """L9 L10 L15: same results everywhere, also when the clock jumps; checks, peeks, refunds; several rules."""
    slots = [QuotaSlot(Rule(f"r{at}", quota, shadow=shadow), "", quota) for at, (quota, shadow) in enumerate(rules)]
    clock = ManualClock()
    shared = open_shared(every_shared_url, slots)
    empty_store(every_shared_url)
    for_ever_us = 1 << 60  # what is forgotten when is another question than what is answered
    stores: list[Any] = [kind(slots, clock, 1000, for_ever_us) for kind in IN_MEMORY]
    stores.append(shared)
    now_us = T0_US
    try:
        for op, cost, step_us, who in history:
            now_us += step_us
            capacities = [quota.capacity for quota, _ in rules]
            cost = min(3 * cost, 2 * max(capacities)) if op == CHARGE else min(cost, *capacities)
            request = StoreRequest(tuple(range(len(slots))), (f"fan{who}",) * len(slots), cost, now_us, op)
            specified, *mirrors = [store.decide(request) for store in stores]
            assert all(mirror == specified for mirror in mirrors)
    finally:
        shared.close()


CENTURIES = [
    Quota(limit, 366 * DAY_US, algorithm, burst)
    for algorithm in BUCKETS
    for limit, burst in ((1, 142), (1, 143), (1, 284), (3, 426), (7, 1000))
]


@settings(max_examples=200)
@given(
    quota=st.sampled_from(CENTURIES),
    history=st.lists(
        st.tuples(
            st.sampled_from([CHECK, CHECK, PEEK, REFUND, CHARGE]),
            st.integers(1, 4) | st.just(1000),
            st.integers(0, 3) | st.integers(0, 40 * 366 * DAY_US) | st.integers(1, 9).map(lambda n: n * DAY_US + n),
        ),
        max_size=20,
    ),
)
def test_buckets_that_drain_for_centuries_agree_to_the_microsecond(
    every_shared_url: str, quota: Quota, history: list[tuple[int, int, int]]
) -> None:
    """Redis was 1 µs late: a debt and a cost together exceeded what a double holds exactly."""
    slot = QuotaSlot(Rule("slow", quota), "", quota)
    shared = open_shared(every_shared_url, [slot])
    empty_store(every_shared_url)
    stores: list[Any] = [kind([slot], ManualClock(), 1000, 1 << 60) for kind in IN_MEMORY]
    now_us = T0_US
    try:
        for op, cost, step_us in history:
            now_us = min(now_us + step_us, EXACT - 1)
            request = StoreRequest((0,), ("fan",), min(cost, quota.capacity), now_us, op)
            specified, *mirrors = [store.decide(request) for store in (*stores, shared)]
            assert all(mirror == specified for mirror in mirrors)
    finally:
        shared.close()


def test_a_batch_decides_as_if_one_after_the_other(shared_redis_url: str, loop: asyncio.AbstractEventLoop) -> None:
    """The asyncio path sends many requests in one script call; a hot key inside it is exact."""
    rules = [Rule("a", Quota.parse("57/minute")), Rule("b", Quota.parse("1000/hour", algorithm="token_bucket"))]

    async def storm() -> list[bool]:
        async with Limiter(rules, store=shared_redis_url, deadline_s=5.0) as limiter:
            results = await asyncio.gather(*(limiter.acheck("one", now_us=T0_US + n) for n in range(500)))
            assert limiter.stats.store_calls <= 12
            return [result.allowed for result in results]

    assert loop.run_until_complete(storm()) == [True] * 57 + [False] * 443


def test_one_batch_holds_requests_of_one_and_of_several_rules(
    shared_redis_url: str, loop: asyncio.AbstractEventLoop
) -> None:
    """Routes of one application have different numbers of rules; their requests share a call all the same."""
    quota = Quota.parse("20/minute")
    slots = [QuotaSlot(Rule(name, quota), "", quota) for name in ("a", "b")]

    async def storm() -> list[tuple[str, int]]:
        store = RedisStore(shared_redis_url, slots, Stats([]), deadline_s=5.0, prefix="widths")
        requests = [StoreRequest((0, 1), ("one", "one")), StoreRequest((1,), ("one",)), StoreRequest((0,), ("one",))]
        results = await asyncio.gather(*(store.adecide(request) for request in requests * 3))
        await store.aclose()
        return [(result.decision.rule, result.decision.remaining) for result in results]

    expected = [("a", 19), ("b", 18), ("a", 18), ("a", 17), ("b", 16), ("a", 16), ("a", 15), ("b", 14), ("a", 14)]
    assert loop.run_until_complete(storm()) == expected
