"""Fans who buy at several servers on one Redis and PostgreSQL, and the machines of those servers."""

import random
from pathlib import Path
from typing import Any

import httpx

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.core.clock import SystemClock
from tests.support.eventually import eventually
from tests.web.api.script import Buyer
from tests.web.api.support import EVENT_ID


class Stubborn(httpx.AsyncBaseTransport):
    """Asks the servers in turn and asks another one when one is dead or says 503; what a load balancer and a good
    client do together."""

    def __init__(self, inner: httpx.AsyncHTTPTransport, urls: list[str], seed: int) -> None:
        self._inner, self._urls, self._random = inner, urls, random.Random(seed)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await eventually(
            lambda: self._ask_one(request),
            until=lambda response: response.status_code not in (502, 503),
            ignoring=httpx.TransportError,
            every_s=0.05,
        )

    async def _ask_one(self, request: httpx.Request) -> httpx.Response:
        target = httpx.URL(self._random.choice(self._urls))
        request.url = request.url.copy_with(host=target.host, port=target.port)
        request.headers["host"] = f"{target.host}:{target.port}"
        response = await self._inner.handle_async_request(request)
        await response.aread()
        return response


async def buy(number: int, inner: Any, urls: list[str], document: dict[str, Any]) -> dict[str, Any]:
    """One fan's purchase; every POST has a key of its own, so asking again is harmless."""
    transport = Stubborn(inner, urls, number)
    async with httpx.AsyncClient(transport=transport, base_url="http://any", timeout=30) as client:
        buyer = Buyer(client, document)
        buyer.headers["Idempotency-Key"] = f"fan-{number}"
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, best={"count": 1})
        paid = await buyer.call("pay", booking_id=held["booking"], json={"method": "pm_card_visa"})
        if paid.json().get("state") != "confirmed":
            paid = await eventually(
                lambda: buyer.call("get_booking", booking_id=held["booking"]),
                until=lambda answer: answer.json().get("state") == "confirmed",
                every_s=0.1,
            )
        tickets = await buyer.call("list_tickets", booking_id=held["booking"])
        return {"booking": held["booking"], "state": paid.json()["state"], "tickets": tickets.json()["tickets"]}


def a_folder(tmp_path: Path, number: int) -> Path:
    """A machine of its own: nothing is shared but the stores, and the made-up bank, which is one file."""
    folder = tmp_path / f"machine-{number}"
    folder.mkdir()
    (folder / "payments.jsonl").symlink_to(tmp_path / "bank.jsonl")
    return folder


async def until_sold(ledger: SqlLedger, count: int) -> None:
    """Until so many seats are held or sold."""

    async def seats() -> int:
        return len([seat async for seat in ledger.active_seats(EVENT_ID, SystemClock()())])

    await eventually(seats, until=lambda found: found >= count)
