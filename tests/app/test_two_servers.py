"""Two servers on one Redis and PostgreSQL (F5): whichever answers, all works; either may be killed at any time.

Each has a folder of its own, as on two machines: keys are found in the ledger.
"""

import asyncio
import itertools

import httpx

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.core.clock import SystemClock
from tests.app.several_servers import a_folder, buy, until_sold
from tests.boxoffice.plan_samples import small_plan
from tests.support.processes import Process
from tests.web.api.script import read_document
from tests.web.api.support import put_into

BUYERS = 50


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
            await until_sold(ledger, 1 + 8 * index)
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
