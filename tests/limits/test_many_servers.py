"""The shared store on every kind of Redis: Cluster, Sentinel, unix socket (L9)."""

import asyncio
import contextlib
import uuid
from collections import Counter
from typing import Any

import pytest

from frontrow.limits import Limiter, Quota, Rule
from frontrow.limits.quota import ALGORITHMS
from frontrow.limits.stats import Stats
from frontrow.limits.stores.protocol import RESERVE, TAKE_BACK, QuotaSlot, StoreRequest
from frontrow.limits.stores.redis import RedisStore
from tests.limits.backends import T0_US
from tests.limits.cancellation import cancel_at_every_await
from tests.support.servers import Cluster, Sentinel, Valkey

RULES = [
    Rule("user", Quota.parse("5/minute", algorithm="token_bucket"), per=("user",)),
    Rule("endpoint", Quota.parse("3/minute"), per=("user", "endpoint")),
]


async def test_l9_several_rules_are_one_step_on_a_cluster(redis_cluster: Cluster) -> None:
    """L9: works on Redis Cluster: rules that share a part of the key share a slot, also when many keys are asked."""
    async with Limiter(RULES, store=redis_cluster.url, deadline_s=10.0) as limiter:
        answers = await asyncio.gather(
            *(
                limiter.acheck({"user": f"u{n % 40}", "endpoint": "holds" if n % 80 < 40 else "pay"}, now_us=T0_US)
                for n in range(400)
            )
        )
        assert sum(answer.allowed for answer in answers) == 40 * 5
        blocking = limiter.check({"user": "u0", "endpoint": "pay"}, now_us=T0_US)
        assert (blocking.allowed, blocking.rule) == (False, "user")


APART = [
    Rule("user", Quota.parse("5/day"), per=("user",)),
    Rule("endpoint", Quota.parse("500/day", algorithm="sliding_log"), per=("endpoint",)),
    Rule("watched", Quota.parse("1/day"), per=("endpoint",), shadow=True),
    Rule("everybody", Quota.parse("60/day"), per=()),
]


@pytest.mark.parametrize("now_us", [None, T0_US], ids=["server's clock", "own time"])
async def test_l9_rules_in_different_slots_never_admit_more_than_each_allows(
    redis_cluster: Cluster, now_us: int | None
) -> None:
    """40 users × 10 requests at once: all 60 are admitted, nobody over 5, and what was not admitted is given back."""
    prefix = f"apart{now_us}"
    async with Limiter(APART, store=redis_cluster.url, deadline_s=10.0, prefix=prefix) as limiter:
        keys = [{"user": f"u{n % 40}", "endpoint": "holds"} for n in range(400)]
        answers = await asyncio.gather(*(limiter.acheck(key, now_us=now_us) for key in keys))
        admitted = Counter(key["user"] for key, answer in zip(keys, answers, strict=True) if answer.allowed)
        assert sum(admitted.values()) == 60
        assert max(admitted.values()) <= 5
        refused = limiter.check(keys[0], now_us=now_us)
        assert (refused.allowed, refused.rule) in ((False, "everybody"), (False, "user"))
        assert limiter.peek({"user": "new", "endpoint": "holds"}, now_us=now_us).rule == "everybody"
        assert limiter.stats.rules["watched"].shadow_refused > 0
        freed = limiter.refund(keys[0], now_us=now_us)
        assert (freed.allowed, freed.remaining) == (True, 1)
    for rule, key, used in [(APART[0], {"user": user}, admitted[user]) for user in ("u1", "u2")] + [
        (APART[1], {"endpoint": "holds"}, 59)
    ]:
        async with Limiter([rule], store=redis_cluster.url, deadline_s=10.0, prefix=prefix) as alone:
            left = await alone.apeek(key, now_us=now_us)
            assert left.remaining == rule.quota.limit - used


async def test_a_check_over_hash_slots_that_is_cancelled_charges_all_rules_or_none(redis_cluster: Cluster) -> None:
    """The first slot was charged and the others were not."""
    prefix = f"cut{uuid.uuid4().hex[:8]}"
    options: Any = {"store": redis_cluster.url, "deadline_s": 10.0, "prefix": prefix}
    key = {"user": "42", "endpoint": "holds"}
    async with Limiter(APART, **options) as limiter, contextlib.AsyncExitStack() as stack:
        alone = [await stack.enter_async_context(Limiter([rule], **options)) for rule in APART]
        async for k in cancel_at_every_await(lambda: limiter.acheck(key)):
            used = {rule.quota.capacity - one.peek(key).remaining for rule, one in zip(APART, alone, strict=True)}
            assert used in ({0}, {1}), f"{used} after a cancellation at await {k}"
            for one in alone:
                one.reset(key)


def test_l9_the_first_example_of_the_docs_works_on_a_cluster(redis_cluster: Cluster) -> None:
    rules = [
        Rule("burst", Quota.parse("10/second", algorithm="token_bucket", burst=20), per=("user",)),
        Rule("endpoint", Quota.parse("500/second"), per=("endpoint",)),
        Rule("everybody", Quota.parse("100000/minute"), per=()),
    ]
    with Limiter(rules, store=redis_cluster.url, deadline_s=10.0) as limiter:
        decision = limiter.check({"user": "42", "endpoint": "POST /holds"})
        assert (decision.allowed, decision.rule, decision.source) == (True, "burst", "store")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_taken_back_is_what_still_counts(redis_url: str, algorithm: str) -> None:
    """Units reserved in one hash slot and refused in another come back, except those that time has given back."""
    quota = Quota.parse("10/day", algorithm=algorithm)
    store = RedisStore(redis_url, [QuotaSlot(Rule("api", quota), "", quota)], Stats([]), deadline_s=5.0)

    def ask(op: int, cost: int = 1, now_us: int | None = None) -> Any:
        return store.decide(StoreRequest((0,), ("fan",), cost, now_us, op))

    def left_after_taking_back(cost: int, charged_us: int) -> int:
        decision = ask(TAKE_BACK, cost, charged_us).decision
        if not quota.is_bucket:
            return int(decision.remaining)
        return 10 - round(10 * decision.reset_after_us / quota.period_us)  # what has drained meanwhile stays away

    first = ask(RESERVE, 3)
    second = ask(RESERVE, 4)
    assert (first.result.decision.remaining, second.result.decision.remaining) == (7, 3)
    assert left_after_taking_back(3, first.charged_us) == 6, "the later ones stay"
    assert left_after_taking_back(4, second.charged_us - 2 * quota.life_us) == 6, "long gone"
    assert left_after_taking_back(1, second.charged_us) == 7
    assert left_after_taking_back(9, second.charged_us) == 10, "never more than untouched"
    store.close()


async def test_l9_behind_a_sentinel_and_over_a_unix_socket(own_valkey: Valkey, redis_sentinel: Sentinel) -> None:
    for url in (redis_sentinel.url, own_valkey.unix_url):
        async with Limiter(Quota.parse("3/366 days"), store=url, deadline_s=10.0, prefix="t") as limiter:
            first = [limiter.check(url).allowed, (await limiter.acheck(url)).allowed]
            later = [limiter.check(url).allowed, (await limiter.acheck(url)).allowed]
        assert (first, later) == ([True, True], [True, False])


def test_a_script_the_server_has_forgotten_is_sent_again(own_valkey: Valkey) -> None:
    with Limiter(Quota.parse("5/day"), store=own_valkey.url, deadline_s=10.0) as limiter:
        for _ in range(3):
            own_valkey.command("SCRIPT", "FLUSH")
            assert limiter.check("fan").source == "store"
