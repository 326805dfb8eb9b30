"""The drill of docs/guides/backup.md, by its own commands: a backup is restored into another database. A platform on
it, with an empty Redis, honours what was sold before and sells on.
"""

import asyncio
import re
import shlex
from pathlib import Path

import httpx
import redis
from typer.testing import CliRunner

from frontrow.app.wiring import open_platform
from frontrow.cli.ledger import app
from frontrow.web.server.app import run_platform
from tests.support.databases import database
from tests.web.api.script import Buyer, a_buyer
from tests.web.api.support import EVENT_ID, a_client, a_platform, settings_for

GUIDE = Path("docs/guides/backup.md")
SCRATCH = "postgresql://frontrow@127.0.0.1:5432/drill"


def commands(section: str) -> list[list[str]]:
    """The commands of the block in this section of the guide."""
    (block,) = re.findall(rf"^## {section}\n.*?```sh\n(.*?)```", GUIDE.read_text(), re.M | re.S)[:1]
    return [shlex.split(line, comments=True) for line in block.splitlines()]


async def buy(client: httpx.AsyncClient, seat: str) -> tuple[Buyer, str]:
    """The buyer and the booking."""
    buyer = await a_buyer(client)
    await buyer.enter(EVENT_ID)
    held = await buyer.hold(EVENT_ID, seats=[seat])
    assert (await buyer.pay(held["booking"]))["state"] == "confirmed"
    return buyer, held["booking"]


async def test_a_restored_platform_honours_what_was_sold_and_sells_on(
    tmp_path, redis_url, postgres_ledger_url, shared_postgres_url, monkeypatch
):
    guide = commands("The drill, once a month")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FRONTROW_LEDGER_URL", postgres_ledger_url)
    assert [words[2] for words in guide] == ["backup", "restore", "status"]
    stores = {"redis_url": redis_url, "postgres_url": postgres_ledger_url}
    with database(shared_postgres_url) as scratch:
        steps = [[word.replace(SCRATCH, scratch) for word in words[2:]] for words in guide]
        async with a_platform(tmp_path, **stores) as platform, a_client(platform) as client:
            early, booking = await buy(client, "S-A-1")
            tickets = (await early.call("list_tickets", booking_id=booking)).json()
            told = [await asyncio.to_thread(CliRunner().invoke, app, steps[0])]  # while it serves
            await buy(client, "S-A-2")  # and is lost
        with redis.Redis.from_url(redis_url) as client:
            client.flushdb()
        told += [await asyncio.to_thread(CliRunner().invoke, app, step) for step in steps[1:]]
        assert [one.exit_code for one in told] == [0, 0, 0], told[-1].output
        assert "0 problems" in told[1].output
        stores["postgres_url"] = scratch
        opened = open_platform(settings_for(tmp_path, **stores))
        async with opened as platform, run_platform(platform), a_client(platform) as client:
            early.client = client
            assert (await early.call("list_tickets", booking_id=booking)).json() == tickets
            late = await a_buyer(client)
            await late.enter(EVENT_ID)
            taken = await late.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-1"]})
            assert taken.status_code == 409, taken.text
            await buy(client, "S-A-2")
