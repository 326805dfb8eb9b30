"""F1: Redis flushed, killed, restarted with old content, failed over to a lagging replica, in the middle of a sale.

Each time: no double sale, nothing acknowledged is lost, no seat is lost for ever, selling goes on by itself within 5 s.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.core.clock import SystemClock
from tests.boxoffice.shop import EVENT, Shop, shop_event, shop_plan
from tests.faults.proxy import Proxy
from tests.faults.selling import (
    RECOVERY_BOUND_S,
    Selling,
    assert_no_seat_is_lost_for_ever,
    assert_nothing_was_sold_twice_or_lost,
    within,
)
from tests.support.eventually import eventually
from tests.support.servers import Valkey

HOLD_S = 10  # far longer than a purchase takes on a busy machine


def rebuilds(selling: Selling) -> int:
    return sum(shop.recovery.stats.rebuilds for shop in selling.shops)


@contextlib.asynccontextmanager
async def sale(ledger_url: str, redis_url: str) -> AsyncIterator[Selling]:
    """Two servers with their recovery running, 60 fans selling; checked at the end."""
    clock = SystemClock()
    shops: list[Shop] = []
    for _ in range(2):
        ledger = await open_ledger(ledger_url, auto_migrate=False)
        claims = RedisClaims(redis_url, timeout_s=0.5)
        event = shop_event(hold_ttl_s=HOLD_S, max_per_person=10, sale_ends_at_us=clock() * 2)
        shops.append(Shop(claims, ledger, clock, event, shop_plan(10, 20)))
    for shop in shops:
        await shop.recovery.start()
    selling = Selling(shops)
    selling.start()
    try:
        try:
            yield selling
        finally:
            await selling.stop()
        for shop in shops:
            await shop.recovery.stop()
        await assert_nothing_was_sold_twice_or_lost(selling)
        await assert_no_seat_is_lost_for_ever(selling, 3 * HOLD_S * 1_000_000)
    finally:
        for shop in shops:
            await shop.recovery.stop()
            await shop.holds.aclose()
            await shop.claims.aclose()
            await shop.ledger.aclose()


async def test_flushall_in_the_middle_of_a_sale(postgres_ledger_url: str, own_valkey: Valkey) -> None:
    """F1, N4: emptied twice; an empty store refuses, is filled from the ledger, and sells on."""
    async with sale(postgres_ledger_url, own_valkey.url) as selling:
        for _ in range(2):
            await selling.until_wins(150)
            own_valkey.command("FLUSHALL")
            rebuilt = rebuilds(selling)
            await within(lambda rebuilt=rebuilt: rebuilds(selling) > rebuilt, RECOVERY_BOUND_S)
            await selling.sells_again()
            await selling.until_wins(50)
        await eventually(lambda: bool(selling.bought))


@pytest.mark.parametrize("options", [(), ("--appendonly", "yes")], ids=["memory only", "with an append-only file"])
async def test_kill_9_of_redis_in_the_middle_of_a_sale(postgres_ledger_url: str, options: tuple[str, ...]) -> None:
    """F1, F5: it comes back empty, or with whatever it had written; either way it is not believed until filled."""
    with Valkey(*options) as server:
        async with sale(postgres_ledger_url, server.url) as selling:
            await selling.until_wins(150)
            server.kill()
            before = selling.unavailable
            await eventually(lambda: selling.unavailable >= before + 20)
            server.start()
            rebuilt = rebuilds(selling)
            await selling.sells_again()
            await selling.until_wins(50)
            # The first section that is filled sells already; the rebuild counts when the last one is. Old content that
            # is believed is never rebuilt, so this would wait in vain.
            await within(lambda: rebuilds(selling) > rebuilt, RECOVERY_BOUND_S)
            await selling.until_wins(100)


async def test_failover_to_a_lagging_replica_in_the_middle_of_a_sale(postgres_ledger_url: str) -> None:
    """F1, N4: the replica misses the last claims and sales; promoted, it must not sell them again."""
    with Valkey("--repl-diskless-sync-delay", "0") as primary, Valkey() as replica:
        async with Proxy(primary.port) as link, Proxy(primary.port) as front:
            replica.command("REPLICAOF", "127.0.0.1", link.port)
            await eventually(
                lambda: asyncio.to_thread(replica.command, "INFO", "replication"),
                until=lambda told: b"master_link_status:up" in told,
            )
            async with sale(postgres_ledger_url, f"redis://127.0.0.1:{front.port}/0") as selling:
                await selling.until_wins(150)
                link.blackhole()
                held_before = len(selling.bought)
                await selling.until_wins(150)  # these the replica never hears of
                await eventually(lambda: len(selling.bought) > held_before)
                rebuilt = rebuilds(selling)
                primary.kill()
                replica.command("REPLICAOF", "NO", "ONE")
                front.target_port = replica.port
                front.cut()
                await within(lambda: rebuilds(selling) > rebuilt, RECOVERY_BOUND_S)
                await selling.sells_again()
                await selling.until_wins(150)


async def test_sales_go_on_with_servers_that_start_and_stop(postgres_ledger_url: str, own_valkey: Valkey) -> None:
    """F5: a third server that joins later finds the store filled and believes it without filling it again."""
    async with sale(postgres_ledger_url, own_valkey.url) as selling:
        await selling.until_wins(100)
        ledger = await open_ledger(postgres_ledger_url, auto_migrate=False)
        claims = RedisClaims(own_valkey.url)
        third = Shop(claims, ledger, selling.shops[0].clock, selling.shops[0].event, selling.shops[0].plan)
        assert await third.recovery.check(EVENT)
        assert third.recovery.stats.rebuilds == 0
        await claims.aclose()
        await ledger.aclose()
