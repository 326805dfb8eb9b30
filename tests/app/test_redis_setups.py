"""A whole purchase on Redis as people run it: TLS and ACL users, a Cluster, Sentinel with a failover in the middle."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from frontrow.app.doctor import FAIL, redis
from tests.support.eventually import eventually
from tests.support.servers import Cluster, Sentinel, Valkey
from tests.support.tls_proxy import TlsProxy
from tests.web.api.script import Buyer, a_buyer
from tests.web.api.support import EVENT_ID, a_client, a_platform, one_row

# What Frontrow needs: no key is out of bounds, and nothing that changes the server.
ACL = ("on", ">s3cret", "~*", "&*", "+@all", "-@dangerous", "-@admin", "+info", "+cluster|slots", "+cluster|shards")
PATIENCE_S = 60.0


async def patiently(ask: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
    """Ask again after each 503, as a good client does; anything else is the answer."""

    def is_an_answer(answer: httpx.Response) -> bool:
        assert answer.status_code != 503 or int(answer.headers["retry-after"]) > 0
        return answer.status_code != 503

    return await eventually(ask, PATIENCE_S, until=is_an_answer, every_s=0.1)


async def enter(buyer: Buyer) -> None:
    """From the queue to the pass."""
    joined = await patiently(lambda: buyer.call("room_join", event_id=EVENT_ID))
    assert joined.status_code == 201, joined.text
    place = {"Authorization": f"Bearer {joined.json()['place']}"}

    async def claim() -> httpx.Response:
        claimed = await patiently(lambda: buyer.call("room_claim", event_id=EVENT_ID, headers=place))
        assert claimed.status_code in (201, 409), claimed.text  # 409: not yet
        return claimed

    claimed = await eventually(claim, PATIENCE_S, until=lambda answer: answer.status_code == 201, every_s=0.05)
    buyer.headers["Frontrow-Pass"] = claimed.json()["pass"]


async def buy(buyer: Buyer, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """From the queue to the tickets; `between` happens while the seats are held."""
    await enter(buyer)
    held = await patiently(lambda: buyer.call("place_hold", event_id=EVENT_ID, json={"best": {"count": 2}}))
    assert held.status_code == 201, held.text
    booking = held.json()["booking"]
    buyer.headers["Frontrow-Booking"] = held.json()["booking_token"]
    between()
    await patiently(lambda: buyer.call("pay", booking_id=booking, json={"method": "pm_card_visa"}))
    await eventually(
        lambda: patiently(lambda: buyer.call("get_booking", booking_id=booking)),
        PATIENCE_S,
        until=lambda answer: answer.json()["state"] == "confirmed",
        every_s=0.05,
    )
    tickets = await buyer.call("list_tickets", booking_id=booking)
    assert len(tickets.json()["tickets"]) == 2
    return held.json()


async def add_buyer(client: httpx.AsyncClient, number: int) -> Buyer:
    buyer = await a_buyer(client)
    buyer.headers["Idempotency-Key"] = f"fan-{number}"
    return buyer


async def test_a_cluster_carries_a_whole_sale(tmp_path, redis_cluster: Cluster, postgres_ledger_url):
    """Limits, room, claims, feed and bus, as a user with no more rights than the documentation says."""
    for node in redis_cluster.nodes:
        assert node.command("ACL", "SETUSER", "frontrow", *ACL) == b"+OK\r\n"
    url = redis_cluster.url.replace("://", "://frontrow:s3cret@")
    async with (
        a_platform(tmp_path, redis_url=url, postgres_url=postgres_ledger_url) as platform,
        a_client(platform) as client,
    ):
        await buy(await add_buyer(client, 1))
        assert (await client.get("/readyz")).status_code == 200


async def test_a_node_of_six_dies_in_the_middle_of_a_seat_storm(tmp_path, postgres_ledger_url):
    """Twelve fans want the same seats, and the primary that has their claims is killed: 503 for a moment, never 500,
    its replica takes over, and each seat is sold once."""
    seats = [f"S-A-{number + 1}" for number in range(12)]
    sold: dict[str, str] = {}

    async def fight(buyer: Buyer, cluster: Cluster) -> None:
        await enter(buyer)
        for seat in seats:
            wish = {"seats": [seat]}
            buyer.headers["Idempotency-Key"] += seat
            held = await patiently(lambda wish=wish: buyer.call("place_hold", event_id=EVENT_ID, json=wish))
            if held.status_code == 201:
                break
            assert held.status_code == 409, held.text
        booking = held.json()["booking"]
        buyer.headers["Frontrow-Booking"] = held.json()["booking_token"]
        victim = cluster.primary_of(f"{{{EVENT_ID}:S}}")
        if seat == seats[3] and victim.is_running:
            victim.kill()
        paid = await patiently(lambda: buyer.call("pay", booking_id=booking, json={"method": "pm_card_visa"}))
        assert paid.status_code == 200, paid.text
        assert seat not in sold
        sold[seat] = booking

    with Cluster(replicas=True) as cluster:
        async with (
            a_platform(tmp_path, one_row(12), redis_url=cluster.url, postgres_url=postgres_ledger_url) as platform,
            a_client(platform) as client,
        ):
            buyers = [await add_buyer(client, number) for number in range(12)]
            await asyncio.gather(*(fight(buyer, cluster) for buyer in buyers))
            assert not cluster.primary_of(f"{{{EVENT_ID}:S}}").is_running
            assert sorted(sold) == sorted(seats)
            states = [(await platform.ledger.booking(booking)).state for booking in sold.values()]
            assert set(states) == {"confirmed"}


async def test_a_purchase_by_tls_as_a_user_with_few_rights(tmp_path, own_valkey: Valkey, postgres_ledger_url):
    """`rediss://` with our own authority, a user and a password: limits, room, claims, feed and bus."""
    assert own_valkey.command("ACL", "SETUSER", "frontrow", *ACL) == b"+OK\r\n"
    assert own_valkey.command("ACL", "SETUSER", "default", "off") == b"+OK\r\n"
    with TlsProxy(tmp_path, own_valkey.port) as proxy:
        url = f"rediss://frontrow:s3cret@127.0.0.1:{proxy.port}/0?ssl_ca_certs={proxy.certificate}"
        async with (
            a_platform(tmp_path, redis_url=url, postgres_url=postgres_ledger_url) as platform,
            a_client(platform) as client,
        ):
            await buy(await add_buyer(client, 1))
            assert (await client.get("/readyz")).status_code == 200
        assert proxy.tls_connections > 3
        found = [one for one in await redis(url) if one.state == FAIL]
        assert found == [], "the doctor connects the same way"


async def test_a_sentinel_failover_in_the_middle_of_a_purchase(
    tmp_path, own_valkey: Valkey, redis_sentinel: Sentinel, postgres_ledger_url
):
    """The primary dies while seats are held: 503 for a moment, never 500, and the purchase goes on."""
    with Valkey("--replicaof", f"127.0.0.1 {own_valkey.port}") as replica:
        await eventually(
            lambda: redis_sentinel.command("INFO", "sentinel"), PATIENCE_S, until=lambda told: b"slaves=1" in told
        )
        async with (
            a_platform(tmp_path, redis_url=redis_sentinel.url, postgres_url=postgres_ledger_url) as platform,
            a_client(platform) as client,
        ):
            first = await buy(await add_buyer(client, 1), between=own_valkey.kill)
            second = await buy(await add_buyer(client, 2))
            assert not set(first["seats"]) & set(second["seats"])
            assert replica.is_primary()
