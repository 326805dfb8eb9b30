"""One quota over many servers, decided without waiting: how many are admitted, how often the store is asked, and what
happens without it."""

import pytest

from frontrow.core.clock import ManualClock
from frontrow.limits import InvalidCost, LeasedLimiter, Quota, Rule
from frontrow.limits.leased_limiter import lease_of
from tests.support.servers import Valkey

QUOTA = Quota.parse("60/day")
RULE = Rule("person", QUOTA)


async def settled(*servers: LeasedLimiter) -> None:
    """Until everything owed is charged."""
    for server in servers:
        await server.settle()


async def test_servers_together_admit_the_quota_and_not_each_its_own(redis_url: str) -> None:
    """Two servers that count by themselves would admit 120."""
    servers = [LeasedLimiter(RULE, store=redis_url, deadline_s=5.0) for _ in range(2)]
    admitted = 0
    for turn in range(200):
        admitted += servers[turn % 2].check("fan").allowed
        await settled(*servers)
    assert 60 <= admitted <= 61, "asked one after the other, only what was decided at the same moment is too much"
    for server in servers:
        await server.aclose()


@pytest.mark.parametrize("servers_asked", [1, 3])
async def test_a_flood_gets_at_most_the_quota_and_a_lease_per_server(redis_url: str, servers_asked: int) -> None:
    servers = [LeasedLimiter(RULE, store=redis_url, deadline_s=5.0) for _ in range(servers_asked)]
    admitted = 0
    for _ in range(40):
        admitted += sum(server.check("fan").allowed for server in servers for _ in range(50))
        await settled(*servers)
    assert 60 <= admitted <= 60 + servers_asked * lease_of(QUOTA)
    for server in servers:
        await server.aclose()


async def test_who_asks_seldom_costs_no_call_and_a_refusal_is_remembered(redis_url: str) -> None:
    server = LeasedLimiter(RULE, store=redis_url, deadline_s=5.0)
    for fan in range(500):
        assert server.check(f"fan{fan}").remaining == 59
        assert server.check(f"fan{fan}").remaining == 58
    assert server.shared.stats.store_calls == 0
    while server.check("busy").allowed:
        await settled(server)
    calls = server.shared.stats.store_calls
    assert not any(server.check("busy").allowed for _ in range(500))
    await settled(server)
    assert server.shared.stats.store_calls == calls
    await server.aclose()


async def test_a_lone_server_admits_just_its_quota_and_tells_what_is_left(redis_url: str) -> None:
    server = LeasedLimiter(Rule("person", Quota.parse("20/day")), store=redis_url, deadline_s=5.0)
    left = []
    for _ in range(20):
        decision = server.check("fan")
        await settled(server)
        assert (decision.allowed, decision.limit) == (True, 20)
        left.append(decision.remaining)
    assert left == list(range(19, -1, -1))
    refusal = server.check("fan")
    assert not refusal.allowed
    assert 0 < refusal.retry_after_s <= 2 * 86_400
    await server.aclose()


async def test_without_the_store_each_process_keeps_to_the_quota_by_itself(own_valkey: Valkey) -> None:
    own_valkey.kill()
    server = LeasedLimiter(RULE, store=own_valkey.url)
    admitted = 0
    for _ in range(150):
        admitted += server.check("fan").allowed
        await settled(server)
    assert 60 <= admitted <= 60 + server.lease
    await server.aclose()


async def test_a_store_that_stands_still_delays_nobody_and_admits_no_flood(own_valkey: Valkey) -> None:
    server = LeasedLimiter(RULE, store=own_valkey.url, deadline_s=1.0)
    await server.shared.apeek("warm")
    own_valkey.pause()
    try:
        admitted = sum(server.check("fan").allowed for _ in range(1000))
        assert admitted == server.lease
        refusal = server.check("fan")
        assert 0 < refusal.retry_after_s < 1
    finally:
        own_valkey.resume()
    await settled(server)
    assert server.check("fan").allowed
    await server.aclose()


async def test_all_is_free_again_when_the_time_is_over(redis_url: str) -> None:
    """By the server's own clock: the busy key is forgotten after the life of the quota."""
    clock = ManualClock()
    server = LeasedLimiter(Rule("person", Quota.parse("20/minute")), store=redis_url, clock=clock, deadline_s=5.0)
    for _ in range(15):
        assert server.check("fan").allowed
        await settled(server)
    assert len(server._busy) == 1
    clock.advance(121)
    for number in range(20):
        server.check(f"other{number % 2}")
        await settled(server)
    assert "fan" not in server._busy
    await server.aclose()


def test_a_lease_is_a_part_of_the_quota() -> None:
    assert [lease_of(Quota.parse(text)) for text in ("5/s", "10/s", "50/s", "60/s", "1000/s")] == [5, 10, 10, 12, 200]
    with pytest.raises(InvalidCost):
        LeasedLimiter(RULE, store="memory://", lease=0)
