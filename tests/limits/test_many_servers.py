"""The shared store on every kind of Redis: Cluster, Sentinel, unix socket (L9)."""

import asyncio

import pytest

from frontrow.core.errors import ConfigError
from frontrow.limits import Limiter, Quota, Rule
from tests.limits.doors import T0_US
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


def test_l9_rules_that_cannot_share_a_slot_are_an_error_at_construction(redis_cluster: Cluster) -> None:
    apart = [Rule("user", RULES[0].quota, per=("user",)), Rule("everybody", RULES[0].quota, per=())]
    with pytest.raises(ConfigError, match="everybody and user cannot be decided in one step") as caught:
        Limiter(apart, store=redis_cluster.url)
    assert "share a part" in caught.value.message
    Limiter(apart, store="redis://127.0.0.1:1/0").close()


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
