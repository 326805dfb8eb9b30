"""The SeatClaims contract over every adapter: memory, one Redis, three Redis shards, a Redis Cluster."""

import contextlib
from collections.abc import AsyncIterator

import pytest
import redis

from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.holds.model.claims import ClaimsLost
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from tests.contracts.seat_claims import CONTRACT, EVENT, NOW, Contract, seats_of, small_plan, wish
from tests.support.servers import Valkey

ADAPTERS = ["memory", "redis", "redis-3-shards", "redis-cluster"]


@pytest.fixture(scope="module")
def three_valkeys() -> object:
    with Valkey() as one, Valkey() as two, Valkey() as three:
        yield [one.url, two.url, three.url]


@contextlib.asynccontextmanager
async def pair(kind: str, request: pytest.FixtureRequest) -> AsyncIterator[tuple[SeatClaims, SeatClaims]]:
    """Two servers' views of one empty store that nobody has filled yet."""
    if kind == "memory":
        one: SeatClaims = MemoryClaims()
        two = one
    else:
        urls = _urls(kind, request)
        one, two = RedisClaims(urls), RedisClaims(urls)
    for claims in (one, two):
        claims.learn(EVENT, small_plan())
    try:
        yield one, two
    finally:
        for claims in (one, two):
            await claims.aclose()


def _urls(kind: str, request: pytest.FixtureRequest) -> str | list[str]:
    if kind == "redis":
        return str(request.getfixturevalue("redis_url"))
    if kind == "redis-cluster":
        cluster = request.getfixturevalue("redis_cluster")
        for node in cluster.nodes:
            node.command("FLUSHALL")
        return str(cluster.url)
    urls: list[str] = request.getfixturevalue("three_valkeys")
    for url in urls:
        with redis.Redis.from_url(url) as client:
            client.flushall()
    return urls


@pytest.mark.parametrize("kind", ADAPTERS)
@pytest.mark.parametrize("contract", CONTRACT, ids=lambda contract: contract.__name__)
async def test_contract(contract: Contract, kind: str, request: pytest.FixtureRequest) -> None:
    """B2, B3, B4, F1, N4: see each function's docstring."""
    async with pair(kind, request) as (one, two):
        assert await one.rebuild(EVENT, seats_of, NOW)
        await contract(one, two)


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_an_empty_store_refuses_until_it_is_filled(kind: str, request: pytest.FixtureRequest) -> None:
    """F1: an empty store is not an empty house."""
    async with pair(kind, request) as (one, two):
        assert await one.lost(EVENT)
        with pytest.raises(ClaimsLost):
            await one.claim(wish("ann", 1), NOW)
        assert await one.release(EVENT, (1,), "bkg_ann") == 0
        assert await two.rebuild(EVENT, seats_of, NOW)
        assert not await one.lost(EVENT)
        await one.claim(wish("ann", 1), NOW)
