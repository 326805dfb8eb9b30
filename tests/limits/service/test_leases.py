"""O7: leases of callers: a share that is charged in advance and given back in part."""

import asyncio

import pytest

from frontrow.limits_service.leases import (
    Lease,
    LeaseBookDown,
    MemoryLeaseBook,
    RedisLeaseBook,
    TooManyLeases,
    UnknownLease,
)
from frontrow.testing.clock import ManualClock
from tests.limits.backends import T0_US
from tests.limits.service.lease_book_contract import LEASE, LeaseBookContract
from tests.limits.service.support import config_of, running
from tests.support.eventually import eventually

HUNDRED = """
[[limits.rules]]
name = "api"
quota = "100/day fixed_window"
key = []
"""


class TestMemory(LeaseBookContract):
    @pytest.fixture
    def book(self):
        return MemoryLeaseBook(100)

    async def test_an_ended_lease_is_unknown_and_makes_room(self):
        now_s = [0.0]
        book = MemoryLeaseBook(1, lambda: now_s[0])
        ended = await book.put(LEASE, 10.0)
        with pytest.raises(TooManyLeases):
            await book.put(LEASE, 10.0)
        now_s[0] = 10.0
        with pytest.raises(UnknownLease):
            await book.take(ended)
        await book.put(LEASE, 10.0)


class TestRedis(LeaseBookContract):
    @pytest.fixture
    async def book(self, redis_url):
        book = RedisLeaseBook(redis_url, "frl", 5.0)
        yield book
        await book.aclose()

    async def test_redis_ends_a_lease(self, book):
        lease_id = await book.put(LEASE, 0.001)

        async def is_unknown():
            try:
                await book.take(lease_id)
            except UnknownLease:
                return True
            lost.append(lease_id)
            return False

        lost = []
        await eventually(is_unknown, until=bool)

    async def test_a_store_that_does_not_answer_is_told(self):
        book = RedisLeaseBook("redis://127.0.0.1:1/0", "frl", 1.0)
        with pytest.raises(LeaseBookDown):
            await book.take("lse_x")
        await book.aclose()


class _ForgetfulBook(MemoryLeaseBook):
    """The canary: hands a lease out as often as it is asked for."""

    async def take(self, lease_id: str) -> Lease:
        return self._open[lease_id][1]


async def test_the_contract_catches_a_book_that_hands_leases_out_twice():
    with pytest.raises(AssertionError):
        await LeaseBookContract().test_a_lease_is_handed_out_once(_ForgetfulBook(10))


@pytest.fixture(params=["memory", "redis"])
def store(request, redis_url):
    return "memory://" if request.param == "memory" else redis_url


async def left(service):
    return (await service.post("/v1/peek", {"key": "x"})).json()["remaining"]


async def test_a_lease_is_charged_at_once_and_what_is_unused_comes_back(tmp_path, store):
    async with running(config_of(tmp_path, HUNDRED, store)) as service:
        taken = await service.post("/v1/leases", {"key": "x", "cost": 60, "ttl_s": 30})
        assert (taken.status_code, taken.json()["units"], taken.json()["expires_in_s"]) == (201, 60, 30)
        assert await left(service) == 40
        back = f"/v1/leases/{taken.json()['lease']}/return"
        assert (await service.post(back, {"used": 25})).json()["remaining"] == 75
        assert (await service.post(back, {"used": 25})).status_code == 404, "once"
        assert await left(service) == 75


async def test_fewer_units_are_leased_if_the_caller_takes_them(tmp_path, store):
    async with running(config_of(tmp_path, HUNDRED, store)) as service:
        await service.check("x", cost=70)
        assert (await service.post("/v1/leases", {"key": "x", "cost": 50})).status_code == 429
        taken = await service.post("/v1/leases", {"key": "x", "cost": 50, "at_least": 10})
        assert taken.json()["units"] == 30
        assert (await service.post("/v1/leases", {"key": "x", "cost": 50, "at_least": 1})).status_code == 429


async def test_many_callers_never_lease_more_than_there_is(tmp_path, store):
    async with running(config_of(tmp_path, HUNDRED, store)) as service:
        asked = {"key": "x", "cost": 7, "at_least": 1}
        answers = await asyncio.gather(*(service.post("/v1/leases", asked) for _ in range(50)))
        assert sum(answer.json().get("units", 0) for answer in answers) <= 100
        assert await left(service) == 100 - sum(answer.json().get("units", 0) for answer in answers)


async def test_what_belongs_to_an_earlier_window_does_not_come_back(tmp_path):
    clock = ManualClock(T0_US - T0_US % 86_400_000_000)
    async with running(config_of(tmp_path, HUNDRED), clock) as service:
        taken = await service.post("/v1/leases", {"key": "x", "cost": 60, "ttl_s": 60})
        clock.advance(86_400.0)
        await service.check("x", cost=10)
        await service.post(f"/v1/leases/{taken.json()['lease']}/return", {"used": 0})
        assert await left(service) == 90, "yesterday's units are gone; today's are all counted"


async def test_a_lease_of_ones_own_quota_is_given_back_to_it(tmp_path, store):
    async with running(config_of(tmp_path, HUNDRED, store)) as service:
        own = {"key": "k", "quota": "10/day fixed_window; 50/day fixed_window"}
        taken = await service.post("/v1/leases", own | {"cost": 8})
        await service.post(f"/v1/leases/{taken.json()['lease']}/return", {"used": 3})
        assert (await service.post("/v1/peek", own)).json()["remaining"] == 7


async def test_a_lease_taken_at_one_worker_is_returned_at_another(tmp_path, redis_url):
    config = config_of(tmp_path, HUNDRED, redis_url)
    async with running(config) as first, running(config, number=2) as second:
        taken = await first.post("/v1/leases", {"key": "x", "cost": 60})
        back = f"/v1/leases/{taken.json()['lease']}/return"
        told = await asyncio.gather(first.post(back, {"used": 10}), second.post(back, {"used": 10}))
        assert sorted(answer.status_code for answer in told) == [200, 404]
        assert await left(second) == 90


@pytest.mark.parametrize(
    "wrong",
    [{"cost": 0}, {"cost": 10_001}, {"ttl_s": 0}, {"ttl_s": 61}, {"ttl_s": -1}, {"cost": 5, "at_least": 6},
     {"cost": 5, "at_least": 0}],
)  # fmt: skip
async def test_the_bounds_of_a_lease_are_told(tmp_path, wrong):
    async with running(config_of(tmp_path, HUNDRED)) as service:
        answer = await service.post("/v1/leases", {"key": "x", **wrong})
        assert answer.status_code == 422
        taken = await service.post("/v1/leases", {"key": "x"})
        back = f"/v1/leases/{taken.json()['lease']}/return"
        assert (await service.post(back, {"used": -1})).status_code == 422
        assert (await service.post(back, {"used": 1})).status_code == 200, "a mistake does not end the lease"


async def test_while_the_store_is_down_nothing_is_leased(tmp_path, own_valkey):
    async with running(config_of(tmp_path, HUNDRED, own_valkey.url)) as service:
        taken = await service.post("/v1/leases", {"key": "x", "cost": 5})
        own_valkey.kill()
        refused = await service.post("/v1/leases", {"key": "x", "cost": 5})
        assert (refused.status_code, refused.json()["code"]) == (503, "limit_store_down")
        assert refused.headers["retry-after"] == "1"
        back = await service.post(f"/v1/leases/{taken.json()['lease']}/return", {"used": 1})
        assert back.status_code == 503, "the caller may try again"
        assert (await service.check("x")).json()["source"] == "local", "checks go on"
