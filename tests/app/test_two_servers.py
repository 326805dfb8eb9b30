"""Two servers on one Redis and PostgreSQL (F5): whichever answers, all works; either may be killed at any time.

Each has a folder of its own, as on two machines: keys are found in the ledger.
"""

import asyncio
import itertools
import random
from pathlib import Path
from typing import Any

import httpx

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.core.clock import SystemClock
from tests.boxoffice.plan_samples import small_plan
from tests.support.processes import Process
from tests.web.api.script import Buyer, read_document
from tests.web.api.support import EVENT_ID, put_into

BUYERS = 50
TRIES = 200


class Stubborn(httpx.AsyncBaseTransport):
    """Asks the servers in turn and asks another one when one is dead or says 503; what a load balancer and a good
    client do together."""

    def __init__(self, inner: httpx.AsyncHTTPTransport, urls: list[str], seed: int) -> None:
        self._inner, self._urls, self._random = inner, urls, random.Random(seed)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        for _ in range(TRIES):
            target = httpx.URL(self._random.choice(self._urls))
            request.url = request.url.copy_with(host=target.host, port=target.port)
            request.headers["host"] = f"{target.host}:{target.port}"
            try:
                response = await self._inner.handle_async_request(request)
                await response.aread()
                if response.status_code not in (502, 503):
                    return response
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.05)
        raise AssertionError(f"no server answered {request.url}")


async def buy(number: int, inner: Any, urls: list[str], document: dict[str, Any]) -> dict[str, Any]:
    """One fan's purchase; every POST has a key of its own, so asking again is harmless."""
    transport = Stubborn(inner, urls, number)
    async with httpx.AsyncClient(transport=transport, base_url="http://any", timeout=30) as client:
        buyer = Buyer(client, document)
        buyer.headers["Idempotency-Key"] = f"fan-{number}"
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, best={"count": 1})
        paid = await buyer.call("pay", booking_id=held["booking"], json={"method": "pm_card_visa"})
        for _ in range(TRIES):
            if paid.json().get("state") == "confirmed":
                break
            await asyncio.sleep(0.1)
            paid = await buyer.call("get_booking", booking_id=held["booking"])
        tickets = await buyer.call("list_tickets", booking_id=held["booking"])
        return {"booking": held["booking"], "state": paid.json()["state"], "tickets": tickets.json()["tickets"]}


def a_folder(tmp_path: Path, number: int) -> Path:
    """A machine of its own: nothing is shared but the stores, and the made-up bank, which is one file."""
    folder = tmp_path / f"machine-{number}"
    folder.mkdir()
    (folder / "payments.jsonl").symlink_to(tmp_path / "bank.jsonl")
    return folder


async def test_f5_50_fans_buy_while_either_server_is_killed(tmp_path, redis_url, postgres_ledger_url):
    """N4: nobody is charged twice, no seat is sold twice, nobody's confirmed booking is lost."""
    ledger = await open_ledger(postgres_ledger_url)
    await put_into(ledger, SystemClock()(), small_plan(rows=8), hold_ttl_s=300)
    stores = {"FRONTROW_REDIS_URL": redis_url, "FRONTROW_LEDGER_URL": postgres_ledger_url}
    folders = [a_folder(tmp_path, number) for number in range(2)]
    servers = [Process(["serve", "--port", "0"], folder, own_keys=True, **stores) for folder in folders]
    try:
        for server in servers:
            server.listening()
            await server.ready()
        urls = [server.url for server in servers]
        async with httpx.AsyncClient(base_url=urls[0]) as client:
            document = await read_document(client)
        inner = httpx.AsyncHTTPTransport(verify=False, limits=httpx.Limits(max_connections=60))
        buying = [asyncio.create_task(buy(number, inner, urls, document)) for number in range(BUYERS)]
        for index in (0, 1):
            await _sold(ledger, 1 + 8 * index)
            servers[index].kill()
            servers[index].stop()
            port = urls[index].rpartition(":")[2]
            servers[index] = Process(["serve", "--port", port], folders[index], own_keys=True, **stores)
            servers[index].listening()
            await servers[index].ready()
        bought = await asyncio.gather(*buying)
        await inner.aclose()
    finally:
        codes = [server.stop() for server in servers]
    assert codes == [0, 0], "a server that is told to stop ends in order"
    assert {one["state"] for one in bought} == {"confirmed"}
    codes_seen = list(itertools.chain.from_iterable(one["tickets"] for one in bought))
    assert len({ticket["seat"] for ticket in codes_seen}) == len(codes_seen) == BUYERS
    assert not await ledger.store.read(Query("seats_sold_twice", params=(10,)))
    for one in bought:
        booking = await ledger.booking(one["booking"])
        assert booking is not None
        assert booking.state is BookingState.CONFIRMED
        payments = await ledger.payments.payments_of(booking.id)
        assert sum(payment.amount_minor for payment in payments if payment.state == "captured") <= booking.amount_minor
    await ledger.aclose()


async def _sold(ledger, count):
    """Until so many seats are held or sold."""
    for _ in range(2_000):
        seats = [seat async for seat in ledger.active_seats(EVENT_ID, SystemClock()())]
        if len(seats) >= count:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"not {count} seats in time")
