"""An upgrade during a sale: servers of an earlier version go on selling while the ledger is migrated and servers of
this version start beside them (docs/guides/upgrade.md).

The earlier version is real: `tests/data/frontrow_before.tar.xz` is its program (without fonts and pictures), from a
time when the ledger had version 0041: before money could come at once or slowly, before organisers' own accounts and
before disputes. What this proves: its statements work on the present schema, and both versions understand each other's
keys, places, passes, claims, holds and payments. After a release, renew the file from its tag:

    git archive <tag> -- src packages ':!*.ttf' ':!*.ttf.xz' ':!*.wasm' ':!*.png' ':!*.md' ':!*/swagger-ui/*' \
        | xz -9e > tests/data/frontrow_before.tar.xz
"""

import asyncio
import json
import tarfile
from pathlib import Path
from typing import Any

import httpx
from typer.testing import CliRunner

from frontrow.app.ledger_tools import migrate_ledger, verify_ledger
from frontrow.boxoffice.adapters.ledger.engine.postgres import PostgresStore
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.schema_versions import newest_version
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.from_url import open_provider
from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.cli.ledger import app as ledger_app
from frontrow.core.clock import SystemClock
from tests.app.several_servers import a_folder, buy, until_sold
from tests.boxoffice.plan_samples import small_plan
from tests.support.eventually import eventually
from tests.support.processes import Process
from tests.web.api.script import Buyer
from tests.web.api.support import EVENT_ID, put_into

BEFORE = Path("tests/data/frontrow_before.tar.xz")
BEFORE_SCHEMA = "0041"
FANS = 5  # per stage: before, during and after


async def test_servers_of_two_versions_sell_one_event_during_the_upgrade(tmp_path, redis_url, postgres_url):
    with tarfile.open(BEFORE) as archive:
        archive.extractall(tmp_path / "before", filter="data")
    assert await asyncio.to_thread(migrate, postgres_url, BEFORE_SCHEMA) == BEFORE_SCHEMA
    ledger = SqlLedger(PostgresStore(postgres_url))
    await put_into(ledger, SystemClock()(), small_plan(rows=8), hold_ttl_s=300)
    stores = {"FRONTROW_REDIS_URL": redis_url, "FRONTROW_LEDGER_URL": postgres_url}
    path = {"PYTHONPATH": f"{tmp_path}/before/src:{tmp_path}/before/packages/limits/src"}
    command, folders = ["serve", "--port", "0"], [a_folder(tmp_path, number) for number in range(2)]
    old = Process(command, folders[0], own_keys=True, **stores, **path)
    running = [old]
    inner = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=60))
    try:
        old.listening()
        await old.ready()
        urls = [old.url]
        async with httpx.AsyncClient(base_url=old.url) as client:
            document = (await client.get("/openapi.json")).json()
            early = Buyer(client, document)
            await early.enter(EVENT_ID)
            held = await early.hold(EVENT_ID, seats=["S-A-1"])
        buying = [asyncio.create_task(buy(number, inner, urls, document)) for number in range(FANS)]
        await until_sold(ledger, 3)
        before, after = await asyncio.to_thread(migrate_ledger, postgres_url)  # while they buy
        assert (before, after) == (BEFORE_SCHEMA, newest_version())
        buying += [asyncio.create_task(buy(number, inner, urls, document)) for number in range(FANS, 2 * FANS)]
        new = Process(command, folders[1], own_keys=True, **stores)
        running.append(new)
        new.listening()
        await new.ready()
        urls.append(new.url)  # both are asked from now on, often in one purchase
        buying += [asyncio.create_task(buy(number, inner, urls, document)) for number in range(2 * FANS, 3 * FANS)]
        async with httpx.AsyncClient(base_url=new.url) as client:
            document_of = (await client.get("/openapi.json")).json()
            early.client = client
            assert (await early.pay(held["booking"]))["state"] == "confirmed", "held there, paid here"
        bank = open_provider(f"simulated:{tmp_path / 'bank.jsonl'}", SystemClock())
        assert isinstance(bank, GuardedProvider)
        assert isinstance(bank.inner, SimulatedProvider)
        paying = (pay_at_once(new.url, document_of, ledger, bank.inner) for _ in range(FANS))
        at_once = await asyncio.gather(*paying)
        await bank.aclose()
        urls.remove(old.url)
        assert old.stop() == 0
        running.remove(old)
        bought = await asyncio.gather(*buying)
    finally:
        codes = [server.stop() for server in running]
        await inner.aclose()
        await ledger.aclose()
    assert codes == [0]
    assert {one["state"] for one in bought} == {"confirmed"}
    seats = [ticket["seat"] for one in (*bought, *at_once) for ticket in one["tickets"]]
    assert len({*seats, "S-A-1"}) == len(seats) + 1 == 4 * FANS + 1
    problems, _ = await verify_ledger(postgres_url)
    assert problems == []
    done = await asyncio.to_thread(reconcile, postgres_url, tmp_path / "bank.jsonl")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["problems"] == []


async def pay_at_once(url: str, document: dict[str, Any], ledger: SqlLedger, bank: SimulatedProvider) -> dict[str, Any]:
    """A fan who pays with iDEAL at a new server and stays away: the worker of either version finds the money."""
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        buyer = Buyer(client, document)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, best={"count": 1})
        asked = await buyer.call("pay", booking_id=held["booking"], json={"method": "ideal"})
        assert asked.json()["checkout"]["state"] == "action", asked.text
        (payment,) = await ledger.payments.payments_of(held["booking"])
        bank.finish_action(payment.ref)
        await eventually(
            lambda: ledger.booking(held["booking"]),
            until=lambda booking: booking is not None and booking.state == "confirmed",
            every_s=0.2,
        )
        tickets = await buyer.call("list_tickets", booking_id=held["booking"])
        return {"tickets": tickets.json()["tickets"]}


def reconcile(ledger_url: str, bank: Path) -> Any:
    """`frontrow ledger reconcile`: each charge has its seat."""
    command = ["reconcile", "--ledger", ledger_url, "--json"]
    return CliRunner().invoke(ledger_app, command, env={"FRONTROW_PAYMENTS_URL": f"simulated:{bank}"})
