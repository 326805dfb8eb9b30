"""An estimate that is charged first and corrected afterwards; a key that is reset. Over every backend."""

import asyncio
import threading
from contextlib import suppress

import pytest
import redis

from frontrow.core.errors import InvalidInput
from frontrow.limits import CostTooLarge, Limiter, Quota, Rule, Throttled
from frontrow.limits.stores.from_url import open_memory_store
from frontrow.limits.stores.protocol import CHECK, PEEK, QuotaSlot, StoreRequest, StoreResult
from frontrow.testing.clock import ManualClock
from tests.limits.backends import ALGORITHMS, T0_US, Backend, S
from tests.limits.cancellation import SlowStore

BUCKETS = ("token_bucket", "leaky_bucket", "leaky_queue")


def at(seconds: float) -> int:
    return T0_US + round(seconds * S)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_reset_forgets_what_one_key_has_used(backend: Backend, algorithm: str) -> None:
    asker = backend.limiter(Quota.parse("4/10s", algorithm=algorithm))
    for key in ("ann", "bob"):
        asker.check(key, cost=4, now_us=at(0))
    assert asker.reset("ann", now_us=at(1)).remaining == 4
    assert asker.reset("nobody", now_us=at(1)).remaining == 4
    assert [asker.check("ann", now_us=at(1)).allowed for _ in range(5)] == [True] * 4 + [False]
    assert not asker.check("bob", cost=4, now_us=at(1)).allowed


def test_a_reset_is_seen_although_the_refusal_was_remembered(backend: Backend) -> None:
    asker = backend.limiter(
        [Rule("user", Quota.parse("1/day")), Rule("burst", Quota.parse("1/day", algorithm="sliding_log"))]
    )
    assert [asker.check("ann").allowed for _ in range(3)] == [True, False, False]
    asker.reset("ann")
    assert asker.check("ann").allowed


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_was_not_used_is_given_back_and_what_was_used_more_is_charged(backend: Backend, algorithm: str) -> None:
    asker = backend.limiter(Quota.parse("10/10s", algorithm=algorithm))
    less = asker.reserve("fan", 6, now_us=at(0))
    assert less.reservation
    assert asker.peek("fan", now_us=at(0)).remaining == 4
    assert less.settle(2, now_us=at(0)).remaining == 8
    assert less.settle(0, now_us=at(0)).remaining == 8, "only the first time counts"
    more = asker.reserve("fan", 1, now_us=at(0))
    assert more.settle(5, now_us=at(0)).remaining == 3
    exact = asker.reserve("fan", 3, now_us=at(0))
    assert exact.settle(3, now_us=at(0)).remaining == 0
    assert not asker.reserve("fan", 1, now_us=at(0)).reservation


@pytest.mark.parametrize("algorithm", BUCKETS)
def test_a_bucket_goes_into_debt_and_the_next_ones_wait(backend: Backend, algorithm: str) -> None:
    """One per second, ten at once: 15 used means 5 owed beyond the bucket, so one unit is free after 6 s."""
    asker = backend.limiter(Quota.parse("10/10s", algorithm=algorithm))
    owing = asker.reserve("fan", 4, now_us=at(0)).settle(15, now_us=at(0))
    assert (owing.allowed, owing.remaining, owing.retry_after_s, owing.reset_after_s) == (False, 0, 6.0, 15.0)
    assert not asker.check("fan", now_us=at(6) - 1).allowed
    assert asker.check("fan", now_us=at(6)).allowed
    assert asker.peek("fan", now_us=at(16)).remaining == 10


@pytest.mark.parametrize("algorithm", BUCKETS)
def test_a_debt_is_bounded_by_one_more_bucket_and_lasts_although_others_come_and_go(
    backend: Backend, algorithm: str
) -> None:
    asker = backend.limiter(Quota.parse("10/10s", algorithm=algorithm))
    owing = asker.reserve("fan", 10, now_us=at(0)).settle(1_000_000, now_us=at(0))
    assert (owing.retry_after_s, owing.reset_after_s) == (11.0, 20.0)
    for second in range(1, 11):
        asker.check(f"other{second}", now_us=at(second))
        assert not asker.check("fan", now_us=at(second)).allowed
    assert asker.check("fan", now_us=at(11)).allowed
    owing = asker.reserve("idle", 10, now_us=at(12)).settle(20, now_us=at(12))
    assert not asker.check("idle", cost=10, now_us=at(31.9)).allowed, "kept for twice the life of other states"
    assert asker.check("idle", cost=10, now_us=at(32)).allowed


@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_log", "sliding_counter"])
def test_a_window_is_used_up_and_has_no_debt(backend: Backend, algorithm: str) -> None:
    asker = backend.limiter(Quota.parse("10/10s", algorithm=algorithm))
    used_up = asker.reserve("fan", 4, now_us=at(0)).settle(50, now_us=at(0))
    assert (used_up.allowed, used_up.remaining) == (False, 0)
    again_us = at(0) + used_up.reset_after_us
    assert asker.peek("fan", now_us=again_us).remaining == 10


@pytest.mark.parametrize(
    ("algorithm", "later_s", "given_back"),
    [
        ("token_bucket", 5.9, 5),  # six take six seconds to drain, so all still count
        ("token_bucket", 6.0, 0),  # the bucket may have been empty meanwhile
        ("sliding_log", 9.9, 5),
        ("sliding_log", 10.0, 0),
        ("fixed_window", 9.9, 5),
        ("fixed_window", 10.0, 0),
        ("sliding_counter", 9.9, 5),
        ("sliding_counter", 10.0, 0),
    ],
)
def test_what_no_longer_counts_is_not_given_back(
    backend: Backend, algorithm: str, later_s: float, given_back: int
) -> None:
    """Six are reserved and one is used. Others charge the same key before the settlement."""
    asker = backend.limiter(Quota.parse("10/10s", algorithm=algorithm))
    estimate = asker.reserve("fan", 6, now_us=at(0))
    now_us = at(later_s)
    asker.check("fan", cost=min(6, asker.peek("fan", now_us=now_us).remaining), now_us=now_us)
    before = asker.peek("fan", now_us=now_us).remaining
    assert estimate.settle(1, now_us=now_us).remaining == before + given_back


def test_the_correction_goes_to_the_rules_and_the_tier_that_were_charged(backend: Backend) -> None:
    tier = {"ann": "gold"}
    bucket = Quota.parse("10/10s", algorithm="token_bucket")
    rule = Rule(
        "plan",
        bucket,
        per=("user",),
        tiers={"gold": Quota.parse("20/10s", algorithm="token_bucket")},
        tier_of=lambda key: tier.get(key["user"]) if not isinstance(key, str) else None,
    )
    asker = backend.limiter([rule, Rule("all", Quota.parse("100/10s", algorithm="fixed_window"), per=())])
    estimate = asker.reserve({"user": "ann"}, 10, now_us=at(0))
    tier.clear()
    estimate.settle(4, now_us=at(0))
    assert asker.peek({"user": "ann"}, now_us=at(0)).remaining == 10, "the other tier was never charged"
    tier["ann"] = "gold"
    assert asker.peek({"user": "ann"}, now_us=at(0)).remaining == 16
    assert asker.check({"user": "bob"}, cost=10, now_us=at(0)).rule == "plan"


def test_a_block_that_fails_gives_all_back_and_a_refused_one_is_not_entered() -> None:
    limiter = Limiter(Quota.parse("10/day", algorithm="token_bucket"), clock=ManualClock())

    def fail() -> None:
        with limiter.reserve("fan", 7):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert limiter.peek("fan").remaining == 10
    with limiter.reserve("fan", 7) as reservation:
        reservation.settle(9)
    assert limiter.peek("fan").remaining == 1
    with limiter.reserve("fan", 1):
        pass
    assert limiter.peek("fan").remaining == 0, "without a settlement the estimate stays"
    refused = limiter.reserve("fan", 3)
    assert not refused
    with pytest.raises(Throttled), refused:
        pass
    with pytest.raises(Throttled, match="nothing to settle"):
        refused.settle(1)


async def test_the_same_for_asyncio(redis_url: str) -> None:
    async with Limiter("10/day", store=redis_url, deadline_s=10.0) as limiter:
        async with await limiter.areserve("fan", 4) as reservation:
            await reservation.asettle(1)
        assert (await limiter.apeek("fan")).remaining == 9
        with pytest.raises(ZeroDivisionError):
            async with await limiter.areserve("fan", 4):
                raise ZeroDivisionError
        assert (await limiter.apeek("fan")).remaining == 9
        assert (await limiter.areset("fan")).remaining == 10


def test_a_debt_in_redis_expires_after_it_is_paid_and_not_before(redis_url: str) -> None:
    quota = Quota.parse("10/100s", algorithm="token_bucket")
    with Limiter(quota, store=redis_url, deadline_s=10.0) as limiter, redis.Redis.from_url(redis_url) as client:
        limiter.reserve("fan", 10).settle(20)
        [key] = client.keys()
        assert client.pttl(key) > 199_000
        limiter.reset("fan")
        assert client.keys() == []


def test_what_was_reserved_while_the_store_was_down_is_not_charged_to_it() -> None:
    with Limiter("5/day", store="redis://127.0.0.1:1/0") as limiter:
        reservation = limiter.reserve("fan", 3)
        assert reservation.decision.source == "local"
        assert reservation.settle(5) == reservation.decision


def test_a_reset_drops_units_that_were_leased(redis_url: str) -> None:
    rule = Rule("all", Quota.parse("10/366 days", algorithm="fixed_window"), per=(), lease=5)
    with Limiter(rule, store=redis_url, deadline_s=10.0) as limiter:
        assert limiter.check("anybody").allowed
        limiter.reset("anybody")
        assert sum(limiter.check("anybody").allowed for _ in range(20)) == 10


class MeetingStore(SlowStore):
    """Threads that change something meet on their way to the store, if they come within a tenth of a second."""

    def __init__(self, rule: Rule, threads: int) -> None:
        super().__init__(open_memory_store([QuotaSlot(rule, "", rule.quota)], ManualClock()))
        self._together = threading.Barrier(threads)

    def decide(self, request: StoreRequest) -> StoreResult:
        if request.op not in (CHECK, PEEK):
            with suppress(threading.BrokenBarrierError):
                self._together.wait(0.1)
        return super().decide(request)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_of_eight_threads_that_settle_at_once_one_counts(algorithm: str) -> None:
    """Each of them gave 100 back: 200 of 1000 stayed used instead of 900."""
    rule = Rule("a", Quota(1000, 366 * 86_400 * S, algorithm))
    limiter = Limiter(rule, store=MeetingStore(rule, 8), clock=ManualClock())
    reservation = limiter.reserve("fan", 1000)
    told: list[int] = []
    threads = [threading.Thread(target=lambda: told.append(reservation.settle(900).remaining)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert limiter.peek("fan").remaining == 100
    assert set(told) <= {0, 100}, "who comes while another settles is told what is left at that time"


async def test_of_two_tasks_that_settle_at_once_one_counts(redis_url: str) -> None:
    async with Limiter("1000/day", store=redis_url, deadline_s=10.0) as limiter:
        await limiter.acheck("fan", 100)
        reservation = await limiter.areserve("fan", 800)
        told = await asyncio.gather(*(reservation.asettle(700) for _ in range(50)))
        assert {decision.remaining for decision in told} == {200}
        assert (await limiter.apeek("fan")).remaining == 200
        assert (await asyncio.to_thread(reservation.settle, 0)).remaining == 200


async def test_a_thread_and_a_task_that_settle_at_once_do_not_wait_for_each_other() -> None:
    rule = Rule("a", Quota.parse("1000/day"))
    store = SlowStore(open_memory_store([QuotaSlot(rule, "", rule.quota)], ManualClock()))
    limiter = Limiter(rule, store=store, clock=ManualClock())
    reservation = await limiter.areserve("fan", 800)
    settling = asyncio.create_task(reservation.asettle(700))
    await asyncio.sleep(0)
    assert reservation.settle(0).remaining == 200, "the task was first, and is still on its way"
    assert (await settling).remaining == 300


async def test_a_settlement_that_the_store_refused_to_take_can_be_made_again() -> None:
    rule = Rule("a", Quota.parse("1000/day"))
    broken = [True, True]

    class Broken(SlowStore):
        def decide(self, request: StoreRequest) -> StoreResult:
            if request.op != CHECK and broken:
                broken.pop()
                raise ZeroDivisionError
            return super().decide(request)

        async def adecide(self, request: StoreRequest) -> StoreResult:
            return self.decide(request)

    limiter = Limiter(rule, store=Broken(open_memory_store([QuotaSlot(rule, "", rule.quota)], ManualClock())))
    reservation = limiter.reserve("fan", 800)
    with pytest.raises(ZeroDivisionError):
        reservation.settle(700)
    with pytest.raises(ZeroDivisionError):
        await reservation.asettle(700)
    assert (await reservation.asettle(700)).remaining == 300


@pytest.mark.parametrize("actual", [-1, 1.5, True, "3", None])
def test_a_wrong_settlement_is_named(actual: object) -> None:
    limiter = Limiter("10/day")
    reservation = limiter.reserve("fan", 2)
    with pytest.raises(InvalidInput, match="actual must be a whole number of at least 0"):
        reservation.settle(actual)  # type: ignore[arg-type]
    with pytest.raises(CostTooLarge):
        limiter.reserve("fan", 11)
