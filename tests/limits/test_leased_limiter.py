"""One quota over many servers, decided without waiting: how many are admitted, how often the store is asked, and what
happens without it."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from frontrow.core.clock import US_PER_S
from frontrow.limits import InvalidCost, LeasedLimiter, Limiter, Quota, Rule
from frontrow.limits.lease_size import lease_of
from frontrow.limits.leased_limiter import FREE_AGAIN_PERIODS
from frontrow.limits.stores.from_url import open_memory_store
from frontrow.limits.stores.protocol import QuotaSlot, Store, StoreRequest, StoreResult
from frontrow.testing.clock import ManualClock
from tests.limits.cancellation import SlowStore
from tests.support.servers import Valkey

QUOTA = Quota.parse("60/day")
RULE = Rule("person", QUOTA)


async def settled(*servers: LeasedLimiter) -> None:
    """Until everything owed is charged."""
    for server in servers:
        await server.settle()


class StoreByClock:
    """A store that many servers share and that decides by the test's clock."""

    tag_parts = None

    def __init__(self, url: str, rule: Rule, clock: ManualClock) -> None:
        self._limiter = Limiter(rule, store=url, clock=clock, deadline_s=5.0)
        self._store: Store = self._limiter._store
        self._clock = clock

    def decide(self, request: StoreRequest) -> StoreResult:
        return self._store.decide(request._replace(now_us=self._clock()))

    def adecide(self, request: StoreRequest) -> "Awaitable[StoreResult]":
        return self._store.adecide(request._replace(now_us=self._clock()))

    async def aclose(self) -> None:
        await self._limiter.aclose()


@pytest.fixture(params=["memory", "valkey"])
def shared_url(request: pytest.FixtureRequest) -> str:
    return "memory://" if request.param == "memory" else str(request.getfixturevalue("redis_url"))


async def ask_for(
    seconds: float, servers: list[LeasedLimiter], clock: ManualClock, per_s: int, floods: bool = False
) -> int:
    """How many requests of one address these servers admit when it asks them in turn, or all at once, `per_s` times."""
    admitted = 0
    for turn in range(round(seconds * per_s)):
        asked = servers if floods else [servers[turn % len(servers)]]
        admitted += sum(server.check("address").allowed for server in asked)
        clock.advance(us=US_PER_S // per_s)
        if turn % 3 == 0:  # replies take longer than the next request
            await settled(*servers)
    return admitted


@pytest.mark.parametrize(("servers_asked", "per_s"), [(1, 200), (2, 30), (2, 200), (10, 40), (10, 200), (10, 500)])
@pytest.mark.parametrize("text", ["20/second", "20/second fixed_window", "20/second token_bucket"])
async def test_in_the_long_run_any_number_of_servers_admit_the_quota(servers_asked: int, per_s: int, text: str) -> None:
    await check_long_run("memory://", servers_asked, per_s, text)


async def test_in_the_long_run_ten_servers_on_valkey_admit_the_quota(redis_url: str) -> None:
    await check_long_run(redis_url, 10, 200, "20/second")


async def check_long_run(url: str, servers_asked: int, per_s: int, text: str) -> None:
    """Two servers asked 200 times per second in turn let in 71 to 92 within two seconds, where 60 are allowed, and went
    on like that: a server admitted the first request of each opening by itself."""
    clock = ManualClock()
    rule = Rule("address", Quota.parse(text))
    store: Any = StoreByClock(url, rule, clock)
    servers = [LeasedLimiter(rule, store=store, clock=clock) for _ in range(servers_asked)]
    seconds = 10
    admitted = await ask_for(seconds, servers, clock, per_s)
    lease = lease_of(rule.quota)
    assert admitted <= 20 + 20 * seconds + servers_asked * lease, "once what is owed, not once per period"
    later = await ask_for(seconds, servers, clock, per_s)
    assert later <= 20 + 20 * seconds + servers_asked
    if per_s >= 200:  # alarms do not ring by the test's clock, so a request that is refused must ask in their place
        assert later >= 0.9 * 20 * seconds, "asking first must not cost what the quota allows"
    await store.aclose()


async def test_two_servers_asked_in_turn_admit_in_two_seconds_what_is_allowed(shared_url: str) -> None:
    clock = ManualClock()
    rule = Rule("address", Quota.parse("20/second"))
    store: Any = StoreByClock(shared_url, rule, clock)
    servers = [LeasedLimiter(rule, store=store, clock=clock) for _ in range(2)]
    assert 40 <= await ask_for(2, servers, clock, 200) <= 60 + len(servers)
    await store.aclose()


async def test_floods_again_and_again_get_the_quota_and_the_leases_once(shared_url: str) -> None:
    """What was too much is paid back, also while nobody asks: a pause does not lend the leases anew."""
    clock = ManualClock()
    rule = Rule("address", Quota.parse("20/second"))
    store: Any = StoreByClock(shared_url, rule, clock)
    servers = [LeasedLimiter(rule, store=store, clock=clock) for _ in range(10)]
    admitted, waves = 0, 20
    for _ in range(waves):
        admitted += await ask_for(0.1, servers, clock, 100, floods=True)
        clock.advance(2.9)
        for server in servers:
            server.check("somebody else")
        await settled(*servers)
    lease = lease_of(rule.quota)
    assert admitted <= 20 + 20 * 3 * waves + 10 * lease
    await store.aclose()


async def test_a_slow_crowd_of_servers_hides_nothing(shared_url: str) -> None:
    """Less than half a lease per period at each of ten servers was counted nowhere: 40 per second were admitted, where
    20 are allowed."""
    clock = ManualClock()
    rule = Rule("address", Quota.parse("20/second"))
    store: Any = StoreByClock(shared_url, rule, clock)
    servers = [LeasedLimiter(rule, store=store, clock=clock) for _ in range(10)]
    await ask_for(10, servers, clock, 40)
    assert await ask_for(20, servers, clock, 40) <= 20 + 20 * 20 + len(servers)
    uncounted = lease_of(rule.quota) // 2 / FREE_AGAIN_PERIODS
    assert uncounted <= 0.5, "requests per period that one server does not count"
    await store.aclose()


async def test_who_comes_back_at_the_promised_time_is_admitted(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server asks the store when the promised time has come, so nobody is refused twice."""
    server = LeasedLimiter(Rule("person", Quota.parse("20/second")), store=redis_url, deadline_s=5.0)
    while (refusal := server.check("fan")).allowed:
        await settled(server)
    asked = asyncio.Event()
    peek = server.shared.apeek

    async def noted(*given: Any) -> Any:
        decision = await peek(*given)
        asked.set()
        return decision

    monkeypatch.setattr(server.shared, "apeek", noted)
    assert refusal.retry_after_us > 0
    await asyncio.wait_for(asked.wait(), 10)
    await settled(server)
    assert server.check("fan").allowed
    await server.aclose()


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


@pytest.mark.parametrize(("policy", "most"), [("open", 150), ("closed", 10)])
async def test_without_the_store_the_policy_of_the_rule_decides(own_valkey: Valkey, policy: str, most: int) -> None:
    """`closed`: a lease, which is admitted before the store is asked."""
    own_valkey.kill()
    server = LeasedLimiter(Rule("person", Quota.parse("20/day")), store=own_valkey.url, on_store_down=policy)
    admitted = 0
    for _ in range(150):
        admitted += server.check("fan").allowed
        await settled(server)
    assert admitted == most if policy == "open" else admitted <= most
    await server.aclose()


async def test_a_charge_that_is_cancelled_or_fails_is_made_again(redis_url: str, monkeypatch: Any) -> None:
    """Nobody is refused for ever because the task that charges was lost."""
    server = LeasedLimiter(Rule("person", Quota.parse("20/day")), store=redis_url, deadline_s=5.0)
    for _ in range(10):
        server.check("fan")
    assert server._charging is not None
    await asyncio.sleep(0)
    server._charging.cancel()
    await asyncio.wait([server._charging])
    assert server.check("fan").allowed or server.check("fan").retry_after_us
    await settled(server)
    assert (await server.shared.apeek("fan")).remaining <= 10, "what was admitted is charged"
    monkeypatch.setattr(server.shared, "acheck", None)  # a mistake of ours
    assert server.check("fan").allowed
    await settled(server)
    assert server.check("fan").allowed
    monkeypatch.undo()
    await settled(server)
    await server.aclose()


async def test_a_charge_that_is_cancelled_before_it_began_is_made_again() -> None:
    limiter = LeasedLimiter(RULE, store="memory://")
    for _ in range(limiter.lease):
        limiter.check("address")
    (charging,) = asyncio.all_tasks() - {asyncio.current_task()}
    charging.cancel()
    await asyncio.gather(charging, return_exceptions=True)
    await asyncio.sleep(0)  # whoever waits for the end of the task hears of it
    admitted = limiter.lease
    for _ in range(QUOTA.limit):
        admitted += limiter.check("address").allowed
        await limiter.settle()
    assert admitted == QUOTA.limit
    await limiter.aclose()


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


@pytest.mark.parametrize("text", ["1/366 days", "2147483647/366 days", "2147483647/us", "5/month fixed_window"])
def test_any_quota_can_be_leased(text: str) -> None:
    assert LeasedLimiter(Rule("person", Quota.parse(text)), store="memory://").check("fan").allowed


def test_a_lease_is_a_part_of_the_quota() -> None:
    assert [lease_of(Quota.parse(text)) for text in ("5/s", "10/s", "50/s", "60/s", "1000/s")] == [5, 10, 10, 12, 200]
    with pytest.raises(InvalidCost):
        LeasedLimiter(RULE, store="memory://", lease=0)


# -- callers without an event loop, and loops that end ----------------------------------------------------------------


def open_slow(rule: Rule, clock: ManualClock) -> LeasedLimiter:
    store = SlowStore(open_memory_store([QuotaSlot(rule, "", rule.quota)], clock))
    return LeasedLimiter(rule, store=store, clock=clock, lease=10)


@pytest.mark.parametrize("text", ["60/day", "60/day fixed_window", "60/day token_bucket"])
def test_without_an_event_loop_a_busy_key_is_charged_at_once(shared_url: str, text: str) -> None:
    """It raised RuntimeError once, and from then on refused the key for ever."""
    clock, rule = ManualClock(), Rule("person", Quota.parse(text))
    limiter = LeasedLimiter(rule, store=StoreByClock(shared_url, rule, clock), clock=clock)
    assert sum(limiter.check("ann").allowed for _ in range(200)) == 60
    assert limiter.shared.peek("ann").remaining == 0
    clock.advance(2 * 86_400)
    assert sum(limiter.check("ann").allowed for _ in range(200)) == 60
    asyncio.run(limiter.aclose())


def test_a_key_that_asked_without_a_loop_goes_on_within_one() -> None:
    clock = ManualClock()
    limiter = open_slow(Rule("person", Quota.parse("1000/day token_bucket")), clock)
    assert all(limiter.check("ann").allowed for _ in range(30))

    async def serve() -> None:
        for _ in range(30):
            assert limiter.check("ann").allowed
            await limiter.settle()

    asyncio.run(serve())
    assert limiter.shared.peek("ann").remaining == 1000 - 60


async def _ask(limiter: LeasedLimiter, times: int) -> int:
    return sum(limiter.check("ann").allowed for _ in range(times))


@pytest.mark.parametrize("how", ["closed", "stopped", "cancelled"])
def test_a_loop_that_ends_while_a_key_is_charged_locks_nobody_out(how: str) -> None:
    """Whoever charged the key is gone. The next caller charges it, in another loop or without one."""
    clock = ManualClock()
    limiter = open_slow(Rule("person", Quota.parse("1000/day token_bucket")), clock)
    admitted, stopped = 0, list[asyncio.AbstractEventLoop]()
    for _ in range(5):
        if how == "cancelled":
            admitted += asyncio.run(_ask(limiter, 12))
        else:
            loop = asyncio.new_event_loop()
            admitted += loop.run_until_complete(_ask(limiter, 12))
            if how == "closed":
                loop.close()
            else:
                stopped.append(loop)
        clock.advance(1)
    assert admitted >= 5, "at least one in every loop"

    async def serve() -> int:
        served = 0
        for _ in range(20):
            served += limiter.check("ann").allowed
            await limiter.settle()
        return served

    assert asyncio.run(serve()) == 20
    used = 1000 - limiter.shared.peek("ann").remaining
    assert admitted + 20 <= used <= admitted + 20 + 5 * 10, "all is counted; what was on its way perhaps twice"
    for loop in stopped:
        loop.run_until_complete(asyncio.sleep(0))  # what it had begun does not count again
        loop.close()
    assert sum(limiter.check("ann").allowed for _ in range(20)) == 20
    assert 1000 - limiter.shared.peek("ann").remaining == used + 20
